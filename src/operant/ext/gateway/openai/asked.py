"""What a client of OpenAI's protocols asks, whichever of the two it speaks."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, cast

from operant.ext.gateway.media import sniffed
from operant.ext.gateway.problem import Rejected
from operant.kit.exchange import Get, HttpError
from operant.sdk import Blobs, Host, Json, Part, Record, Text, ToolCall, ToolSpec

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?;base64,(.*)", re.DOTALL)
_LARGEST = 32 << 20
_NAME = re.compile(r"[\w-]{1,64}")


class Said(Record):
    """One message of a conversation as the client has it."""

    role: str
    parts: tuple[Part, ...] = ()
    call_id: str = ""


class Asked(Record):
    """One request: `said` is the conversation, `session` and `previous` tell which one it goes on with."""

    agent: str
    said: tuple[Said, ...]
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    session: str = ""
    previous: str = ""
    stream: bool = False
    with_usage: bool = False

    @property
    def fresh(self) -> tuple[Said, ...]:
        """Return what is new: everything after the last thing that the assistant said."""
        last = max((at for at, one in enumerate(self.said) if one.role == "assistant"), default=-1)
        return self.said[last + 1 :]

    @property
    def before(self) -> tuple[Said, ...]:
        """Return what came before that."""
        return self.said[: len(self.said) - len(self.fresh)]


def wrong(sentence: str, hint: str = "") -> Rejected:
    """Make the error of a request that cannot be understood."""
    return Rejected(400, sentence, hint, code="invalid_request")


def need_list(value: Any, what: str) -> list[Json]:
    """Return a list of objects. Raises `Rejected`."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in cast("list[Any]", value)):
        raise wrong(f"`{what}` must be a list of objects.")
    return cast("list[Json]", value)


def text_field(data: Json, name: str) -> str:
    """Return a field that is a text, or empty where it is not there. Raises `Rejected`."""
    value = data.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong(f"`{name}` must be a text.")
    return value


def spec_of(name: str, function: Json) -> ToolSpec:
    """Make a tool of a function that the client defines and carries out itself."""
    if not _NAME.fullmatch(name):
        raise wrong(f"{name!r} cannot be the name of a function.", "Use letters, digits, - and _ (at most 64).")
    schema: Any = function.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        raise wrong(f"The parameters of {name} must be a JSON Schema.")
    return ToolSpec(
        name=name,
        description=text_field(function, "description"),
        schema=cast("Json", schema),
        effect="read",  # it may be asked for again: the client answers each call once
        timeout_s=3_600,
    )


def call_of(id: str, function: Json) -> ToolCall:
    """Make a call that the client has on record."""
    return ToolCall(id=id, name=text_field(function, "name"), arguments=text_field(function, "arguments") or "{}")


class Reader:
    """Read the parts of messages; pictures are kept as blobs."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._blobs: Blobs = host.blobs

    async def parts(self, content: Any) -> tuple[Part, ...]:
        """Read a message's content: words, or a list of parts. Raises `Rejected`."""
        if content is None:
            return ()
        if isinstance(content, str):
            return (Text(text=content),) if content else ()
        return tuple([await self._part(part) for part in need_list(content, "content")])

    async def _part(self, part: Json) -> Part:
        kind = part.get("type")
        if kind in ("text", "input_text", "output_text"):
            return Text(text=text_field(part, "text"))
        if kind == "refusal":
            return Text(text=text_field(part, "refusal"))
        if kind == "image_url":
            image = part.get("image_url")
            return await self._picture(
                text_field(cast("Json", image), "url") if isinstance(image, dict) else str(image)
            )
        if kind == "input_image":
            return await self._picture(text_field(part, "image_url"))
        if kind in ("file", "input_file"):
            file = cast("Json", part.get("file") or part)
            return await self._file(text_field(file, "file_data"), text_field(file, "filename"))
        raise wrong(f"Content of type {kind!r} is not understood.", "Text, images and files are.")

    async def _picture(self, url: str) -> Part:
        if url.startswith("data:"):
            return await self._file(url, "")
        if not url.startswith(("http://", "https://")):
            raise wrong("An image needs a data: or https: address.")
        try:
            got = await self._host.http.fetch(Get(url=url, max_bytes=_LARGEST))
        except HttpError as error:
            raise wrong(f"The image cannot be fetched: {error}.", "Send it as a data: address.") from error
        kind = sniffed(got.body)
        if not kind.startswith("image/"):
            raise wrong("What is at the image's address is no image.")
        return await self._blobs.put_blob(got.body, kind, "")

    async def _file(self, address: str, name: str) -> Part:
        match = _DATA.fullmatch(address)
        try:
            data = base64.b64decode(match[2] if match else address, validate=True)
        except (binascii.Error, ValueError) as error:
            raise wrong("This is not base64.", "Send data:TYPE;base64,…") from error
        if not data:
            raise wrong("The file is empty.")
        kind = sniffed(data) or (match[1] if match and match[1] else "application/octet-stream")
        return await self._blobs.put_blob(data, kind, name)
