"""What needs nothing imports nothing, and what is typed wrong is one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import Operant

_LOADED = (
    "import sys\nfrom operant.cli.main import main\nmain({words!r})\n"
    "print(' '.join(sorted(sys.modules)), file=sys.stderr)"
)


def loaded_by(*words: str, env: dict[str, str] | None = None) -> set[str]:
    """Return the modules that a command imports."""
    code = _LOADED.format(words=list(words))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True, env=env)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("version",), ("--version",)])
def test_the_version_is_told_before_any_library_is_imported(words: tuple[str, ...]) -> None:
    loaded = loaded_by(*words)
    ours = {name for name in loaded if name.startswith("operant")}
    assert ours == {"operant", "operant.cli", "operant.cli.main"}
    assert not loaded & {"click", "msgspec", "asyncio", "json"}


def test_help_imports_click_and_nothing_else() -> None:
    loaded = loaded_by("--help")
    ours = {name for name in loaded if name.startswith("operant")}
    assert ours == {"operant", "operant.cli", "operant.cli.main", "operant.cli.commands"}
    assert not loaded & {"msgspec", "asyncio", "rich", "prompt_toolkit", "yaml", "aiohttp"}


def test_with_a_daemon_a_list_needs_neither_a_loop_nor_a_store(served: Operant) -> None:
    loaded = loaded_by("session", "list", env=served.env)
    assert "operant.app.ask" in loaded
    assert not loaded & {"asyncio", "apsw", "yaml", "aiohttp", "rich", "prompt_toolkit", "operant.app.build"}


def test_help_lists_every_command_and_every_command_has_help(operant: Operant) -> None:
    from operant.cli.commands import SECTIONS

    text = operant("--help").out
    for section in SECTIONS.values():
        for name in section:
            assert f"  {name} " in text
            shown = operant(name, "--help")
            assert shown.code == 0, shown.err
            assert "Usage: operant " + name in shown.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sesion", "list"), "Did you mean 'session'?"),
        (("session", "lst"), "list"),
        (("session", "show"), "Missing argument"),
        (("run",), "Missing argument"),
        (("usage", "--range", "9d"), "9d"),
        (("--nothing",), "--nothing"),
        (("tool", "run", "shell", "{broken"), "not JSON"),
        (("run", "  "), "empty"),
    ],
)
def test_wrong_usage_is_one_line_and_2(operant: Operant, words: tuple[str, ...], says: str) -> None:
    ran = operant(*words)
    assert ran.code == 2
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_a_model_of_nobody_is_said_once(operant: Operant) -> None:
    operant("init")
    (operant.home / "operant.yaml").write_text("defaults: {models: [nowhere/one]}\n")
    ran = operant("run", "hello")
    assert ran.code == 1
    assert (ran.out + ran.err).count("Configure it under providers") == 1


def test_a_group_alone_shows_its_help(operant: Operant) -> None:
    ran = operant("a2a")
    assert (ran.code, ran.out) == (2, "")
    assert "\nCommands:\n  list " in ran.err
    assert "See: operant" not in ran.err


def test_an_editors_command_without_an_editor_is_one_line(operant: Operant) -> None:
    pytest.importorskip("acp", reason="the extra acp is not installed")
    with Path("/dev/null").open() as nothing:
        ran = subprocess.run(
            [sys.executable, "-m", "operant", "acp"],
            stdin=nothing, env=operant.env, capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert "An editor starts this command." in ran.stderr


def test_version_can_be_data(operant: Operant) -> None:
    assert set(operant("version", "--json").json()) == {"version", "python", "platform"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_completes(operant: Operant, shell: str) -> None:
    script = operant("completion", shell)
    assert "_OPERANT_COMPLETE" in script.out
    words = (
        {"COMP_WORDS": "operant ses", "COMP_CWORD": "1"}
        if shell != "fish"
        else {"COMP_WORDS": "operant ses", "COMP_CWORD": "ses"}
    )
    assert "session" in operant(_OPERANT_COMPLETE=f"{shell}_complete", **words).out


def test_a_closed_pipe_is_quiet(operant: Operant) -> None:
    done = subprocess.run(
        f"{sys.executable} -m operant config keys | head -1",
        shell=True,
        env=operant.env,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_what_nobody_foresaw_is_one_line_too(operant: Operant) -> None:
    code = (
        "import sys, operant.cli.here as here\n"
        "def broken(): raise ZeroDivisionError('by design')\n"
        "here.home = broken\n"
        "from operant.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, env=operant.env, capture_output=True, text=True, timeout=20, check=False)

    crashed = run("config", "path")
    assert crashed.returncode == 1
    assert crashed.stderr.count("\n") == 1
    assert "--debug" in crashed.stderr
    assert "Traceback" in run("config", "path", "--debug").stderr


def test_options_for_all_commands_stand_anywhere(operant: Operant) -> None:
    elsewhere = operant.home.parent / "elsewhere"
    assert operant("config", "path", "--home", str(elsewhere)).out.strip() == str(elsewhere / "operant.yaml")
    assert operant("--home", str(elsewhere), "config", "path").out.strip() == str(elsewhere / "operant.yaml")
