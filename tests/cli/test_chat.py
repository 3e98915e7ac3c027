"""The chat, in a terminal and through pipes."""

import os
import signal

import pytest

from tests.cli.process import Operant, Terminal


@pytest.fixture
def home(operant: Operant) -> Operant:
    """Return a home whose shell asks."""
    operant("init")
    return operant


def settled(terminal: Terminal) -> None:
    """Wait for an empty input line."""
    terminal.wait("/help · Ctrl-D leaves")


def test_a_tool_is_asked_about_runs_and_is_shown(home: Operant) -> None:
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type('run "echo from the shell"\r')
        text = terminal.wait("y once")
        assert "command: echo from the shell" in text

        terminal.type("maybe\r")
        terminal.type("\x15y\r")
        terminal.wait("✓ shell  echo from the shell")
        terminal.wait("2 steps")
        assert "✓ allowed" in terminal.text

        terminal.type("\x04")
        assert terminal.end() == 0


def test_ctrl_c_stops_the_turn_and_not_the_program(home: Operant) -> None:
    home.allow(shell="allow")
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type('run "echo begun; sleep 60"\r')
        terminal.wait("  begun")
        terminal.type("\x03")
        terminal.wait("■ stopped")

        terminal.type('run "echo usable"\r')
        terminal.wait("✓ shell  echo usable")
        settled(terminal)

        terminal.type("\x03")
        terminal.wait("Ctrl-C again leaves")
        terminal.type("\x03")
        assert terminal.end() == 0


def test_a_denial_with_a_reason_reaches_the_model(home: Operant) -> None:
    with home.terminal("chat", "--session", "d") as terminal:
        settled(terminal)
        terminal.type('run "echo no"\r')
        terminal.wait("y once")
        terminal.type("n not on a Friday\r")
        terminal.wait("✗ denied: not on a Friday")
        terminal.wait("2 steps")
    events = home("session", "show", "d", "--json").json()["events"]
    ended = [event["body"] for event in events if event["type"] == "tool.ended"]
    assert ended[0]["outcome"] == "denied"
    assert "not on a Friday" in ended[0]["parts"][0]["text"]


def test_a_yes_for_the_session_is_asked_for_once(home: Operant) -> None:
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type('run "echo again"\r')
        terminal.wait("y once")
        terminal.type("s\r")
        terminal.wait("2 steps")
        terminal.type('run "echo again"\r')
        terminal.wait(lambda text: text.count("✓ shell  echo again") == 2)
        assert terminal.text.count("✓ allowed") == 1


def test_what_is_typed_while_it_works_steers_it(home: Operant) -> None:
    home.allow(shell="allow")
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type('run "echo begun; sleep 1"\r')
        terminal.wait("  begun")
        terminal.type("help\r")
        terminal.wait("it will see this at its next step")
        terminal.wait("I am the offline model")


def test_lines_are_edited_over_several_rows(home: Operant) -> None:
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type("list files\x1b\rhelp")
        terminal.wait("  help")
        terminal.type("\r")
        terminal.wait("✓ list_files")


def test_commands_are_completed_and_carried_out(home: Operant) -> None:
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type("/")
        terminal.wait("show what this session has used")
        terminal.type("usage\r")
        terminal.wait("this session: 0 model calls")
        settled(terminal)  # keys between two input lines belong to the terminal, not to us
        terminal.type("/nwe\r")
        terminal.wait("Did you mean /new?")
        terminal.type("/new\r")
        terminal.wait("a new session")
        terminal.type("/sessions\r")
        terminal.wait("  main ")
        terminal.type("/model\r")
        terminal.wait("providers: ")
        terminal.type("/trace\r")
        terminal.wait("nothing has happened yet")
        terminal.type("/stop\r")
        terminal.wait("nothing is running")
        terminal.type("/quit\r")
        assert terminal.end() == 0


def test_escape_sequences_of_tools_do_not_reach_the_terminal(home: Operant) -> None:
    home.allow(shell="allow")
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type("run \"printf '\\\\033]0;owned\\\\007\\\\033[2Jplain\\\\n'\"\r")
        terminal.wait("2 steps")
        assert b"\x1b]0;owned" not in terminal.raw
        assert "plain" in terminal.text


def test_a_killed_program_finishes_its_turn_when_it_is_back(home: Operant) -> None:
    home.allow(shell="allow")
    with home.terminal() as terminal:
        settled(terminal)
        terminal.type('run "sleep 30" then run "echo after"\r')
        terminal.wait("shell  sleep 30")
        os.kill(terminal.program.pid, signal.SIGKILL)
        terminal.end()
    with home.terminal() as terminal:
        text = terminal.wait("✓ shell  echo after")
        assert 'run "sleep 30" then run "echo after"' in text
        terminal.wait("! shell")
        settled(terminal)


def test_a_chat_goes_on_when_the_daemon_is_killed(home: Operant) -> None:
    home.allow(shell="allow")
    with home.serving() as daemon, home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type('run "sleep 30" then run "echo finished here"\r')
        terminal.wait("shell  sleep 30")
        daemon.kill()
        terminal.wait("✓ shell  echo finished here")


def test_a_question_from_before_a_restart_is_asked_again(home: Operant) -> None:
    with home.terminal() as terminal:
        settled(terminal)
        terminal.type('run "echo later"\r')
        terminal.wait("y once")
        os.kill(terminal.program.pid, signal.SIGKILL)
        terminal.end()
    with home.terminal() as terminal:
        terminal.wait("command: echo later")
        terminal.wait("y once")
        terminal.type("y\r")
        terminal.wait("✓ shell  echo later")


def test_the_history_of_lines_is_private_and_kept(home: Operant) -> None:
    with home.terminal("chat") as terminal:
        settled(terminal)
        terminal.type("list files\r")
        terminal.wait("✓ list_files")
    path = home.home / "state" / "chat_history"
    assert oct(path.stat().st_mode)[-3:] == "600"
    assert "list files" in path.read_text()


def test_starting_says_which_model_answers_and_why(home: Operant) -> None:
    with home.terminal() as terminal:
        terminal.wait("offline model")


def test_through_pipes_a_line_is_a_message_and_the_next_an_answer(home: Operant) -> None:
    ran = home("chat", stdin='run "echo piped"\ny\nlist files\n/usage\n')
    assert ran.code == 0, ran.err
    assert "? May operant use shell" in ran.out
    assert "✓ shell  echo piped" in ran.out
    assert "✓ list_files" in ran.out
    assert "\x1b" not in ran.out


def test_pipes_that_end_with_a_question_say_how_to_answer_it(home: Operant) -> None:
    with home.serving():
        ran = home("chat", stdin='run "echo open"\n')
        assert "operant approval allow" in ran.out
        assert home("approval", "deny", "last", "not now").code == 0


def test_run_in_a_terminal_asks_there(home: Operant) -> None:
    with home.terminal("run", 'run "echo asked here"') as terminal:
        terminal.wait("command: echo asked here")
        terminal.type("y\n")
        terminal.wait("✓ shell  echo asked here")
        assert terminal.end() == 0


def test_ctrl_c_stops_a_run(home: Operant) -> None:
    home.allow(shell="allow")
    with home.terminal("run", 'run "sleep 60"', "--session", "r") as terminal:
        assert any(_runs(home) for _ in range(100))
        terminal.program.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    assert home("session", "show", "r", "--json").json()["events"][-1]["body"]["reason"] == "stopped"


def _runs(home: Operant) -> bool:
    shown = home("session", "show", "r", "--json")
    return shown.code == 0 and any(event["type"] == "tool.started" for event in shown.json()["events"])
