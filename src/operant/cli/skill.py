"""`operant skill …`: what agents read when a task needs it."""

from __future__ import annotations

from pathlib import Path

import click

from operant.cli.here import call
from operant.cli.inert import one_line
from operant.cli.output import coloured, dim, json_option, print_json, print_table, say, say_text, strong
from operant.kernel.syscalls import SkillAdd, SkillGet, SkillInfo, SkillList, SkillRemove, SkillReset, SkillValidate

_COLOURS = {"ready": "green", "missing": "yellow", "hidden": "", "broken": "red"}
_WIDTH = 70


@click.group(help="List, show, add, check and remove skills (SKILL.md, the Agent Skills standard).")
def command() -> None:
    """Hold the commands about skills."""


@command.command("list", help="List skills: where each is from, and what it lacks.")
@click.option("--agent", default="", help="Whose (default: the default agent).")
@json_option
def list_skills(agent: str, as_json: bool) -> None:
    """Print skills."""
    _print_list(agent, as_json)


@command.command("reload", help="Look again and list; edits are seen by themselves, so this is seldom needed.")
@json_option
def reload(as_json: bool) -> None:
    """Print skills as they are now."""
    _print_list("", as_json)


def _print_list(agent: str, as_json: bool) -> None:
    skills = call(SkillList(agent=agent))
    if as_json:
        print_json(skills)
        return
    rows = [(one.name, one.source, _state(one), one_line(one.description, _WIDTH)) for one in skills]
    print_table(("skill", "from", "state", "for"), rows, "There are no skills. `operant skill add PATH` brings one.")


def _state(one: SkillInfo) -> str:
    return f"{one.state}: {', '.join(one.lacks)}" if one.lacks else one.state


@command.command("show", help="Show a skill: what it is for, what it lacks, its files.")
@click.argument("name")
@click.option("--agent", default="", help="Whose (default: the default agent).")
@json_option
def show(name: str, agent: str, as_json: bool) -> None:
    """Print a skill."""
    found = call(SkillGet(skill=name, agent=agent))
    if as_json:
        print_json(found)
        return
    info = found.info
    say(f"{strong(info.name)}  {coloured(_state(info), _COLOURS[info.state]) if _COLOURS[info.state] else info.state}")
    say_text(info.description)
    say(dim(f"{info.source}: {info.path}"))
    for warning in info.warnings:
        say(dim(f"not by the standard: {one_line(warning, 200)}"))
    say_text("\n".join(f"  {file}" for file in found.files))


@command.command("load", help="Print a skill's instructions.")
@click.argument("name")
@click.option("--agent", default="", help="Whose (default: the default agent).")
def load(name: str, agent: str) -> None:
    """Print the body."""
    say_text(call(SkillGet(skill=name, agent=agent)).body.strip())


@command.command("add", help="Copy the folder of a skill into the home; nothing of it is run.")
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@json_option
def add(path: str, as_json: bool) -> None:
    """Add a skill."""
    info = call(SkillAdd(path=str(Path(path).absolute())))
    print_json(info) if as_json else say(f"{info.name} is there: {_state(info)}.")


@command.command("remove", help="Put a skill of the home aside; nothing is deleted.")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a skill."""
    aside = call(SkillRemove(skill=name))
    print_json({"name": name, "aside": aside}) if as_json else say(f"{name} is gone; its files are in {aside}.")


@command.command("reset", help="Bring a skill that comes with Operant back to what it was.")
@click.argument("name", default="")
@click.option("--all", "every", is_flag=True, help="All of them.")
@json_option
def reset(name: str, every: bool, as_json: bool) -> None:
    """Reset shipped skills."""
    if bool(name) == every:
        raise click.UsageError("Name one skill, or say --all.")
    aside = call(SkillReset(skill=name))
    if as_json:
        print_json({"aside": aside})
        return
    say(f"Put aside: {', '.join(aside)}." if aside else "Nothing was changed.")


@command.command("validate", help="Check the folder of a skill by the letter of the standard; 1 when it fails.")
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@json_option
def validate(path: str, as_json: bool) -> int:
    """Check a skill."""
    findings = call(SkillValidate(path=str(Path(path).absolute())))
    if as_json:
        print_json({"ok": not findings, "faults": [one.sentence for one in findings]})
    for one in () if as_json else findings:
        say(f"{coloured('✗', 'red')} {one_line(one.sentence, 300)}")
    if not findings and not as_json:
        say(f"{coloured('✓', 'green')} {Path(path).name} is valid.")
    return 1 if findings else 0
