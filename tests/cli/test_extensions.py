"""A person's own extension that is broken: the program goes on, and says which and why."""

import pytest

from tests.cli.process import Operant

CAREFUL = """\
from contextlib import asynccontextmanager
from operant.sdk import Extension, Record

extension = Extension(name="careful", setup=":setup", settings=":Settings")


class Settings(Record):
    words: tuple[str, ...] = ()


@asynccontextmanager
async def setup(host, settings):
    yield
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{CAREFUL}def (\n", "SyntaxError"),
        (f"import no_such_module\n{CAREFUL}", "No module named 'no_such_module'"),
        ("x = 1\n", "it names no `extension`"),
        (CAREFUL.replace(":Settings", ":Setings"), "Setings"),
    ],
)
def test_one_that_cannot_be_loaded_does_not_keep_the_others_from_starting(
    operant: Operant, text: str, why: str
) -> None:
    operant("init")
    (operant.home / "extensions" / "careful.py").write_text(text)
    (operant.home / "operant.yaml").write_text("careful: {words: [shutdown]}\n")

    assert operant("config", "check").code == 0
    assert operant("config", "keys").code == 0
    ran = operant("run", "list files")
    assert ran.code == 0, ran.err
    doctor = operant("doctor")
    assert "extension careful: " in doctor.out and why in doctor.out and "mend it" in doctor.out
    assert "Traceback" not in ran.err + doctor.err + operant("config", "check").err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ('phase="valid"', "The handler of careful at tool.before has phase='valid'. It takes 'mutate' or 'validate'."),
        ('fail="shut"', "The handler of careful at tool.before has fail='shut'. It takes 'closed' or 'open'."),
    ],
)
def test_a_guard_with_a_typo_in_its_options_is_named(operant: Operant, options: str, why: str) -> None:
    operant("init")
    hooks = (
        f"    async def guard(input, output):\n        return None\n\n    host.hook(TOOL_BEFORE, guard, {options})\n"
    )
    text = CAREFUL.replace("    yield", f"{hooks}    yield").replace("import Ext", "import TOOL_BEFORE, Ext")
    (operant.home / "extensions" / "careful.py").write_text(text)
    assert f"extension careful: {why}" in operant("doctor").out


def test_a_section_that_nobody_has_is_still_an_error(operant: Operant) -> None:
    operant("init")
    (operant.home / "extensions" / "careful.py").write_text("def (\n")
    (operant.home / "operant.yaml").write_text("carefull: {words: [shutdown]}\n")
    assert "carefull: there is no such key" in operant("config", "check").err


def test_one_without_settings_has_no_section(operant: Operant) -> None:
    operant("init")
    plain = CAREFUL.replace(', settings=":Settings"', "")
    (operant.home / "extensions" / "careful.py").write_text(plain)
    (operant.home / "operant.yaml").write_text("careful: {words: [shutdown]}\n")
    assert "careful: there is no such key" in operant("config", "check").err
