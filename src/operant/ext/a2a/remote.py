"""Speak A2A 1.0 to other homes: plain JSON-RPC over the one client, so that the egress judges every address."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from operant.ext.a2a.letter import EXTENSION, Letter
from operant.ext.a2a.settings import Peer
from operant.kit.egress import Denied as NoWay
from operant.kit.egress import Reach
from operant.kit.http import Get, HttpDenied, HttpError, HttpResponse
from operant.kit.sse import SseDecoder
from operant.sdk import Host, Json, NotFound, Record, Refused, Unavailable

CARD = "/.well-known/agent-card.json"
MOST_BYTES = 8 << 20
QUIET_S = 120.0
"""Seconds without a byte after which a stream is taken for lost."""
_REFUSALS = {
    401: (
        "does not know our token",
        "`operant token add NAME --scope a2a:AGENT` there makes one for `a2a.peers` here.",
    ),
    403: ("lets our token not do this", "It needs the scope a2a:AGENT there."),
    404: ("is not there", "That home names in `a2a.serve` whom it serves, `a2a.peers` here says where it is."),
}
_OVER = frozenset({"COMPLETED", "FAILED", "CANCELED", "REJECTED"})


class Barred(Refused):
    """Refuse for what an owner can mend, such as a token: after that the same may be asked again."""


class There(Record):
    """A task as another home tells it; `text` is None while it is not over."""

    id: str
    text: str | None = None


class Remote:
    """Send letters to peers, and hear what becomes of them."""

    def __init__(self, host: Host, peers: Mapping[str, Peer]) -> None:
        self._host = host
        self._peers = peers
        self._known: dict[str, str] = {}

    async def send(self, letter: Letter, text: str) -> There:
        """Send a letter; the same one twice is one at a home of ours. Raises `Refused`, or `Unavailable`."""
        message = {
            "messageId": letter.id,
            "contextId": letter.context,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            "metadata": {EXTENSION: {"kind": letter.kind, "chain": letter.chain, "labels": letter.labels}},
        }
        params = {"message": message, "configuration": {"returnImmediately": True}}
        result = await self._call(letter.to, "SendMessage", params)
        if "message" in result:
            return There(id="-", text=_words(_of(result, "message").get("parts")))
        return _there(_of(result, "task"))

    async def get(self, letter: Letter) -> There:
        """Ask how the task of a letter stands."""
        return _there(await self._call(letter.to, "GetTask", {"id": letter.remote}))

    async def listen(self, letter: Letter) -> None:
        """Return when there is news of the task of a letter, or nothing more to hear."""
        url, headers = await self._endpoint(letter.to), {**self._headers(letter.to), "Accept": "text/event-stream"}
        body = _request("SubscribeToTask", {"id": letter.remote})
        try:
            async with self._host.http.post(url, body, headers, QUIET_S, Reach.PUBLIC) as response:
                await _until_over(response)
        except (HttpError, NoWay) as error:
            raise _unreachable(letter.to, error) from error

    def peer(self, to: str) -> Peer:
        """Return the peer of an address such as `coder@work`. Raises `NotFound`."""
        name = to.rpartition("@")[2]
        if name not in self._peers:
            raise NotFound(
                f"There is no peer {name!r}.",
                "`a2a.peers` in operant.yaml names them; edits count from the next start.",
            )
        return self._peers[name]

    # ------------------------------------------------------------------ inside

    async def _call(self, to: str, method: str, params: Json) -> Json:
        url = await self._endpoint(to)
        request = Get(
            url=url,
            method="POST",
            headers=self._headers(to),
            body=_request(method, params),
            redirects=0,
            max_bytes=MOST_BYTES,
            total_s=60.0,
        )
        answer = await self._fetched(to, request)
        if "error" in answer:
            words = str(_of(answer, "error").get("message", ""))[:500]
            raise Refused(f"{to} refused it: {words}")
        return _of(answer, "result")

    async def _fetched(self, to: str, request: Get) -> Json:
        try:
            fetched = await self._host.http.fetch(request)
        except (HttpError, NoWay) as error:
            raise _unreachable(to, error) from error
        if fetched.status in _REFUSALS:
            words, hint = _REFUSALS[fetched.status]
            raise Barred(f"{to} {words}.", hint)
        if fetched.status != 200 or fetched.truncated:
            raise Unavailable(f"{to} answered with status {fetched.status}.")
        try:
            return msgspec.json.decode(fetched.body, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise Unavailable(f"{to} answered with what is no JSON object.") from error

    async def _endpoint(self, to: str) -> str:
        """Return the address for messages, as the card says it; it must be where the owner said the peer is."""
        if to in self._known:
            return self._known[to]
        self._token(to)  # said before anything is dialled
        base, agent = self.peer(to).url.rstrip("/"), to.rpartition("@")[0]
        card = await self._fetched(to, Get(url=f"{base}/a2a/{agent}{CARD}" if agent else f"{base}{CARD}", redirects=0))
        for one in cast("list[Json]", card.get("supportedInterfaces") or []):
            url, spoken = str(one.get("url", "")), str(one.get("protocolVersion", ""))
            if one.get("protocolBinding") == "JSONRPC" and spoken.startswith("1."):
                if _origin(url) != _origin(base):
                    raise Refused(f"The card of {to} names an address elsewhere: {url[:200]}.")
                self._known[to] = url
                return url
        raise Refused(f"{to} does not speak A2A 1.0 over JSON-RPC.")

    def _headers(self, to: str) -> dict[str, str]:
        token = self._token(to)
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        return {**headers, "Authorization": f"Bearer {token}"} if token else headers

    def _token(self, to: str) -> str:
        token = self.peer(to).token
        if token is not None and not token.reveal():
            raise Barred(
                f"{token.name or 'The token'} is not set, the token for {to}.", "Set it, or `defaults.env_file`."
            )
        return token.reveal() if token else ""


def _request(method: str, params: Json) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def _of(data: Json, name: str) -> Json:
    found = data.get(name)
    return cast(Json, found) if isinstance(found, dict) else {}


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    try:
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", "", None


def _there(task: Json) -> There:
    status = _of(task, "status")
    state = str(status.get("state", "")).removeprefix("TASK_STATE_")
    if state not in _OVER:
        return There(id=str(task.get("id", "")))
    said = [_words(one.get("parts")) for one in cast("list[Json]", task.get("artifacts") or [])]
    said = said or [_words(_of(status, "message").get("parts"))]
    text = "\n\n".join(one for one in said if one)
    return There(id=str(task.get("id", "")), text=text if state == "COMPLETED" else f"({state.lower()}) {text}".strip())


def _words(parts: Any) -> str:
    found: list[str] = []
    for part in cast("list[Json]", parts) if isinstance(parts, list) else []:
        if "text" in part:
            found.append(str(part["text"]))
        elif "data" in part:
            found.append(msgspec.json.encode(part["data"]).decode())
        else:
            found.append(f"[a file: {part.get('filename') or part.get('mediaType') or 'without a name'}]")
    return "\n".join(found)


async def _until_over(response: HttpResponse) -> None:
    decoder = SseDecoder()
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            if any(_ends(event.data) for event in decoder.feed(piece)):
                return


def _ends(data: str) -> bool:
    """Tell whether an event of a stream says that the task is over."""
    return any(f'"TASK_STATE_{state}"' in data for state in _OVER) or '"error"' in data


def _sentence(error: Exception) -> str:
    words = str(error)
    return words if words.endswith(".") else f"{words}."


def _unreachable(to: str, error: Exception) -> Unavailable | Barred:
    if isinstance(error, HttpDenied | NoWay):
        return Barred(f"{to} may not be dialled: {error}")
    return Unavailable(f"{to} cannot be reached: {_sentence(error)}", "Is it running? `a2a.peers` says where it is.")
