"""Commands that print data: the same with and without a daemon, as words and as JSON."""

import json

import pytest

from tests.cli.process import Operant


@pytest.fixture(scope="module")
def talked(served: Operant) -> Operant:
    """Return a home in which something has happened."""
    assert served("run", 'run "echo one two"', "--session", "first").code == 0
    return served


def test_run_prints_the_answer_and_nothing_else(served: Operant) -> None:
    ran = served("run", 'run "echo hello there"')
    assert ran.code == 0
    assert "hello there" in ran.out
    assert ran.err == ""


def test_run_reads_the_prompt_from_standard_input(served: Operant) -> None:
    assert "from a pipe" in served("run", "-", stdin='run "echo from a pipe"').out


def test_run_as_data(served: Operant) -> None:
    told = served("run", 'run "echo hi"', "--json").json()
    assert set(told) == {"response", "session", "turn", "model", "reason", "steps", "usage"}
    assert told["reason"] == "done"
    assert told["steps"] == 2
    assert told["usage"]["calls"] == 2
    assert told["model"].startswith("offline/")


def test_run_goes_on_with_a_session(served: Operant) -> None:
    first = served("run", "help", "--json", "--session", "again").json()
    second = served("run", "help", "--json", "--session", "again").json()
    assert first["session"] == second["session"] == "again"
    assert first["turn"] != second["turn"]


def test_run_stops_at_its_time_limit(served: Operant) -> None:
    ran = served("run", 'run "sleep 60"', "--timeout", "0.5", "--session", "slow")
    assert ran.code == 1
    assert "Stopped after 0.5 s" in ran.err
    assert served("session", "show", "slow", "--json").json()["events"][-1]["body"]["reason"] == "stopped"


def test_run_with_a_model_that_is_not_there(served: Operant) -> None:
    ran = served("run", "hi", "--model", "nobody/nothing")
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "nobody" in ran.err


def test_a_question_without_a_terminal_is_3_and_says_how_to_answer(operant: Operant) -> None:
    with operant.serving():
        ran = operant("run", 'run "echo asked"', "--session", "q")
        assert ran.code == 3
        assert ran.err.count("\n") == 1
        command = ran.err.strip().partition("operant approval ")[2].split()
        assert command[0] == "allow"

        (waiting,) = operant("approval", "list", "--json").json()
        assert waiting["arguments"]["command"] == "echo asked"
        assert "echo asked" in operant("approval", "list").out

        assert operant("approval", *command).code == 0
        assert operant("approval", "list", "--json").json() == []
        assert operant("approval", *command).code == 4


def test_sessions_are_listed_and_shown(talked: Operant) -> None:
    sessions = talked("session", "list", "--json").json()
    (one,) = [session for session in sessions if session["key"] == "first"]
    assert one["agent"] == "operant"
    assert one["events"] > 0
    assert "first" in talked("session", "list").out

    shown = talked("session", "show", "first", "--json").json()
    assert shown["events"][0]["type"] == "session.opened"
    assert "echo one two" in talked("session", "show", "first").out
    assert "tool.ended" in talked("session", "show", "first", "--all").out


def test_a_session_that_is_not_there_is_4(served: Operant) -> None:
    for words in (("show", "nope"), ("stop", "nope"), ("fork", "nope"), ("erase", "nope", "--yes")):
        ran = served("session", *words)
        assert ran.code == 4, words
        assert ran.err.count("\n") == 1
        assert "nope" in ran.err


def test_a_session_goes_out_and_comes_back(talked: Operant) -> None:
    exported = talked("session", "export", "first")
    assert json.loads(exported.out)["format"]
    again = talked("session", "import", "-", "--as", "second", "--json", stdin=exported.out)
    assert again.code == 0, again.err
    assert again.json()["key"] == "second"
    assert talked("session", "import", "-", stdin="{}").code == 2


def test_a_session_is_copied_put_away_and_erased(talked: Operant) -> None:
    copy = talked("session", "fork", "first", "--json").json()["key"]
    assert talked("session", "archive", copy).code == 0
    assert copy not in {one["key"] for one in talked("session", "list", "--json").json()}
    assert talked("session", "erase", copy).code == 2
    assert talked("session", "erase", copy, "--yes").code == 0
    assert talked("session", "show", copy).code == 4


def test_words_are_found(talked: Operant) -> None:
    hits = talked("session", "search", "one", "two", "--json").json()
    assert any(hit["session"] == "first" for hit in hits)


def test_tools_are_listed_and_run(served: Operant) -> None:
    assert "shell" in {tool["name"] for tool in served("tool", "list", "--json").json()}
    ran = served("tool", "run", "shell", '{"command": "echo by hand"}')
    assert ran.code == 0
    assert "by hand" in ran.out
    assert served("tool", "run", "shell", '{"command": "exit 3"}').code == 1
    assert served("tool", "run", "nothing").code == 4


def test_the_trace_is_a_timeline(talked: Operant) -> None:
    told = talked("trace", "first", "--json").json()
    kinds = [entry["kind"] for entry in told["turns"][0]["entries"] if entry["kind"] != "note"]
    assert kinds == ["you", "step", "tool", "step", "reply"]
    text = talked("trace", "first").out
    assert "step 1" in text
    assert "shell echo one two" in text
    assert "where the time went" in text


