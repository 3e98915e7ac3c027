"""The Google Gemini protocol from the server's side."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from operant.sdk.testing.script import Chosen, Made, calls_of, pieces_of
from operant.sdk.testing.wires.chat import DECLINED
from operant.sdk.testing.wires.gemini_rules import check_rules
from operant.sdk.testing.wires.gemini_shape import Body, camel
from operant.sdk.testing.wires.pictures import picture
from operant.sdk.testing.wires.rules import sealed, shaped
from operant.sdk.testing.wires.tokens import counted
from operant.sdk.testing.wires.wire import Answer, Json, Request, Wrong, data, encode

_UNSIGNED = ("gemini-1", "gemini-2")
"""Models that give no ids to calls, and do not insist on signatures."""
_STOPS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def model_of(path: str) -> str:
    """Return the model that an address names."""
    return path.rpartition("/")[2].partition(":")[0]


def check_key(request: Request) -> None:
    """Refuse whom nobody knows."""
    if not request.header("x-goog-api-key"):
        raise Wrong(
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
            "other form of API consumer identity to call this API.",
            403,
        )


def refusal(status: int, sentence: str) -> bytes:
    """Return an error body."""
    return encode({"error": {"code": status, "message": sentence, "status": _STATUS.get(status, "UNKNOWN")}})


class Gemini:
    """POST /v1beta/models/{model}:generateContent and :streamGenerateContent."""

    def check(self, request: Request) -> None:
        """Refuse as Google does."""
        check_key(request)
        if self.streams(request) and "alt=sse" not in request.query.split("&"):
            raise Wrong("This server streams with alt=sse only.")
        check_rules(shaped(camel(request.body), Body), signed=not model_of(request.path).startswith(_UNSIGNED))

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the messages; what brings results is the tools', what is said beside them is the user's."""
        found: list[Mapping[str, Any]] = []
        for content in cast("list[Json]", camel(body["contents"])):
            parts = cast("list[Json]", content["parts"])
            if content.get("role") == "model":
                found.append({"role": "assistant"})
                continue
            said = [part for part in parts if "functionResponse" not in part]
            if len(said) < len(parts):
                found.append({"role": "tool"})
            if said:
                found.append({"role": "user", "content": said})
        return found

    def streams(self, request: Request) -> bool:
        """Tell whether events are wanted."""
        return request.path.endswith(":streamGenerateContent")

    def whole(self, answer: Answer) -> bytes:
        """Return a response."""
        if answer.step.blocked:
            return encode(_blocked(answer))
        return encode(_response(answer, _joined(_parts(answer)), last=True))

    def events(self, answer: Answer) -> list[bytes]:
        """Return the responses that add up to one; the last has the reason to stop."""
        if answer.step.blocked:
            return [data(_blocked(answer))]
        made = [data(_response(answer, [part], last=False)) for part in _parts(answer)]
        made.append(data(_response(answer, [], last=True)))
        return [*made, made[-1]] if answer.step.duplicate_chunk else made

    def error(self, sentence: str, at: int) -> bytes:
        """Return an error in place of a response."""
        return b"data: %s\n\n" % refusal(503, sentence)

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return an error body."""
        return refusal(status, sentence)


def _response(answer: Answer, parts: Sequence[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"} if parts else {"role": "model"}, "index": 0}
    if last:
        candidate |= _stopped(answer.chosen)
    return {"candidates": [candidate], **_about(answer)}


def _blocked(answer: Answer) -> Json:
    return {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []}, **_about(answer)}


def _about(answer: Answer) -> Json:
    return {
        "usageMetadata": _usage(answer),
        "modelVersion": model_of(answer.request.path),
        "responseId": answer.chosen.id,
    }


def _usage(answer: Answer) -> Json:
    tokens = counted(answer)
    spoken = tokens.output - tokens.reasoning
    usage: Json = {"promptTokenCount": tokens.input, "candidatesTokenCount": spoken}
    if tokens.cached:
        usage["cachedContentTokenCount"] = tokens.cached
    if tokens.reasoning:
        usage["thoughtsTokenCount"] = tokens.reasoning
    usage["totalTokenCount"] = tokens.input + tokens.output
    return usage | tokens.own


def _stopped(chosen: Chosen) -> Json:
    step = chosen.step
    if step.refusal:
        return {"finishReason": "PROHIBITED_CONTENT"}
    if any(_args(call) is None for call in calls_of(chosen)):
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call"}
    finish = step.finish or "stop"
    return {"finishReason": _STOPS.get(finish, finish)}


def _parts(answer: Answer) -> list[Json]:
    """Return the parts of a reply as they are streamed."""
    chosen, step = answer.chosen, answer.step
    found: list[Json] = []
    if step.reasoning and not step.redacted and _shows(answer):
        found += [{"text": piece, "thought": True} for piece in pieces_of(chosen.thoughts, step.chunks)]
    said = chosen.text or (DECLINED if step.refusal else "")
    found += [{"text": piece} for piece in pieces_of(said, step.chunks)]
    if "IMAGE" in (_generation(answer).get("responseModalities") or ()):
        raw = base64.b64encode(picture(said)).decode()
        found.append({"inlineData": {"mimeType": "image/png", "data": raw}})
    signed = not model_of(answer.request.path).startswith(_UNSIGNED) or bool(step.reasoning)
    calls = _calls(calls_of(chosen), ids=not model_of(answer.request.path).startswith(_UNSIGNED))
    if calls and signed:
        calls[0]["thoughtSignature"] = sealed(chosen.thoughts)
    elif step.reasoning:
        found.append({"text": "", "thoughtSignature": sealed(chosen.thoughts)})
    return found + calls


def _generation(answer: Answer) -> Json:
    return camel(answer.request.body).get("generationConfig") or {}


def _shows(answer: Answer) -> bool:
    asked: Json = _generation(answer).get("thinkingConfig") or {}
    return bool(asked.get("includeThoughts"))


def _calls(made: Sequence[Made], *, ids: bool) -> list[Json]:
    found: list[Json] = []
    for call in made:
        args = _args(call)
        if args is not None:  # a malformed call is told by the reason to stop alone
            id: Json = {"id": call.id} if ids and call.id else {}
            found.append({"functionCall": {**id, "name": call.name, "args": args}})
    return found


def _args(call: Made) -> Json | None:
    try:
        return msgspec.json.decode(call.arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _joined(parts: Sequence[Json]) -> list[Json]:
    """Join what was cut to be streamed."""
    found: list[Json] = []
    for part in parts:
        before = found[-1] if found else {}
        if set(part) <= {"text", "thought"} and set(part) == set(before):
            before["text"] += part["text"]
        elif part.get("text") == "" and set(before) == {"text"}:
            before["thoughtSignature"] = part["thoughtSignature"]
        else:
            found.append(dict(part))
    return found
