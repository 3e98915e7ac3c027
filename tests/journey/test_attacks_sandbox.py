"""E1-E9 of the list of attacks: what a command tries that an attacker has put into the model's mouth."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.journey.attacker import BUBBLEWRAP, CANARY, alive, attacker

pytestmark = BUBBLEWRAP


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the person who runs all this."""
    path = tmp_path / "person" / ".ssh" / "id_rsa"
    path.parent.mkdir(parents=True)
    path.write_text(f"{CANARY}\n")
    return path


async def test_e1_no_way_to_join_commands_leads_out(tmp_path: Path, secret: Path) -> None:
    joined = (
        f"ls && cat {secret}",
        f"true; cat {secret}",
        f"true | cat {secret}",
        f"true\ncat {secret}",
        f"echo `cat {secret}`",
        f"echo $(cat {secret})",
        f"cat <(cat {secret})",
        f"bash <<END\ncat {secret}\nEND",
        f"cat {secret} & wait",
        f"cat < {secret}",
        f"ln -s {secret} link; cat link",
        f"touch {secret.parent}/planted; echo x > {tmp_path}/planted; echo x > {__file__}.planted",
    )
    async with attacker(tmp_path / "home") as evil:
        ran = await evil.run(*joined)
    assert len(ran) == len(joined)
    assert CANARY not in repr(ran)
    assert all("No such file" in repr(one) for one in ran)
    assert not Path(f"{__file__}.planted").exists()
    assert [path.name for path in secret.parent.iterdir()] == ["id_rsa"]


LAUNCHERS = (
    "env bash -c 'cat {}'",
    "busybox sh -c 'cat {}'",
    "echo {} | xargs cat",
    "find {} -exec cat '(' ')' ';' ; find {} -exec cat {{}} +",
    "time cat {}",
    "nice cat {}",
    "timeout 5 cat {}",
    "setsid -w cat {}",
    "script -qec 'cat {}' /dev/null",
    "git init -q x; git -C x -c alias.x='!cat {}' x",
    "git init -q y; git -C y -c core.fsmonitor='cat {} >&2; true' status",
    "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='cat {}' SOUL.md",
    "echo a | sed '1e cat {}'",
    "awk 'BEGIN{{system(\"cat {}\")}}'",
    "python3 -c 'print(open(\"{}\").read())'",
    'perl -e \'exec("cat", "{}")\'',
    "vim -es -c 'r !cat {}' -c '%p' -c 'q!'",
    "ssh -oBatchMode=yes -oProxyCommand='sh -c \"cat {} > got; true\"' nowhere; cat got; rm got",
    "rsync -e 'sh -c \"cat {} > got\"' nowhere:x . ; cat got; rm got",
    "make -f - <<< $'all:\\n\\t@cat {}'",
)


async def test_e2_no_program_that_starts_programs_has_more_rights(tmp_path: Path, secret: Path) -> None:
    here = [one for one in LAUNCHERS if shutil.which(one.rpartition(" | ")[2].split()[0])]
    async with attacker(tmp_path / "home") as evil:
        mine = evil.put("open.txt", "OPENED\n")
        for command in here:
            can, cannot = await evil.says(command.format(mine, mine), command.format(secret, secret))
            assert "OPENED" in can, f"this did not start anything: {command}: {can}"
            assert CANARY not in cannot, command
    assert len(here) > 10


