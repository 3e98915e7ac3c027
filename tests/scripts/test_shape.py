"""Each ceiling is shown to hold at its limit and to break one above it."""

import json
import textwrap
from pathlib import Path

import pytest

from scripts import shape


class House:
    """A small tree of sources, and what shape says of it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.capsys = capsys
        self.write("src/operant/__init__.py", "")

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text), "utf-8")

    def accept(self, entries: dict[str, int]) -> None:
        self.write("scripts/shape.json", json.dumps(entries))

    def inspect(self) -> tuple[int, list[str]]:
        """Return the exit code and what is printed above the summary."""
        code = shape.main([str(self.root)])
        lines = self.capsys.readouterr().out.splitlines()
        return code, [line for line in lines if not line.startswith("shape: ")]

    def complaints(self, source: str, path: str = "src/operant/kit/text.py") -> list[str]:
        """Return what shape refuses of this one source, without alarms."""
        self.write(path, source)
        code, lines = self.inspect()
        refused = [line for line in lines if not line.startswith(("alarm: ", "supervisor: "))]
        assert code == (1 if refused else 0)
        return refused

    def alarms(self, source: str, path: str = "src/operant/kit/text.py") -> list[str]:
        """Return the alarms of this one source, which must be all that is said of it."""
        self.write(path, source)
        code, lines = self.inspect()
        assert code == 0
        return lines


@pytest.fixture
def house(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> House:
    return House(tmp_path, capsys)


def statements(count: int, indent: str = "") -> str:
    return "".join(f"{indent}x{number} = {number}\n" for number in range(count))


def function(lines: int, head: str = "def run():") -> str:
    return f"{head}\n{statements(lines - 1, '    ')}"


def supervisors(count: int) -> str:
    caught = "except Exception as error:  # noqa: BLE001  # supervisor: a tool is foreign code"
    one = f"try:\n    x = 1\n{caught}\n    x = error\n"
    return one * count


# ---------------------------------------------------------------------------------------------- length


def test_file_length(house: House) -> None:
    assert house.complaints(statements(500)) == []
    assert house.complaints(statements(501)) == ["src/operant/kit/text.py:1 length of file is 501, ceiling 500"]


def test_file_length_alarm(house: House) -> None:
    assert house.alarms(statements(300)) == []
    assert house.alarms(statements(301)) == ["alarm: src/operant/kit/text.py:1 length of file is 301, ceiling 300"]


def test_function_length(house: House) -> None:
    assert house.complaints(function(60)) == []
    assert house.complaints("import os\n" + function(61, "async def run():")) == [
        "src/operant/kit/text.py:2 length of function run is 61, ceiling 60"
    ]


def test_function_length_alarm_is_not_repeated_above_the_ceiling(house: House) -> None:
    assert len(house.alarms(function(41))) == 1
    house.write("src/operant/kit/text.py", function(61))
    assert house.inspect() == (1, ["src/operant/kit/text.py:1 length of function run is 61, ceiling 60"])


def test_class_length(house: House) -> None:
    assert house.complaints("class Log:\n" + statements(299, "    ")) == []
    assert house.complaints("class Log:\n" + statements(300, "    ")) == [
        "src/operant/kit/text.py:1 length of class Log is 301, ceiling 300"
    ]


def test_methods_are_named_with_their_class(house: House) -> None:
    source = "class Log:\n" + textwrap.indent(function(61), "    ")
    assert house.complaints(source) == ["src/operant/kit/text.py:2 length of function Log.run is 61, ceiling 60"]


@pytest.mark.parametrize("head", ["def run():  # shape: table", "def run(  # shape: table\n    ):"])
def test_table_mark_on_a_function_lifts_its_length(house: House, head: str) -> None:
    assert house.complaints(function(100, head)) == []


def test_table_mark_on_a_class_does_not_cover_its_methods(house: House) -> None:
    source = "class Log:  # shape: table\n" + textwrap.indent(function(400), "    ")
    assert house.complaints(source) == ["src/operant/kit/text.py:2 length of function Log.run is 400, ceiling 60"]


def test_table_mark_at_the_top_lifts_all_lengths_and_nothing_else(house: House) -> None:
    source = f"# shape: table\n{function(600, 'def run(a, b, c, d, e, f, g):')}"
    assert house.complaints(source) == ["src/operant/kit/text.py:2 number of parameters of run is 7, ceiling 6"]


def test_table_mark_far_down_is_no_mark(house: House) -> None:
    assert len(house.complaints(f"{statements(10)}# shape: table\n{statements(500)}")) == 1


# ---------------------------------------------------------------------------------------------- functions


@pytest.mark.parametrize(
    ("signature", "count"),
    [
        ("a, b, c, d, e, f", None),
        ("self, a, b, c, d, e, f", None),
        ("cls, a, b, c, d, e, f", None),
        ("a, b, c, d, e, f, g", 7),
        ("self, a, b, c, *, d, e, f, g", 7),
        ("a, b, /, c, d, *rest, e, **more", 7),
    ],
)
def test_parameters(house: House, signature: str, count: int | None) -> None:
    found = house.complaints(f"def run({signature}):\n    return a\n")
    expected = [f"src/operant/kit/text.py:1 number of parameters of run is {count}, ceiling 6"]
    assert found == (expected if count else [])


BRANCH = {
    "if": "    if x == {n}:\n        x = 1\n",
    "for": "    for y in x:\n        x = y\n",
    "while": "    while x == {n}:\n        x = 1\n",
    "except": "    try:\n        x = 1\n    except ValueError:\n        x = {n}\n",
    "ternary": "    x = 1 if x else {n}\n",
    "filter": "    x = [y for y in x if y]\n",
    "case": "    match x:\n        case {n}:\n            x = 1\n        case _:\n            x = 2\n",
}


@pytest.mark.parametrize("kind", BRANCH)
def test_complexity(house: House, kind: str) -> None:
    nine = "".join(BRANCH[kind].format(n=number) for number in range(9))
    assert house.complaints(f"def run(x):\n{nine}") == []
    ten = nine + BRANCH[kind].format(n=9)
    assert house.complaints(f"def run(x):\n{ten}") == ["src/operant/kit/text.py:1 complexity of run is 11, ceiling 10"]


def test_complexity_of_an_inner_function_is_its_own(house: House) -> None:
    body = "".join(BRANCH["if"].format(n=number) for number in range(6))
    inner = "    def inner(x):\n" + textwrap.indent(body, "    ")
    assert house.complaints(f"def run(x):\n{body}{inner}") == []


BLOCKS = {
    "if": "if x:",
    "for": "for y in x:",
    "async for": "async for y in x:",
    "while": "while x:",
    "with": "with x:",
    "async with": "async with x:",
    "try": "try:",
    "match": "match x:",
}


def nested(openings: list[str]) -> str:
    """Return a function with these blocks inside each other."""
    text, depth = "async def run(x):\n", 1
    for opening in openings:
        text += "    " * depth + opening + "\n"
        depth += 1
        if opening.startswith("match"):
            text += "    " * depth + "case 1:\n"
            depth += 1
    text += "    " * depth + "x = 1\n"
    for at, opening in reversed(list(enumerate(openings))):
        if opening == "try:":
            text += "    " * (at + 1) + "finally:\n" + "    " * (at + 2) + "x = 2\n"
    return text


@pytest.mark.parametrize("kind", BLOCKS)
def test_nesting(house: House, kind: str) -> None:
    assert house.complaints(nested(["if x:", "for y in x:", BLOCKS[kind]])) == []
    assert house.complaints(nested(["if x:", "for y in x:", "while x:", BLOCKS[kind]])) == [
        "src/operant/kit/text.py:1 nesting of run is 4, ceiling 3"
    ]


def test_elif_is_not_deeper_and_an_if_in_else_is(house: House) -> None:
    elifs = "".join(f"    elif x == {number}:\n        x = 1\n" for number in range(5))
    assert house.complaints(f"def run(x):\n    if x:\n        x = 1\n{elifs}") == []
    source = """
        def run(x):
            if x:
                x = 1
            else:
                if x:
                    x = 1
                else:
                    if x:
                        x = 2
                    else:
                        if x:
                            x = 3
    """
    assert house.complaints(source) == ["src/operant/kit/text.py:2 nesting of run is 4, ceiling 3"]


def test_long_names_are_an_alarm(house: House) -> None:
    assert house.alarms("def _read_one_line():\n    return 1\n") == []
    assert house.alarms("def read_one_more_line():\n    return 1\n") == [
        "alarm: src/operant/kit/text.py:1 number of words in the name read_one_more_line is 4, ceiling 3"
    ]


# ---------------------------------------------------------------------------------------------- kernel


def test_kernel_counts_code_and_nothing_else(house: House) -> None:
    padded = '"""Words.\n\nMore words.\n"""\n\n# why\n' + "\n\n# why not\n".join(f"x{n} = {n}" for n in range(50))
    for number in range(40):
        house.write(f"src/operant/kernel/part{number}.py", padded)
    house.write("src/operant/kernel/records.py", f"# shape: table\n{padded}")
    assert house.inspect() == (0, [])
    house.write("src/operant/kernel/hooks.py", "def run():\n    '''Words.'''\n    return 1\n\n\nX = 1\n")
    assert house.inspect() == (1, ["src/operant/kernel:1 code lines of the kernel is 2003, ceiling 2000"])


def test_strings_that_are_no_docstrings_are_code(house: House) -> None:
    house.write("src/operant/kernel/turn.py", 'X = """\n' + "words\n" * 250 + '"""\n')
    assert house.inspect() == (1, ["src/operant/kernel/turn.py:1 code lines of file is 252, ceiling 250"])


def test_turn_has_a_ceiling_of_its_own(house: House) -> None:
    assert house.complaints("# why\n\n" + statements(250), "src/operant/kernel/turn.py") == []
    assert house.complaints(statements(251), "src/operant/kernel/turn.py") == [
        "src/operant/kernel/turn.py:1 code lines of file is 251, ceiling 250"
    ]
    house.write("src/operant/kernel/turn.py", "")
    assert house.complaints(statements(251), "src/operant/kernel/session.py") == []


# ---------------------------------------------------------------------------------------------- bans


@pytest.mark.parametrize(
    "catch",
    [
        "except Exception:",
        "except BaseException as error:",
        "except:",
        "except (OSError, Exception):",
        "except* Exception:",
    ],
)
def test_catching_everything(house: House, catch: str) -> None:
    source = f"def run(x):\n    try:\n        x = 1\n    {catch}\n        x = 2\n"
    assert house.complaints(source) == [
        "src/operant/kit/text.py:4 number of handlers that catch everything in run is 1, ceiling 0"
    ]


@pytest.mark.parametrize("call", ["contextlib.suppress(Exception)", "suppress(OSError, BaseException)"])
def test_suppressing_everything(house: House, call: str) -> None:
    assert house.complaints(f"with {call}:\n    x = 1\n") == [
        "src/operant/kit/text.py:1 number of handlers that catch everything in the module is 1, ceiling 0"
    ]


def test_catching_something_is_free(house: House) -> None:
    source = "try:\n    x = 1\nexcept (OSError, ValueError):\n    x = 2\nwith suppress(OSError):\n    x = 1\n"
    assert house.complaints(source) == []


@pytest.mark.parametrize(
    ("body", "free"),
    [
        ("x = 2\n        raise", True),
        ("x = 2\n        raise ValueError", False),
        ("if x:\n            return 1\n        raise", False),
        ("if x:\n            raise", False),
    ],
)
def test_raising_again_is_free_when_nothing_leaves_before(house: House, body: str, free: bool) -> None:
    source = f"def run(x):\n    try:\n        x = 1\n    except BaseException:\n        {body}\n"
    assert (house.complaints(source) == []) is free


def test_four_supervisors_and_no_more(house: House) -> None:
    assert house.complaints(supervisors(4)) == []
    refused = house.complaints(supervisors(5))
    assert refused == ["src/operant/kit/text.py:19 number of supervisors of the house is 5, ceiling 4"]


def test_supervisors_are_printed_with_their_reason(house: House) -> None:
    house.write("src/operant/kit/text.py", supervisors(1))
    assert house.inspect() == (0, ["supervisor: src/operant/kit/text.py:3 a tool is foreign code"])


def test_a_supervisor_without_a_reason_is_none(house: House) -> None:
    assert len(house.complaints("try:\n    x = 1\nexcept Exception:  # supervisor:\n    x = 2\n")) == 1


@pytest.mark.parametrize("body", ["pass", "...", "'why'"])
def test_swallowing(house: House, body: str) -> None:
    assert house.complaints(f"try:\n    x = 1\nexcept OSError:\n    {body}\n") == [
        "src/operant/kit/text.py:3 number of handlers that swallow in the module is 1, ceiling 0"
    ]


@pytest.mark.parametrize(
    ("call", "loose"),
    [
        ("asyncio.create_task(x)", True),
        ("asyncio.ensure_future(x)", True),
        ("create_task(x)", True),
        ("loop.create_task(x)", True),
        ("self._loop.create_task(x)", True),
        ("asyncio.get_running_loop().create_task(x)", True),
        ("group.create_task(x)", False),
        ("self.tasks.create_task(x)", False),
    ],
)
def test_tasks_that_nobody_holds(house: House, call: str, loose: bool) -> None:
    assert bool(house.complaints(f"def run(self, x):\n    return {call}\n")) is loose


# ---------------------------------------------------------------------------------------------- ratchet


KEY = "src/operant/kit/text.py length of function run"


def test_ratchet_accepts_what_it_names(house: House) -> None:
    house.accept({KEY: 70})
    assert house.complaints(function(70)) == []


def test_ratchet_does_not_accept_more(house: House) -> None:
    house.accept({KEY: 70})
    assert house.complaints(function(71)) == ["src/operant/kit/text.py:1 length of function run is 71, ceiling 60"]


def test_ratchet_must_follow_downwards(house: House) -> None:
    house.accept({KEY: 70})
    assert house.complaints(function(65)) == [f"scripts/shape.json: {KEY!r} is 65 by now: lower the entry from 70"]


def test_ratchet_entries_that_nobody_needs_must_go(house: House) -> None:
    house.accept({KEY: 70})
    assert house.complaints(function(60)) == [f"scripts/shape.json: {KEY!r} is not needed any more: remove the entry"]


def test_ratchet_counts_what_is_banned(house: House) -> None:
    house.accept({"src/operant/kit/text.py number of handlers that swallow in the module": 1})
    one = "try:\n    x = 1\nexcept OSError:\n    pass\n"
    assert house.complaints(one) == []
    assert len(house.complaints(one * 2)) == 2


# ---------------------------------------------------------------------------------------------- the tree


def test_the_service_sdk_is_measured_too(house: House) -> None:
    assert len(house.complaints(function(61), "sdk/python/operant_service.py")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from unittest.mock import Mock",
        "from unittest import mock",
        "import unittest.mock",
        "time.sleep(0.1)",
        "await asyncio.sleep(delay)",
        "sleep(1)",
    ],
)
def test_tests_neither_mock_nor_sleep(house: House, line: str) -> None:
    source = f"async def test_it():\n    {line}\n"
    what = "mocks" if "mock" in line else "sleeps"
    assert house.complaints(source, "tests/kit/test_text.py") == [
        f"tests/kit/test_text.py:2 number of {what} in test_it is 1, ceiling 0"
    ]
    assert len(house.complaints("", "tests/kit/test_text.py")) == 0
    assert house.complaints(source, "tests/fake_server.py") == []


def test_letting_others_run_is_no_sleep(house: House) -> None:
    assert house.complaints("async def test_it():\n    await asyncio.sleep(0)\n", "tests/test_text.py") == []


def test_tests_and_hidden_folders_have_no_ceilings(house: House) -> None:
    assert house.complaints(function(61) + supervisors(5), "tests/test_text.py") == []
    assert house.complaints(function(61), "src/.cache/text.py") == []


def test_a_file_that_does_not_parse_is_named(house: House) -> None:
    house.write("src/operant/kit/text.py", "x = 1\ndef run(:\n")
    code, lines = house.inspect()
    assert code == 1
    assert lines[-1].startswith("src/operant/kit/text.py:2 cannot be parsed: ")
