"""What of an editor's directory an agent can reach, and how both are told."""

from __future__ import annotations

import os.path

from operant.kernel.records import Agent


def reach(cwd: str, agent: Agent, shared: str) -> str:
    """Return the path that an agent's file tools have for a directory of the editor, empty where they have none.

    `shared` is the directory that all workspaces see under that name.
    """
    place = os.path.realpath(cwd)
    roots = {".": agent.workspace, "shared": shared}
    for name, root in ((name, os.path.realpath(root)) for name, root in roots.items() if root):
        if place == root or place.startswith(root.rstrip("/") + "/"):
            return os.path.normpath(os.path.join(name, os.path.relpath(place, root)))  # noqa: PTH118 - words, no file
    return ""


def told(cwd: str, agent: Agent, shared: str) -> str:
    """Say to a model where the person is and what of it is within its reach."""
    found = reach(cwd, agent, shared)
    lines = ["The person talks to you from a code editor and sees file changes as diffs."]
    if found:
        lines.append(f"The editor is open on {_quoted(cwd)}; for your file tools that is {_quoted(found)}.")
    else:
        lines.append(
            f"The editor is open on {_quoted(cwd)}, which is outside of your workspace: your file tools do not reach "
            "it. Work on what the person puts into the message, and say so when you need a file that is not there."
        )
        if not agent.sandbox:
            lines.append("Commands that you run are in no sandbox and can reach it; ask before you change it.")
    return "\n".join(lines)


def _quoted(path: str) -> str:
    return "`" + "".join(mark if mark.isprintable() else "?" for mark in path).replace("`", "'") + "`"