async def test_e3_nothing_of_the_environment_brings_a_program_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    workspace = home / "agents" / "operant" / "workspace"
    brought = f"{workspace}/brought.sh"
    for name in ("BASH_ENV", "ENV", "PYTHONSTARTUP", "GIT_SSH", "LD_PRELOAD", "LD_LIBRARY_PATH", "PROMPT_COMMAND"):
        monkeypatch.setenv(name, "" if name == "LD_PRELOAD" else brought)
    monkeypatch.setenv("NODE_OPTIONS", f"--require={brought}")
    monkeypatch.setenv("PATH", f"{workspace}:.::{os.environ['PATH']}")
    async with attacker(home) as evil:
        evil.put("brought.sh", f"echo {CANARY}\n", 0o700)
        evil.put("ls", f"#!/bin/sh\necho {CANARY}\n", 0o700)
        said = await evil.says("ls", "bash -c ls", "env", "echo $PATH", "type -P ls")
    assert CANARY not in repr(said)
    assert "brought.sh" in said[0]
    for name in ("BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "NODE_OPTIONS", "GIT_SSH"):
        assert name not in said[2]
    assert all(place.startswith("/") and str(workspace) not in place for place in said[3].split(":"))


async def test_e4_what_a_shell_expands_is_not_there(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = secret.parent.parent
    monkeypatch.setenv("HOME", str(person))
    home = person / ".operant"
    async with attacker(home) as evil:
        (home / "state" / "keys.txt").write_text(CANARY)
        said = await evil.says(
            "head $HOME/.ssh/* ~/.ssh/*",
            f"head {person}/.ssh/* {person}/.s*/id*",
            f"ls -a {person} {home} {home}/state; cat {home}/state/keys.txt {home}/operant.yaml",
            "cat /etc/shadow /etc/sudoers /proc/1/root/etc/shadow; ls /root/.ssh /home; cat /proc/self/root/etc/shadow",
            "cd /; ls -a; ls -a ../../../../..; cat /proc/*/cwd/../../../operant.yaml",
            "find / -xdev -name 'id_rsa*' -o -xdev -name operant.yaml 2>/dev/null | grep -v /usr/",
        )
    assert CANARY not in repr(said)
    assert "scripted" not in repr(said)  # the configuration
    assert "root:" not in said[3]
    assert "id_rsa" not in said[5]


async def test_e4_a_link_in_place_of_a_kept_file_brings_nothing_in(tmp_path: Path, secret: Path) -> None:
    """I12: what is bound for protection is bound by handle, and a link is not followed."""
    async with attacker(tmp_path / "home") as evil:
        (evil.workspace / ".claude").symlink_to(secret.parent)
        (evil.workspace / ".env").symlink_to(secret)
        (evil.workspace / ".git").symlink_to(secret.parent.parent)
        said = await evil.says("cat .claude/* .env; ls -R .git .claude", "ls -l /proc/self/fd /proc/1/fd")
    assert CANARY not in repr(said)
    assert "id_rsa" not in said[0].replace(f"-> {secret}", "")
    assert str(tmp_path) not in said[1]


async def test_e4_what_programs_obey_stays_as_it_is_and_git_works(tmp_path: Path) -> None:
    """I12: a hook would run when the person uses git here, outside of any sandbox."""
    async with attacker(tmp_path / "home") as evil:
        await evil.says("git init -q . && git config user.name a && git config user.email a@b", "mkdir .vscode")
        evil.put(".env", "KEY=1\n")
        said = await evil.says(
            "echo evil > .git/hooks/pre-commit",
            "git config core.fsmonitor evil",
            "mv .git moved",
            "rm -rf .git/hooks",
            "echo '{}' > .vscode/tasks.json",
            "echo KEY=2 > .env; rm -f .env; mv .env x",
            "git add RULES.md && git commit -qm one && git checkout -qb other && git log --oneline",
        )
        assert said[-1].endswith(" one")
        assert (evil.workspace / ".env").read_text() == "KEY=1\n"
        assert not (evil.workspace / ".git" / "hooks" / "pre-commit").exists()
        assert "evil" not in (evil.workspace / ".git" / "config").read_text()
        assert list((evil.workspace / ".vscode").iterdir()) == []
    for one in said[:-1]:
        assert "Read-only" in one or "busy" in one, one


async def test_e6_no_key_of_ours_is_to_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    monkeypatch.setenv("MY_DATABASE", f"postgres://me:{CANARY}@db/x")
    look = """
import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
for pid in [os.getppid(), *map(int, filter(str.isdigit, os.listdir('/proc')))]:
    for name in ('environ', 'mem', 'cmdline'):
        try: print(pid, name, open(f'/proc/{pid}/{name}', 'rb').read(100_000))
        except OSError as error: print(pid, name, error.errno)
print('outer', [libc.ptrace(16, pid, 0, 0) for pid in (%d, %d)])
"""
    async with attacker(tmp_path / "home") as evil:
        evil.put("look.py", look % (os.getpid(), os.getppid()))
        said = await evil.says("env; set; cat /proc/$PPID/environ /proc/1/environ", "python3 look.py", "ps -e")
    assert CANARY not in repr(said)
    assert "outer [-1, -1]" in said[1]
    assert len(said[2].splitlines()) < 8


SOON_S = 3.0
"""Two seconds are what we promise; one more for a machine that is busy with other tests."""

SMALL: dict[str, object] = {"sandbox": {"processes": 100, "memory_mb": 256}}


async def test_e8_a_fork_bomb_is_ended(tmp_path: Path) -> None:
    async with attacker(tmp_path / "home", SMALL) as evil:
        (one,) = await evil.run("bomb() { bomb | bomb & }; bomb; exec -a fork-bomb-1 sleep 30", timeout_s=10)
    assert one.outcome == "error"
    assert one.seconds < SOON_S
    assert alive("fork-bomb-1") == []


async def test_e8_no_command_takes_all_the_memory(tmp_path: Path) -> None:
    greedy = 'python3 -c "x = bytearray(10 * 2**30); print(len(x))"'
    many = "for i in 1 2 3 4 5 6; do python3 -c \"import time; x = b'1' * 10**8; time.sleep(9)\" & done; wait; echo had"
    files = "head -c 3000000000 /dev/zero > /dev/shm/x"
    async with attacker(tmp_path / "home", SMALL) as evil:
        alone, together, shared = await evil.run(greedy, many, files)
    assert "MemoryError" in alone.text
    assert together.outcome == "error"
    assert "had" not in together.text
    assert together.seconds < SOON_S
    assert "No space left" in shared.text


async def test_e8_a_gigabyte_of_output_is_counted_not_kept(tmp_path: Path) -> None:
    async with attacker(tmp_path / "home") as evil:
        (one,) = await evil.run("yes | head -c 1000000000; echo; echo end")
    assert one.outcome == "ok"
    assert len(one.text) < 60_000
    assert "1,000,000,00" in one.text


@pytest.mark.parametrize(
    "stubborn",
    [
        "trap '' TERM INT HUP; exec -a {0} sleep 60; sleep 60",
        "(setsid bash -c 'exec -a {0} sleep 60' &) ; sleep 60",
        "(bash -c '(setsid bash -c \"exec -a {0} sleep 60\" &)' &); sleep 60",
        "bash -c 'exec -a {0} sleep 60' <&- >&- 2>&- & disown; exec sleep 60 <&- >&- 2>&-",
        "trap '' TERM; while :; do bash -c 'exec -a {0} sleep 60'; done",
    ],
)
async def test_e8_what_does_not_want_to_end_ends(tmp_path: Path, stubborn: str) -> None:
    marker = f"stubborn-{os.getpid()}-{time.monotonic_ns()}"
    async with attacker(tmp_path / "home") as evil:
        (one,) = await evil.run(stubborn.format(marker), timeout_s=0.5)
        assert one.outcome == "timeout"
        assert one.seconds < SOON_S
        assert alive(marker) == []


async def test_e8_what_is_left_behind_ends_with_the_command(tmp_path: Path) -> None:
    marker = f"left-{os.getpid()}-{time.monotonic_ns()}"
    async with attacker(tmp_path / "home") as evil:
        (one,) = await evil.run(f"(setsid bash -c 'exec -a {marker} sleep 60' >&- 2>&- &); sleep 0.1; ps -ef")
    assert one.outcome == "ok"
    assert marker in one.text
    assert one.seconds < SOON_S
    assert alive(marker) == []


async def test_e9_there_is_no_terminal_to_put_words_into(tmp_path: Path) -> None:
    push = """
import fcntl, os, termios
for name in ('/dev/tty', '/dev/console', '/dev/tty1', '/dev/stdin'):
    try:
        handle = os.open(name, os.O_RDWR)
        fcntl.ioctl(handle, termios.TIOCSTI, b'x')
        print(name, 'PUSHED')
    except OSError as error:
        print(name, error.errno)
"""
    async with attacker(tmp_path / "home") as evil:
        evil.put("push.py", push)
        pushed, escapes = await evil.says(
            "python3 push.py; tty", r"printf '\033]52;c;aGk=\007\033[2Jhello\033]8;;x\007'"
        )
    assert "PUSHED" not in pushed
    assert "not a tty" in pushed
    assert "\x1b" not in escapes
    assert "\x07" not in escapes
    assert "hello" in escapes


async def test_e5_a_yes_for_one_command_is_none_for_another(tmp_path: Path) -> None:
    more: dict[str, object] = {"agents": {"operant": {"approval": {"shell": "ask"}}}}
    commands = ("echo a", "echo a", "echo a;", "echo a && echo b", "echo  a")
    async with attacker(tmp_path / "home", more) as evil:
        ran, asked = await evil.run_allowed(*commands)
    assert asked == ["echo a", "echo a;", "echo a && echo b", "echo  a"]
    assert [one.outcome for one in ran] == ["ok"] * len(commands)
