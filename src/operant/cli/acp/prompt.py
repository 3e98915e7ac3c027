"""What an editor's prompt is to a session, and what it was when it is shown again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import unquote, urlsplit

from acp.helpers import ContentBlock
from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from operant.kernel.errors import Invalid
from operant.kernel.records import BlobRef, Part, Text
from operant.kernel.syscalls import BlobPut
from operant.sdk.client import Client

_NOTE = "\n\n<editor>\n"
_MOST = 200_000
"""Characters of a file that is put into a message; more of it is named and left out."""
_MOST_BYTES = 7 * 2**20
"""Of a picture or a file as base64; the system takes messages of at most 8 MiB."""


async def parts_of(client: Client, blocks: Sequence[ContentBlock]) -> tuple[Part, ...]:
    """Return a prompt as parts of a message; bytes are kept as blobs. Raises `Invalid`."""
    parts = [await _part(client, block) for block in blocks]
    if not any(isinstance(part, BlobRef) or part.text.strip() for part in parts):
        raise Invalid("The prompt is empty.")
    return tuple(parts)


def note(text: str) -> Text:
    """Return words to the model that the person did not write; they come last and are not shown again."""
    return Text(text=f"{_NOTE}{text}\n</editor>")


def said(parts: tuple[Part, ...]) -> str:
    """Return what a person said, with what was attached by name."""
    shown: list[str] = []
    for part in parts:
        if isinstance(part, Text) and not part.text.startswith(_NOTE):
            shown.append(part.text)
        elif isinstance(part, BlobRef):
            shown.append(f"\n[{part.name or part.media_type}]\n")
    return "".join(shown).strip()


async def _part(client: Client, block: ContentBlock) -> Text | BlobRef:
    match block:
        case TextContentBlock():
            return Text(text=block.text)
        case ImageContentBlock():
            return await _kept(client, block.data, block.mime_type, _name(block.uri or "", "picture"))
        case ResourceContentBlock():
            return Text(text=f"[{block.title or block.name}]({_where(block.uri)})")
        case EmbeddedResourceContentBlock():
            return await _resource(client, block)
        case AudioContentBlock():
            raise Invalid("Sound is not taken from editors.", "Write it, or attach a file to a message on the page.")


async def _resource(client: Client, block: EmbeddedResourceContentBlock) -> Text | BlobRef:
    one = block.resource
    if isinstance(one, BlobResourceContents):
        return await _kept(client, one.blob, one.mime_type or "application/octet-stream", _name(one.uri, "file"))
    left = len(one.text) - _MOST
    more = f"\n[{left:,} more characters are left out]" if left > 0 else ""
    quoted = _where(one.uri).replace("&", "&amp;").replace('"', "&quot;").replace("\n", " ")
    return Text(text=f'\n\n<file path="{quoted}">\n{one.text[:_MOST]}{more}\n</file>\n\n')


async def _kept(client: Client, data: str, media_type: str, name: str) -> BlobRef:
    if len(data) > _MOST_BYTES:
        raise Invalid(f"{name} is larger than 5 MB.", "Put it into the workspace and name it there.")
    return await client.call(BlobPut(text=data, encoding="base64", media_type=media_type, name=name))


def _where(uri: str) -> str:
    """Return the path that a `file:` address names, else the address."""
    try:
        address = urlsplit(uri)
    except ValueError:
        return uri
    if address.scheme != "file":
        return uri
    return unquote(address.path) + (f"#{address.fragment}" if address.fragment else "")


def _name(uri: str, otherwise: str) -> str:
    return PurePath(_where(uri).partition("#")[0]).name or otherwise
