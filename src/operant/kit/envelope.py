"""Text from outside goes to a model in an envelope that it cannot close and in words that nobody takes for ours."""

from __future__ import annotations

import re

# What chat templates and agents use to tell who speaks. A model that sees them in data may believe them.
_ROLES = (
    "outside|system|assistant|user|human|developer|tool|tools|tool_use|tool_call|tool_calls|tool_result|tool_results|"
    "tool_response|function|function_call|function_calls|function_results|invoke|parameter|parameters|result|results|"
    "instructions?|system-reminder|system_prompt|thinking|think|admin|im_start|im_end|start_of_turn|end_of_turn|"
    "begin_of_text|end_of_text|start_header_id|end_header_id|eot_id|sys|inst|s"
)
_TAG = re.compile(rf"<(?=\s*[/|]?\s*(?:[\w-]+:)?(?:{_ROLES})(?![\w-]))", re.IGNORECASE)
_TOKEN = re.compile(r"<(?=[|\uff5c])|(?<=[|\uff5c])>|\[(?=\s*/?\s*INST\s*\])|<(?=\s*/?\s*<\s*SYS)", re.IGNORECASE)
_TURN = re.compile(r"^(\s*)(Human|Assistant|System|User|H|A)(\s*:)", re.MULTILINE)
_SHOWN = {"<": "\u2039", ">": "\u203a", "[": "\u27e6"}


def enveloped(text: str, source: str, seal: str) -> str:
    """Wrap a text; `seal` is a word that its author could not know."""
    return f'<outside source="{source}" seal="{seal}">\n{harmless(text)}\n</outside seal="{seal}">'


def harmless(text: str) -> str:
    """Spell out what marks roles, so that it reads as what it is: characters on a page."""
    text = _TAG.sub(_shown, text)
    text = _TOKEN.sub(_shown, text)
    return _TURN.sub(lambda match: f"{match[1]}\u2039{match[2]}\u203a{match[3]}", text) if "\n\n" in text else text


def _shown(match: re.Match[str]) -> str:
    return _SHOWN[match[0]]
