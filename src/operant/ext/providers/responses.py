"""The OpenAI responses protocol, without anything kept at the provider."""

from __future__ import annotations

import msgspec

from operant.ext.providers.dialect import apart
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.refusals import failure
from operant.ext.providers.responses_events import (
    SUMMARY,
    WORDS,
    Done,
    Ended,
    Event,
    Failed,
    Fault,
    Grown,
    InputDetails,
    Item,
    OutputDetails,
    UsagePiece,
    Whole,
    read_event,
    read_item,
)
from operant.ext.providers.responses_wire import Kept, Requests
from operant.kit.sse import ServerEvent
from operant.sdk import (
    Blobs,
    Facts,
    ModelError,
    ModelRequest,
    Part,
    Reasoning,
    ReasoningDelta,
    Reply,
    StreamPart,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)

_APART = "\n\n"
"""Stands between the pieces of a thought's summary."""
_STOPS = {"content_filter": "content_filter"}


class OpenAIResponses:
    """The OpenAI responses protocol."""

    def __init__(self, endpoint: Endpoint, blobs: Blobs) -> None:
        self._endpoint = endpoint
        self._requests = Requests(blobs, endpoint.name)

    def address(self, model: str) -> str:
        """Return where requests go."""
        return self._endpoint.address("/responses")

    def headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        return self._endpoint.authorization("bearer")

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return a request's body."""
        return await self._requests.body(request, facts)

    def gathering(self, model: str) -> ResponseGathering:
        """Begin a reply."""
        return ResponseGathering(self._endpoint, model)


class ResponseGathering:
    """Put a reply together out of its items, each of which comes whole at its end."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint = endpoint
        self._model = model
        self._items: dict[int, Item] = {}
        self._shown: set[int] = set()
        self._summary = (0, 0)
        self._before = ""
        self._ended: Whole | None = None
        self.done = False

    def add(self, event: ServerEvent) -> list[StreamPart]:
        """Take an event in and return what it shows."""
        if event.data == "[DONE]":
            return []
        try:
            kind, read = read_event(event.data)
            # Events are numbered, so the same one twice is a repeat and not the same word said again.
            repeated = bool(kind.sequence_number) and event.data == self._before
            self._before = event.data
            return self._take(kind.type, read) if read is not None and not repeated else []
        except msgspec.MsgspecError as error:
            raise ModelError("cut", f"{self._endpoint.name} sent an event that is no JSON of the protocol.") from error

    def _take(self, kind: str, event: Event) -> list[StreamPart]:
        match event:
            case Grown():
                return self._grow(kind, event)
            case Done():
                return self._settle(event)
            case Ended():
                self._ended, self.done = event.response, True
                for at, raw in enumerate(event.response.output or ()):
                    self._items.setdefault(at, read_item(raw))
            case Failed():
                raise self._failure(event.error or Fault(code=event.code, message=event.message))
        return []

    def _grow(self, kind: str, event: Grown) -> list[StreamPart]:
        if not event.delta:
            return []
        if kind in WORDS:
            self._shown.add(event.output_index)
            return [TextDelta(text=event.delta)]
        place = (event.output_index, event.summary_index)
        apart = _APART if kind == SUMMARY and event.summary_index and place != self._summary else ""
        self._summary = place
        return [ReasoningDelta(text=apart + event.delta)]

    def _settle(self, event: Done) -> list[StreamPart]:
        item = self._items[event.output_index] = read_item(event.item)
        words = _words_of(item)
        if not words or event.output_index in self._shown:
            return []
        self._shown.add(event.output_index)
        return [TextDelta(text=words)]

    def reply(self) -> Reply:
        """Return the whole reply. Raises `ModelError` when the stream ended before it was one, or it is none."""
        ended = self._ended
        if ended is None or ended.status in ("cancelled", "in_progress", "queued"):
            raise ModelError("cut", f"{self._endpoint.name} broke off before its answer was whole.")
        if ended.error is not None or ended.status == "failed":
            raise self._failure(ended.error or Fault())
        items = [item for _, item in sorted(self._items.items())]
        finish = self._finish(ended, items)
        parts = [part for item in items for part in self._parts(item, calls=finish == "stop")]
        if any(isinstance(part, ToolCall) for part in parts):
            finish = "tool_calls"
        spoke = any(isinstance(part, Text) for part in parts)
        if finish in ("content_filter", "refusal") and not spoke:
            raise ModelError("content_filter", f"{self._endpoint.name} withheld its answer ({finish}).")
        return Reply(
            parts=apart(parts),
            model=self._model,
            provider=self._endpoint.name,
            finish=finish,
            usage=_usage(ended.usage or UsagePiece()),
        )

    def _finish(self, ended: Whole, items: list[Item]) -> str:
        """Name how it ended. What is not complete may hold half a call, and half a call is none."""
        reason = (ended.incomplete_details and ended.incomplete_details.reason) or ""
        if reason or ended.status == "incomplete":
            return _STOPS.get(reason, "length")
        refused = any(words.type == "refusal" for item in items for words in item.content or ())
        return "refusal" if refused else "stop"

    def _parts(self, item: Item, *, calls: bool) -> list[Part]:
        if item.type == "reasoning":
            return self._thought(item)
        if item.type == "function_call" and calls and item.status != "incomplete":
            return [ToolCall(id=item.call_id or "", name=item.name or "", arguments=item.arguments or "{}")]
        words = _words_of(item)
        if not words:
            return []
        # A message's phase has to go back; what nobody but this provider understands is kept as its thinking is.
        phase = [Reasoning(text="", opaque=Kept(phase=item.phase).mark(self._endpoint.name))] if item.phase else []
        return [*phase, Text(text=words)]

    def _thought(self, item: Item) -> list[Part]:
        summary = [one.text for one in item.summary or () if one.text]
        content = [one.text for one in item.content or () if one.text]
        text = _APART.join(summary) or "".join(content)
        kept = Kept(
            id=item.id or "",
            encrypted_content=item.encrypted_content or "",
            summary=summary if len(summary) > 1 or content else [],
            content=content,
        )
        sent = kept.encrypted_content or content
        return [Reasoning(text=text, opaque=kept.mark(self._endpoint.name) if sent else "")] if text or sent else []

    def _failure(self, fault: Fault) -> ModelError:
        return failure(self._endpoint, fault.code or fault.type or "", fault.message or "")


def _words_of(item: Item) -> str:
    if item.type != "message":
        return ""
    return "".join(words.text or words.refusal or "" for words in item.content or ())


def _usage(piece: UsagePiece) -> Usage:
    taken, given = piece.input_tokens_details or InputDetails(), piece.output_tokens_details or OutputDetails()
    return Usage(
        input=piece.input_tokens or 0,
        cached=taken.cached_tokens or 0,
        cache_write=taken.cache_write_tokens or 0,
        output=piece.output_tokens or 0,
        reasoning=given.reasoning_tokens or 0,
        calls=1,
    )
