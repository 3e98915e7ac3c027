"""The configuration: one record, and errors that say where and what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operant.app.config import Config, describe, load_config, read_env_file
from operant.kernel.errors import Invalid, OperantError
from operant.kit.secret import Secret
from operant.sdk import Extension
from tests.app.stand_ins import DOORS, STORE, Door, StoreSettings

EXTENSIONS = (STORE, DOORS)

VALID = """\
defaults:
  models: [one/big, two/small]
  max_steps: 10
  approval: {shell: ask}
agents:
  writer:
    limits: {turn_s: 60}
    permissions: {tools: ["read_*"], deny: [shell]}
  reader: {}
store: {durability: process}
doors:
  front: {url: "http://one", key: "${FRONT_KEY}"}
  back: {url: "http://${BACK}"}
"""


def load(tmp_path: Path, text: str, **env: str) -> Config:
    (tmp_path / "operant.yaml").write_text(text, "utf-8")
    return load_config(tmp_path, env, EXTENSIONS)


def wrong(tmp_path: Path, text: str, **env: str) -> list[str]:
    with pytest.raises(Invalid) as caught:
        load(tmp_path, text, **env)
    return caught.value.sentence.splitlines()


def test_a_file_becomes_one_record(tmp_path: Path) -> None:
    config = load(tmp_path, VALID, BACK="two", FRONT_KEY="canary")
    assert config.defaults.models == ("one/big", "two/small")
    assert config.agents["writer"].limits.turn_s == 60
    assert config.agents["writer"].permissions.deny == ("shell",)
    assert config.settings(STORE) == StoreSettings(durability="process")
    assert config.settings(DOORS)["back"] == Door(url="http://two")


def test_agents_inherit_what_defaults_say(tmp_path: Path) -> None:
    config = load(tmp_path, VALID, BACK="two")
    assert config.agents["writer"].max_steps == 10
    assert config.agents["reader"].approval == {"shell": "ask"}
    assert config.agent("nobody").models == ("one/big", "two/small")


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    config = load_config(tmp_path, {}, EXTENSIONS)
    assert config.defaults.max_steps == 25
    assert config.settings(STORE) == StoreSettings()
    assert config.settings(DOORS) == {}


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_known_one(tmp_path: Path) -> None:
    assert wrong(tmp_path, "defaults:\n  max_stepps: 3\n") == [
        "operant.yaml:2: defaults.max_stepps: there is no such key; did you mean max_steps?"
    ]


def test_several_errors_are_all_told_a_line_each(tmp_path: Path) -> None:
    text = "defaults:\n  max_steps: many\nagents:\n  a: {arrival: steeer, limits: {turn_s: -1}}\nstoer: {}\n"
    lines = wrong(tmp_path, text, OPERANT_DEFAULTS__MODELS="7")
    assert sorted(line.split(": ")[0] for line in lines) == [
        "OPERANT_DEFAULTS__MODELS",
        "operant.yaml:2",
        "operant.yaml:4",
        "operant.yaml:4",
        "operant.yaml:5",
    ]
    assert any("did you mean store?" in line for line in lines)
    assert any("expected one of steer, queue, interrupt, got 'steeer'" in line for line in lines)
    assert any("defaults.max_steps: expected int, got str" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("defaults: {a: 1", 2, "this is not YAML"),
        ("defaults:\n  max_steps: 1\n  max_steps: 2\n", 3, "stands here again"),
        ("- a\n- b\n", 1, "expected keys and values"),
        ("defaults: 7\n", 1, "expected keys and values, got int"),
        ("agents:\n  7: {}\n", 2, "a key must be text"),
        ("doors:\n  front: {}\n", 2, "url is missing"),
        ("defaults:\n  timezone: Mars/Base\n", 1, "is not a time zone"),
        ("defaults:\n\tmax_steps: 1\n", 2, "this is not YAML"),
        ("a: " + "[" * 3000, 1, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    (told,) = wrong(tmp_path, text)
    assert told.startswith(f"operant.yaml:{line}: ")
    assert words in told


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        VALID,
        BACK="x",
        OPERANT_DEFAULTS__MAX_STEPS="3",
        OPERANT_DEFAULTS__MODELS="[env/model]",
        OPERANT_AGENTS__WRITER__LIMITS__TURN_S="5",
        OPERANT_AGENTS__WRITER__DESCRIPTION="007",
        OPERANT_DOORS__SIDE__URL="http://three",
        OPERANT_HOME="/not/a/setting",
        OPERANT_FAULT="received:1",
    )
    assert config.defaults.max_steps == 3
    assert config.agents["reader"].models == ("env/model",)
    assert config.agents["writer"].limits.turn_s == 5
    assert config.agents["writer"].description == "007"
    assert config.settings(DOORS)["side"].url == "http://three"


def test_a_key_with_a_dash_is_reached_by_an_underscore(tmp_path: Path) -> None:
    config = load(tmp_path, "agents: {my-agent: {}}", OPERANT_AGENTS__MY_AGENT__MAX_STEPS="2")
    assert config.agents["my-agent"].max_steps == 2


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OPERANT_DEFAULTS__MAX_STEP", "3", "did you mean max_steps?"),
        ("OPERANT_DEFAUTLS__MAX_STEPS", "3", "did you mean defaults?"),
        ("OPERANT_DEFAULTS__MAX_STEPS", "many", "expected int"),
        ("OPERANT_DEFAULTS__MODELS", "[", "this is not YAML"),
    ],
)
def test_a_wrong_variable_is_an_error_that_names_it(tmp_path: Path, name: str, value: str, words: str) -> None:
    (told,) = wrong(tmp_path, "", **{name: value})
    assert told.startswith(f"{name}: ")
    assert words in told


def test_a_secret_is_named_and_never_shown(tmp_path: Path) -> None:
    config = load(tmp_path, VALID, BACK="x", FRONT_KEY="canary-1234")
    key = config.settings(DOORS)["front"].key
    assert key.reveal() == "canary-1234"
    assert "canary" not in repr(config)
    assert "canary" not in f"{key} {key!r}"
    assert Secret("canary-1234") in config.secrets


def test_an_unset_secret_is_empty_and_knows_its_name(tmp_path: Path) -> None:
    key = load(tmp_path, VALID, BACK="x").settings(DOORS)["front"].key
    assert not key
    assert key.name == "FRONT_KEY"


def test_an_unset_variable_in_a_plain_text_is_an_error(tmp_path: Path) -> None:
    (told,) = wrong(tmp_path, VALID)
    assert told == "operant.yaml:13: doors.back.url: the variable BACK is not set"


def test_the_env_file_is_read_and_the_environment_wins_over_it(tmp_path: Path) -> None:
    file = tmp_path / "keys.env"
    file.write_text("# keys\nexport FRONT_KEY='from file'\nBACK=\"two\"\nbroken line\n", "utf-8")
    text = VALID.replace("  max_steps", f"  env_file: {file}\n  max_steps")
    config = load(tmp_path, text, BACK="env")
    assert config.settings(DOORS)["front"].key.reveal() == "from file"
    assert config.settings(DOORS)["back"].url == "http://env"
    assert config.find("FRONT_KEY") == "from file"


def test_an_env_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (told,) = wrong(tmp_path, "defaults:\n  env_file: /no/such/file\n")
    assert told.startswith("operant.yaml:2: defaults.env_file: /no/such/file cannot be read")


def test_settings_of_an_extension_that_cannot_be_loaded_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "operant.yaml").write_text("gone: {a: 1}\n", "utf-8")
    lost = Extension(name="gone", setup="no.module:setup", settings="no.module:Settings")
    assert load_config(tmp_path, {}, (lost,)).unchecked == ("gone",)


def test_every_key_has_its_sentence(tmp_path: Path) -> None:
    rows = describe(EXTENSIONS)
    assert not [row.key for row in rows if not row.sentence and not row.key.startswith("doors")]
    assert {row.key for row in rows} >= {"defaults.max_steps", "store.durability", "doors.<name>.url"}


def test_lines_of_an_env_file() -> None:
    assert read_env_file("A=1\nB = x y \nC='q'\n=no\n2D=no\nE=a=b\n") == {"A": "1", "B": "x y", "C": "q", "E": "a=b"}


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("${NONE}"))
DATA = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.one_of(st.text(max_size=6), st.integers()), below, max_size=3)
    ),
    max_leaves=6,
)


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_changed_file_loads_or_says_what_is_wrong(tmp_path: Path, data: st.DataObject) -> None:
    """Replace any node of a valid file by anything, or cut the text anywhere: never a traceback."""
    import yaml

    tree: Any = yaml.safe_load(VALID)
    place = tree
    for _ in range(data.draw(st.integers(0, 3))):
        below = [key for key, value in place.items() if isinstance(value, dict) and value]
        if not below:
            break
        place = place[data.draw(st.sampled_from(below))]
    key = data.draw(st.one_of(st.sampled_from(sorted(place, key=str)), st.text(max_size=6)))
    place[key] = data.draw(DATA)
    text = yaml.safe_dump(tree, allow_unicode=True)
    text = text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text
    variable = data.draw(st.sampled_from(["DEFAULTS__MAX_STEPS", "AGENTS__WRITER", "STORE", "DOORS__X__KEY", "__"]))
    try:
        load(tmp_path, text, **{f"OPERANT_{variable}": data.draw(st.text(max_size=8)), "BACK": "x"})
    except OperantError as error:
        assert error.sentence.strip()
