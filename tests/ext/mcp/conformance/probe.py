"""An extension with the tools that the conformance suite calls, as far as an agent's tools can be such tools."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.sdk import Extension, Host, Text, ToolResult, failed, tool

extension = Extension(name="probe", setup=f"{__name__}:setup")
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    """Offer the tools."""

    @tool(effect="read")
    async def test_simple_text() -> str:
        """Say some words."""
        return "This is a simple text response for testing."

    @tool(effect="read")
    async def test_error_handling() -> ToolResult:
        """Fail."""
        return failed("This tool intentionally returns an error for testing")

    @tool(effect="read")
    async def test_image_content() -> ToolResult:
        """Show a picture."""
        return ToolResult(parts=(await host.blobs.put_blob(base64.b64decode(_PNG), "image/png", "one.png"),))

    @tool(effect="read")
    async def test_audio_content() -> ToolResult:
        """Play a sound."""
        return ToolResult(parts=(await host.blobs.put_blob(b"RIFF\x24\x00\x00\x00WAVE", "audio/wav", "one.wav"),))

    @tool(effect="read")
    async def test_words_and_picture() -> ToolResult:
        """Say some words and show a picture."""
        picture = await host.blobs.put_blob(base64.b64decode(_PNG), "image/png", "one.png")
        return ToolResult(parts=(Text(text="words"), picture))

    for made in (test_simple_text, test_error_handling, test_image_content, test_audio_content, test_words_and_picture):
        host.tool(made)
    yield