def test_the_trace_names_the_byte_at_which_a_prompt_changed(operant: Operant) -> None:
    operant("run", "help", "--session", "edited")
    with (operant.home / "agents/operant/AGENT.md").open("a") as file:
        file.write("Speak like a pirate.\n")
    operant("run", "help", "--session", "edited")

    (broken,) = operant("trace", "edited", "--json").json()["turns"][1]["breaks"]

    assert broken["part"] == "system"
    assert broken["byte"] > 0
    assert "pirate" in broken["text"]
    assert "pirate" in operant("trace", "edited").out


def test_an_accepted_message_is_explained(talked: Operant) -> None:
    events = talked("session", "show", "first", "--json").json()["events"]
    inbox_id = next(event["body"]["inbox_id"] for event in events if event["type"] == "message.received")
    assert talked("trace", "--message", inbox_id, "--json").json()["state"] in ("answered", "delivered")
    assert "accepted" in talked("trace", "--message", inbox_id).out
    assert talked("trace", "--message", "nope").code == 4


def test_usage_is_summed(talked: Operant) -> None:
    used = talked("usage", "--json").json()
    assert used["total"]["calls"] == sum(row["usage"]["calls"] for row in used["rows"])
    assert used["total"]["calls"] >= 2
    assert "total" in talked("usage", "--range", "today").out


def test_values_are_kept(served: Operant) -> None:
    assert served("kv", "set", "colour", "blue").code == 0
    assert served("kv", "get", "colour").out == "blue\n"
    assert served("kv", "list", "--json").json() == {"colour": "blue"}
    assert served("kv", "delete", "colour").code == 0
    assert served("kv", "get", "colour").code == 4


def test_there_are_no_dead_letters(served: Operant) -> None:
    assert served("outbox", "list", "--json").json() == []
    assert served("outbox", "requeue", "nope").code == 4


def test_a_session_gets_a_model(served: Operant) -> None:
    assert served("model", "list", "--json").json()["providers"]
    assert served("model", "use", "offline/commands", "--json").json()["model"] == "offline/commands"
    assert served("model", "use", "default", "--json").json()["model"] == ""
    wrong = served("model", "use", "nobody/x")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "there are: offline" in wrong.err


def test_models_are_shown_found_and_tried(served: Operant) -> None:
    assert "wants ANTHROPIC_API_KEY" in served("model", "list", "--all").out
    known = {one["name"]: one for one in served("model", "list", "--json").json()["known"]}
    assert known["openai"]["protocol"] == "responses"
    price = served("model", "show", "anthropic/claude-haiku-4-5", "--json").json()["price"]
    assert (price["input"], price["cached"], price["cache_write"], price["output"]) == (1, 0.1, 1.25, 5)
    assert "above 272,000 in" in served("model", "show", "openai/gpt-5.4").out
    assert served("model", "show", "nobody/x").code == 4
    assert [one["model"] for one in served("model", "search", "haiku", "4-5", "--json").json()] == [
        "anthropic/claude-haiku-4-5"
    ]
    assert "no intelligence" in served("model", "test").out
    assert served("model", "use", "offline/x", "--all", "--agent", "operant").code == 2


def test_a_choice_for_all_agents_is_listed_with_its_reason(served: Operant) -> None:
    assert served("model", "use", "offline/chosen", "--all").code == 0
    (first, *_) = served("model", "list", "--json").json()["models"]
    assert first["model"] == "offline/chosen"
    assert "chosen for all agents" in first["why"]
    assert served("model", "use", "default", "--all").code == 0
    assert "chosen" not in served("model", "list").out


def test_the_log_is_shown(served: Operant) -> None:
    assert "ready" in served("logs").out
    (line,) = served("logs", "--json", "-n", "1").out.splitlines()
    assert json.loads(line)["message"]


def test_without_a_daemon_the_same_is_said(operant: Operant) -> None:
    operant.allow(shell="allow")
    alone = operant("run", 'run "echo same"', "--session", "s").out
    listed = [one["key"] for one in operant("session", "list", "--json").json()]
    with operant.serving():
        assert operant("run", 'run "echo same"', "--session", "s").out == alone
        assert [one["key"] for one in operant("session", "list", "--json").json()] == listed


def test_sub_agents_stand_below_those_that_they_work_for(served: Operant) -> None:
    ran = served("run", '!tool spawn_agent {"tasks": ["help", "help"]}', "--session", "boss")
    assert ran.code == 0, ran.err
    rows = served("session", "list", "--tree").out.splitlines()
    boss = next(at for at, row in enumerate(rows) if row.startswith("boss"))
    assert all(row.startswith("└ agents/") and "operant/worker" in row for row in rows[boss + 1 : boss + 3])
    child = rows[boss + 1].split()[1]
    assert "works for boss" in served("session", "show", child).out
    traced = served("trace", "boss").out.splitlines()
    assert sum(row.startswith("└ agents/") and "operant/worker, idle" in row for row in traced) == 2
    served("session", "fork", "boss", "--title", "copied")
    assert len(served("trace", "boss", "--json").json()["below"]) == 2
