"""Setting up: the home, its settings, and what is said when they are wrong."""

from tests.cli.process import Operant


def test_init_makes_a_home_once(operant: Operant) -> None:
    made = operant("init", "--json").json()
    assert made["home"] == str(operant.home)
    assert str(operant.home / "operant.yaml") in made["made"]
    assert oct(operant.home.stat().st_mode)[-3:] == "700"

    assert operant("init", "--json").json()["made"] == []


def test_a_wrong_key_is_one_line_that_names_it(operant: Operant) -> None:
    operant("init")
    (operant.home / "operant.yaml").write_text("defaults:\n  max_stepz: 3\n  colour: red\n")

    ran = operant("session", "list")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "operant.yaml:2" in ran.err
    assert "max_steps" in ran.err
    assert "operant config check" in ran.err

    checked = operant("config", "check")
    assert checked.code == 1
    assert checked.err.count("\n") == 2
    assert operant("config", "check", "--json").json()["ok"] is False


def test_debug_shows_where_an_error_is_from(operant: Operant) -> None:
    operant("init")
    (operant.home / "operant.yaml").write_text("nonsense: 1\n")
    assert "Traceback" not in operant("session", "list").err
    assert "Traceback" in operant("session", "list", "--debug").err


def test_settings_are_shown_without_their_secrets(operant: Operant) -> None:
    operant("init")
    (operant.home / "operant.yaml").write_text(
        "providers:\n  mine: {base_url: 'http://127.0.0.1:9/v1', api_key: '${MY_KEY}'}\n"
    )
    shown = operant("config", "show", "--json", MY_KEY="sk-very-secret")
    assert shown.code == 0, shown.err
    assert "sk-very-secret" not in shown.out
    assert shown.json()["providers"]["mine"]["api_key"] == "***"
    assert shown.json()["defaults"]["max_steps"] == 25


def test_every_key_is_explained(operant: Operant) -> None:
    rows = operant("config", "keys", "--json").json()
    assert {"key", "type", "default", "sentence"} == set(rows[0])
    assert "defaults.max_steps" in {row["key"] for row in rows}


def test_agents_are_added_and_put_aside(operant: Operant) -> None:
    operant("init")
    assert operant("agent", "add", "helper", "--description", "Helps.").code == 0
    assert operant("agent", "show", "helper", "--json").json()["description"] == "Helps."
    assert operant("agent", "add", "helper").code == 1
    assert operant("agent", "add", "No Name!").code == 2

    assert operant("agent", "remove", "helper").code == 2  # nobody there to say yes
    gone = operant("agent", "remove", "helper", "--yes", "--json").json()
    assert gone["name"] == "helper"
    assert operant("agent", "show", "helper").code == 4


def test_a_second_daemon_names_the_first(served: Operant) -> None:
    ran = served("serve")
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "process" in ran.err


def test_the_doctor_finds_open_rights_and_says_how_to_close_them(operant: Operant) -> None:
    operant("init")
    assert operant("doctor").code == 0
    operant.home.chmod(0o755)

    ran = operant("doctor", "--json")

    assert ran.code == 1
    bad = [check for check in ran.json()["checks"] if check["state"] == "fail"]
    assert [check["name"] for check in bad] == ["home"]
    assert "chmod" in bad[0]["hint"]


def test_the_doctor_saves_what_can_be_read_of_a_damaged_store(operant: Operant) -> None:
    operant("run", "help", "--session", "kept")
    database = operant.home / "state" / "operant.db"
    data = bytearray(database.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 5000] = b"\xff" * 5000
    database.write_bytes(data)
    looked = operant("doctor", "--json")
    assert looked.code == 1
    assert any("--repair" in check["hint"] for check in looked.json()["checks"])

    mended = operant("doctor", "--repair", "--json")

    assert mended.code == 0, mended.out
    assert mended.json()["checks"][0]["name"] == "repair"
    assert len(list(database.parent.glob("operant.db.damaged-*"))) >= 1


def test_the_doctor_sees_a_broken_agent_file_and_a_missing_key(operant: Operant) -> None:
    operant("init")
    (operant.home / "operant.yaml").write_text(
        "providers:\n  mine: {base_url: 'http://127.0.0.1:9/v1', api_key: '${NO_KEY}'}\n"
    )
    (operant.home / "agents/operant/AGENT.md").write_text("---\nmax_steps: many\n---\n")

    text = operant("doctor").out

    assert "NO_KEY is not set" in text
    assert "AGENT.md" in text
    assert "sandbox" in text


def test_an_edit_of_the_settings_counts_in_a_program_that_runs(operant: Operant) -> None:
    operant.allow(shell="allow")
    with operant.serving():
        assert "hi" in operant("run", 'run "echo hi"').out
        (operant.home / "operant.yaml").write_text("defaults: {approval: {shell: deny}}\nbudgets: {day: {usd: 5}}\n")
        refused = operant("run", 'run "echo hi"').out
        assert "Not allowed" in refused
        doctor = operant("doctor").out
        assert "operant.yaml: budgets: changed, and counts from the next start on" in doctor
        assert "stop Operant and start it again" in doctor
