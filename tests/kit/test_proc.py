"""A program runs with its whole tree, and nothing of it is left (R23)."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import sys
import time
from pathlib import Path

import pytest

from operant.kit import proc

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
pidfd_open = getattr(os, "pidfd_open", None)  # a test takes it away
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs the warden")


async def sh(command: str, cwd: Path, timeout_s: float = 20.0, **more) -> proc.Finished:
    finished = await proc.run(["/bin/sh", "-c", command], cwd=str(cwd), env=ENV, timeout_s=timeout_s, **more)
    finished.output.close()
    return finished


def alive(pids: str) -> list[int]:
    """Return those processes that still run."""
    found = []
    for pid in (int(word) for word in pids.split()):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            continue
        if state not in "ZX":
            found.append(pid)
    return found


async def die(pids: str) -> None:
    """Wait until processes are gone, two seconds each at most."""
    assert pidfd_open
    for pid in (int(word) for word in pids.split()):
        try:
            handle = pidfd_open(pid)
        except ProcessLookupError:
            continue
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        gone = await asyncio.to_thread(poller.poll, 2000)
        os.close(handle)
        assert gone, f"process {pid} runs on"


class Heard:
    """Listen to a program until it says that it is ready."""

    def __init__(self) -> None:
        self.text = ""
        self.ready = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.text += text
        if "ready\n" in self.text:
            self.ready.set()

    @property
    def pids(self) -> str:
        return self.text.replace("ready", "")


async def test_both_streams_arrive_in_order_with_the_exit_code(tmp_path: Path) -> None:
    finished = await sh("echo one; echo two >&2; echo three; exit 3", tmp_path)
    assert (finished.output.head, finished.code, finished.signal) == ("one\ntwo\nthree\n", 3, 0)


async def test_a_signal_is_not_an_exit_code(tmp_path: Path) -> None:
    finished = await sh("kill -9 $$", tmp_path)
    assert (finished.code, finished.signal) == (None, 9)


async def test_it_has_no_input_no_terminal_and_a_session_of_its_own(tmp_path: Path) -> None:
    finished = await sh("cat; test -t 0 -o -t 1 || echo no terminal; ps -o sid= -p $$ | tr -d ' '; echo $$", tmp_path)
    words = finished.output.head.split("\n")
    assert words[0] == "no terminal"
    assert words[1] == words[2] != str(os.getsid(0))


async def test_it_inherits_no_open_file(tmp_path: Path) -> None:
    canary = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(canary, True)
    try:
        finished = await sh("ls -l /proc/self/fd", tmp_path)
    finally:
        os.close(canary)
    assert str(tmp_path) not in finished.output.head


async def test_the_environment_is_exactly_what_was_given(tmp_path: Path) -> None:
    for given in ({"PATH": "/usr/bin:/bin"}, {"A": "1", "LC_CTYPE": "C"}):
        finished = await proc.run(["/usr/bin/env"], cwd=str(tmp_path), env=given, timeout_s=5)
        assert dict(line.split("=", 1) for line in finished.output.head.splitlines()) == given


async def test_programs_that_cannot_start_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(proc.CannotStart, match="No such file"):
        await proc.run(["/no/such/program"], cwd=str(tmp_path), env=ENV, timeout_s=5)
    with pytest.raises(proc.CannotStart, match="No such file"):
        await proc.run(["/bin/true"], cwd=str(tmp_path / "nowhere"), env=ENV, timeout_s=5)
    (tmp_path / "plain").write_text("no program")
    with pytest.raises(proc.CannotStart, match="denied"):
        await proc.run([str(tmp_path / "plain")], cwd=str(tmp_path), env=ENV, timeout_s=5)


async def test_a_timeout_comes_in_time_and_keeps_what_was_said(tmp_path: Path) -> None:
    begun = time.monotonic()
    finished = await sh("echo before; sleep 60", tmp_path, timeout_s=0.5)
    assert finished.timed_out
    assert finished.output.head == "before\n"
    assert time.monotonic() - begun < 1.5


async def test_what_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    begun = time.monotonic()
    command = "trap '' TERM; echo $$; sleep 60 & echo $!; wait; sleep 60"
    finished = await sh(command, tmp_path, timeout_s=0.3)
    assert finished.timed_out
    assert time.monotonic() - begun < 1.6
    assert len(finished.output.head.split()) == 2
    assert alive(finished.output.head) == []


async def test_it_may_tidy_up_on_sigterm(tmp_path: Path) -> None:
    finished = await sh("trap 'echo tidied; exit 7' TERM; sleep 60 & wait", tmp_path, timeout_s=0.3)
    assert finished.timed_out
    assert finished.output.head == "tidied\n"


@LINUX
@pytest.mark.parametrize(
    "escape",
    [
        "sleep 60 &",
        "setsid sleep 60 &",
        "(setsid setsid sleep 60 &)",
        "nohup setsid env -i /bin/sleep 60 >/dev/null 2>&1 &",
        "setsid sh -c 'trap \"\" TERM HUP; sleep 60 & sleep 60; sleep 60' &",
    ],
)
async def test_nothing_outlives_the_command(tmp_path: Path, escape: str) -> None:
    """Also what left its group and its session, was orphaned, and forgot its environment."""
    ours = f"sleep 60.{os.getpid()}"  # other tests run beside this one
    find = f"ps -e -o pid=,args= | awk '/{ours}/ {{print $1}}'"
    finished = await sh(f"{escape.replace('sleep 60', ours)}\nsleep 0.1\n{find}", tmp_path)
    assert len(finished.output.head.split()) > 1
    assert finished.duration_s < 2
    assert alive(finished.output.head) == []


@LINUX
async def test_a_fork_bomb_ends_with_its_command(tmp_path: Path) -> None:
    command = "grow() { while :; do (sleep 9 & echo $!) & sleep 0.02; done; }; grow"
    finished = await sh(command, tmp_path, timeout_s=0.6)
    assert finished.timed_out
    assert len(finished.output.head.split()) > 5
    assert alive(finished.output.head) == []


async def test_cancelling_kills_the_tree_within_a_second(tmp_path: Path) -> None:
    heard = Heard()
    stubborn = "trap '' TERM; sleep 60; sleep 60"
    command = f'setsid sh -c "{stubborn}" & echo $$ $!; echo ready; {stubborn}'
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sh(command, tmp_path, on_output=heard))
        await heard.ready.wait()
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert time.monotonic() - begun < 1.0
    assert alive(heard.pids) == []


async def test_being_cancelled_again_does_not_cut_the_killing_short(tmp_path: Path) -> None:
    heard = Heard()
    command = "trap '' TERM; echo $$; echo ready; sleep 60; sleep 60; sleep 60"
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sh(command, tmp_path, on_output=heard))
        await heard.ready.wait()
        loop = asyncio.get_running_loop()
        for delay in (0.0, 0.05, 0.1):
            loop.call_later(delay, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert alive(heard.pids) == []


async def test_cancelling_at_the_very_start_leaves_nothing(tmp_path: Path) -> None:
    ours = f"sleep 61.{os.getpid()}"
    for turns in range(30):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(sh(f"exec {ours}", tmp_path))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    left = await sh(f"ps -e -o pid=,args= | grep '[s]{ours[1:]}' | awk '{{print $1}}'", tmp_path)
    await die(left.output.head)


@LINUX
async def test_when_we_are_killed_the_program_dies_too(tmp_path: Path) -> None:
    """A command that ran on after a crash would do its work beside the one that repeats it."""
    ours = (
        "import asyncio, os; from operant.kit import proc; asyncio.run(proc.run(['/bin/sh', '-c', "
        "'setsid sleep 60 & echo $$ $!; sleep 60; sleep 60'], on_output=lambda text: os.write(1, text.encode()),"
        " cwd=os.getcwd(), env={'PATH': os.environ['PATH']}, timeout_s=60))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ours, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    pids = (await process.stdout.readline()).decode()
    assert len(alive(pids)) == 2
    process.kill()
    await process.wait()
    await die(pids)


@LINUX
async def test_killing_its_warden_frees_nobody_of_its_group(tmp_path: Path) -> None:
    finished = await sh("echo $$; sleep 60 & echo $!; kill -9 $PPID; sleep 60; sleep 60", tmp_path)
    assert (finished.code, finished.signal) == (None, 9)
    await die(finished.output.head)


async def test_a_flood_is_kept_to_its_ends_and_a_spool_and_does_not_starve_the_loop(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loop = asyncio.get_running_loop()
    late = 0.0

    def tick(due: float) -> None:
        nonlocal late, timer
        late = max(late, loop.time() - due)
        timer = loop.call_later(0.001, tick, loop.time() + 0.001)

    timer: asyncio.Handle = loop.call_soon(tick, loop.time())
    shown: list[str] = []
    limits = proc.Limits(spool_bytes=1_000_000)
    argv = ["/bin/sh", "-c", "echo begin; yes | head -c 300000000; echo end"]
    finished = await proc.run(argv, cwd=str(tmp_path), env=ENV, timeout_s=50, on_output=shown.append, limits=limits)
    timer.cancel()
    output = finished.output
    assert output.total == 300_000_010
    assert output.head.startswith("begin\ny\n")
    assert output.tail.endswith("y\nend\n")
    assert len(output.head) == len(output.tail) == limits.memory_bytes
    assert len(output.whole()) == output.kept == 1_000_000
    output.close()
    assert len("".join(shown)) < limits.live_bytes + 100
    assert late < 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


async def test_a_flood_that_nobody_ends_is_ended_by_its_deadline(tmp_path: Path) -> None:
    finished = await sh("trap '' TERM; yes", tmp_path, timeout_s=0.4)
    assert finished.timed_out
    assert finished.duration_s < 1.5


async def test_many_at_once_keep_apart(tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(sh(f"echo {number}; exit {number}", tmp_path)) for number in range(20)]
    for number, task in enumerate(tasks):
        assert (task.result().output.head, task.result().code) == (f"{number}\n", number)


async def test_bytes_that_are_no_text_become_replacement_characters(tmp_path: Path) -> None:
    shown: list[str] = []
    finished = await sh(r"printf 'a\377\000b\303'; printf '\251'", tmp_path, on_output=shown.append)
    assert finished.output.head == "a\ufffd\x00bé"
    assert "".join(shown) == finished.output.head


async def test_no_core_is_dumped_and_limits_hold(tmp_path: Path) -> None:
    assert (await sh("ulimit -c", tmp_path)).output.head == "0\n"
    limits = proc.Limits(rlimits=((resource.RLIMIT_NOFILE, 64),))
    assert (await sh("ulimit -n", tmp_path, limits=limits)).output.head == "64\n"


async def test_the_spool_has_no_name_that_could_be_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10: nothing stands in the temporary directory, neither before nor after."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    limits = proc.Limits(memory_bytes=10)
    finished = await proc.run(["/bin/sh", "-c", "yes | head -c 5000"], cwd="/", env=ENV, timeout_s=5, limits=limits)
    assert list(tmp_path.iterdir()) == []
    assert len(finished.output.whole()) == 5000
    finished.output.close()


async def test_a_disk_that_takes_nothing_costs_only_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    for broken in (lambda **how: full.open("r+b", **how), lambda **how: full.joinpath("x").open("r+b", **how)):
        monkeypatch.setattr("tempfile.TemporaryFile", broken)
        finished = await sh("echo begin; yes | head -c 500000; echo end", tmp_path)
        assert (finished.code, finished.output.total, finished.output.kept) == (0, 500_010, 0)
        assert finished.output.head.startswith("begin\n")
        assert finished.output.tail.endswith("end\n")


class TestWithoutWarden:
    """Other POSIX systems: the process group is what can be ended."""

    @pytest.fixture(autouse=True)
    def no_warden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "pidfd_open", raising=False)

    async def test_streams_codes_and_signals(self, tmp_path: Path) -> None:
        finished = await sh("echo one; echo two >&2; exit 3", tmp_path)
        assert (finished.output.head, finished.code, finished.signal) == ("one\ntwo\n", 3, 0)
        finished = await sh("kill -9 $$", tmp_path)
        assert (finished.code, finished.signal) == (None, 9)
        with pytest.raises(proc.CannotStart):
            await proc.run(["/no/such"], cwd=str(tmp_path), env=ENV, timeout_s=5)

    async def test_the_group_ends_at_the_deadline(self, tmp_path: Path) -> None:
        finished = await sh("trap '' TERM; echo $$; sleep 60 & echo $!; wait; sleep 60", tmp_path, timeout_s=0.3)
        assert finished.timed_out
        assert finished.duration_s < 1.3
        await die(finished.output.head)

    async def test_what_is_left_behind_ends_with_the_command(self, tmp_path: Path) -> None:
        finished = await sh("sleep 60 & echo $!", tmp_path)
        await die(finished.output.head)

    async def test_who_escapes_and_holds_the_output_open_holds_nobody_up(self, tmp_path: Path) -> None:
        finished = await sh("setsid sh -c 'echo $$; sleep 3' & sleep 0.2", tmp_path)
        assert finished.duration_s < 1.5
        os.kill(int(finished.output.head), 9)

    async def test_cancelling_kills_within_a_second(self, tmp_path: Path) -> None:
        heard = Heard()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(
                sh("trap '' TERM; echo $$; echo ready; sleep 60; sleep 60", tmp_path, on_output=heard)
            )
            await heard.ready.wait()
            begun = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert time.monotonic() - begun < 1.0
        await die(heard.pids)
