"""Find what was said earlier, also what is no longer in the context."""

from __future__ import annotations

from operant.kit.text import plain
from operant.sdk import CallContext, FunctionTool, Host, SessionSearch, Text, ToolResult, tool

OUTSIDE = "outside"
_HITS = 20
_EXCERPT_CHARS = 400


def history_tools(host: Host) -> tuple[FunctionTool, ...]:
    """Make the tool `search_history`."""

    @tool(effect="read", timeout_s=30)
    async def search_history(query: str, call: CallContext) -> ToolResult:
        """Find words in this conversation, also in what was compacted."""
        hits = await host.call(SessionSearch(query=query, session=call.session, limit=_HITS))
        lines = [f"#{hit.seq} {hit.type}: {_excerpt(hit.text)}" for hit in hits]
        # What a tool once brought may be a page's words, cut out of the envelope that they came in.
        labels = (OUTSIDE,) if any(hit.type == "tool.ended" for hit in hits) else ()
        return ToolResult(parts=(Text(text="\n".join(lines) or "Nothing was found."),), labels=labels)

    return (search_history,)


def _excerpt(text: str) -> str:
    line = " ".join(plain(text).split())
    return line if len(line) <= _EXCERPT_CHARS else f"{line[:_EXCERPT_CHARS]}…"
