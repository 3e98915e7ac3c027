"""File tools: the workspace and nothing else, and nothing overwritten unseen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.setup import setup
from operant.sdk import Agent, Invalid
from tests.ext.tools.conftest import Bench, FakeHost


async def test_a_file_is_written_read_and_listed(bench: Bench, workspace: Path) -> None:
    said = await bench.call("write_file", path="docs/größe.md", content="eins\nzwei ü\n")
    assert said.text == "Created docs/größe.md: 2 lines, 13 bytes."
    assert (await bench.call("read_file", path="docs/größe.md")).text == "eins\nzwei ü\n"
    assert (await bench.call("list_files")).text == "docs/\ndocs/größe.md"
    again = await bench.call("write_file", path="docs/größe.md", content="neu")
    assert again.text == "Wrote docs/größe.md: 1 line, 3 bytes."


async def test_a_part_says_which_part_it_is(bench: Bench, workspace: Path) -> None:
    (workspace / "ten").write_text("".join(f"{number}\n" for number in range(1, 11)))
    assert (await bench.call("read_file", path="ten", offset=4, limit=2)).text == "[ten: lines 4 to 5 of 10]\n4\n5\n"
    assert "no line 11" in (await bench.call("read_file", path="ten", offset=11)).text
    (workspace / "empty").touch()
    assert (await bench.call("read_file", path="empty")).text == "[empty is empty]"


async def test_what_is_no_text_is_not_shown(bench: Bench, workspace: Path) -> None:
    (workspace / "picture").write_bytes(b"\x89PNG\0\0")
    said = await bench.call("read_file", path="picture")
    assert (said.outcome, said.text) == ("error", "picture is not text (6 bytes).")
    (workspace / "wide").write_bytes("weit".encode("utf-16"))
    assert (await bench.call("read_file", path="wide")).text == "weit"


@pytest.mark.parametrize(
    "path", ["../../secret.txt", "/etc/passwd", "~/x", "link", "/proc/self/root/etc/passwd", "hard"]
)
async def test_d1_d2_d4_no_tool_reaches_out_of_the_workspace(
    bench: Bench, workspace: Path, secret: Path, path: str
) -> None:
    """D1, D2, D4; a hard link may be read but not changed."""
    (workspace / "link").symlink_to(secret)
    os.link(secret, workspace / "hard")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"content": "x"}),
        ("edit_file", {"old": "CANARY", "new": "x"}),
        ("read_file", {}),
        ("list_files", {}),
        ("search_files", {"pattern": "CANARY"}),
    ]
    for name, arguments in calls:
        if path == "hard" and name in ("read_file", "search_files"):
            continue
        said = await bench.call(name, path=path, **arguments)
        assert said.outcome == "error", name
        assert "CANARY" not in said.text
    assert secret.read_text() == "CANARY"


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".ENV",
        ".git/hooks/pre-commit",
        ".Git/config",
        ".ssh/authorized_keys",
        ".bashrc",
        "sub/.zshenv",
        ".config/systemd/user/x.service",
        "GIT~1/hooks/x",
    ],
)
async def test_d6_d7_protected_files_are_not_written(bench: Bench, workspace: Path, path: str) -> None:
    """D6, D7."""
    said = await bench.call("write_file", path=path, content="x")
    assert (said.outcome, "protected" in said.text) == ("error", True)
    assert list(workspace.iterdir()) == []


async def test_the_owner_can_protect_more(workspace: Path) -> None:
    host = FakeHost()
    async with setup(host, ToolsSettings(protected=("deploy/**",))):  # type: ignore[arg-type]
        bench = Bench(workspace, host)
        assert (await bench.call("write_file", path="Deploy/run", content="x")).outcome == "error"
        assert (await bench.call("write_file", path="build/run", content="x")).outcome == "ok"


async def test_the_shared_directory_is_part_of_every_workspace(bench: Bench, shared: Path) -> None:
    await bench.call("write_file", path="shared/plan.md", content="together")
    assert (shared / "plan.md").read_text() == "together"
    assert (await bench.call("list_files", path="shared")).text == "plan.md"
    assert (await bench.call("search_files", pattern="togeth", path="shared")).text == "shared/plan.md:1: together"


async def test_d12_a_whole_file_is_not_written_over_a_change_of_somebody_else(bench: Bench, workspace: Path) -> None:
    """D12."""
    note = workspace / "note"
    note.write_text("first")
    await bench.call("read_file", path="note")
    note.write_text("by hand")
    said = await bench.call("write_file", path="note", content="mine")
    assert (said.outcome, "changed since" in said.text) == ("error", True)
    assert note.read_text() == "by hand"
    await bench.call("read_file", path="./note")
    assert (await bench.call("write_file", path="note", content="mine")).outcome == "ok"
    assert note.read_text() == "mine"


async def test_a_write_that_is_repeated_after_a_crash_succeeds(bench: Bench, workspace: Path) -> None:
    """The file was written and the digest was not kept."""
    (workspace / "note").write_text("old")
    await bench.call("read_file", path="note")
    (workspace / "note").write_text("new")
    assert (await bench.call("write_file", path="note", content="new", repeated=True)).outcome == "ok"


async def test_d9_too_much_is_refused_in_words(workspace: Path) -> None:
    """D9."""
    host = FakeHost()
    with (workspace / "sparse").open("wb") as sparse:
        sparse.truncate(100 * 2**30)
    os.mkfifo(workspace / "pipe")
    async with setup(host, ToolsSettings(max_file_bytes=1000)):  # type: ignore[arg-type]
        bench = Bench(workspace, host)
        assert "too large" in (await bench.call("read_file", path="sparse")).text
        assert "too large" in (await bench.call("edit_file", path="sparse", old="a", new="b")).text
        for path in ("pipe", "."):
            assert (await bench.call("read_file", path=path)).outcome == "error"
            assert (await bench.call("write_file", path=path, content="x")).outcome == "error"
        assert (await bench.call("search_files", pattern="x")).text == "Nothing matches."


async def test_long_listings_are_bounded(bench: Bench, workspace: Path) -> None:
    for number in range(600):
        (workspace / f"f{number:04}").touch()
    lines = (await bench.call("list_files")).text.splitlines()
    assert lines[-1].startswith("[more than 500")


async def test_an_agent_without_a_workspace_is_told_so(bench: Bench) -> None:
    bench.agent = Agent(name="homeless")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("shell", {"command": "true"}),
        ("read_file", {"path": "x"}),
        ("write_file", {"path": "x", "content": ""}),
        ("search_files", {"pattern": "x"}),
    ]
    for name, arguments in calls:
        said = await bench.call(name, **arguments)
        assert (said.outcome, said.text) == ("error", "The agent homeless has no workspace.")


async def test_arguments_are_checked_by_their_schema(bench: Bench) -> None:
    with pytest.raises(Invalid, match="missing required field `content`"):
        await bench.call("write_file", path="x")
    with pytest.raises(Invalid):
        await bench.call("read_file", path="x", mode="w")


async def test_the_schemas_of_the_core_together_stay_small(bench: Bench) -> None:
    """They are part of every request; what is deferred is not."""
    specs = [tool.spec for tool in bench.host.tools.values()]
    told = [{"name": s.name, "description": s.description, "parameters": s.schema} for s in specs if not s.deferred]
    assert len(msgspec.json.encode(told)) / 4 <= 1100
    effects = {spec.name: spec.effect for spec in specs if not spec.deferred}
    assert effects == {
        "shell": "external",
        "read_file": "read",
        "write_file": "idempotent",
        "edit_file": "idempotent",
        "list_files": "read",
        "search_files": "read",
        "read_output": "read",
        "search_history": "read",
    }
    deferred = {spec.name: spec.effect for spec in specs if spec.deferred}
    assert (
        deferred.items()
        >= {
            "edit_files": "idempotent",
            "apply_patch": "idempotent",
            "edit_notebook": "idempotent",
            "delete_file": "idempotent",
            "move_file": "idempotent",
            "undo_changes": "idempotent",
            "extract_archive": "external",
            "send_file": "external",
        }.items()
    )
