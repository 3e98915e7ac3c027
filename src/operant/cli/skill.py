"""`operant skill …`: what agents read when a task needs it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from operant.cli.here import call
from operant.cli.inert import one_line
from operant.cli.output import coloured, dim, json_option, print_json, print_table, say, say_text, strong
from operant.kernel.syscalls import (
    ServiceGrant,
    ServiceInfo,
    ServiceLogs,
    ServiceRevoke,
    SkillAdd,
    SkillGet,
    SkillInfo,
    SkillList,
    SkillReload,
    SkillRemove,
    SkillReset,
    SkillStart,
    SkillStop,
    SkillValidate,
)

_COLOURS = {"ready": "green", "missing": "yellow", "hidden": "", "broken": "red"}
_WIDTH = 70
_REMOTE = "remote"


@click.group(help="List, show, add, check and remove skills (SKILL.md, the Agent Skills standard).")
def command() -> None:
    """Hold the commands about skills."""


@command.command("list", help="List skills: where each is from, and what it lacks.")
@click.option("--agent", default="", help="Whose (default: the default agent).")
@json_option
def list_skills(agent: str, as_json: bool) -> None:
    """Print skills."""
    _print_list(agent, as_json)


@command.command(
    "reload", help="Look again and list; with a name, start its service anew. Edits are seen by themselves."
)
@click.argument("name", default="")
@json_option
def reload(name: str, as_json: bool) -> int:
    """Print skills as they are now, or how the service stands that was started anew."""
    found = call(SkillReload(skill=name))
    if name:
        return _print_service(next(one for one in found if one.name == name), as_json)
    _print_list("", as_json)
    return 0


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


def _folder(path: str) -> Path:
    """Return the folder of a skill; its SKILL.md stands for it too."""
    place = Path(path).absolute()
    if place.is_dir():
        return place
    if place.name == "SKILL.md":
        return place.parent
    raise click.UsageError(f"{path} is not the folder of a skill.")


@command.command("add", help="Copy the folder of a skill into the home; nothing of it is run.")
@click.argument("path", type=click.Path(exists=True))
@json_option
def add(path: str, as_json: bool) -> None:
    """Add a skill."""
    info = call(SkillAdd(path=str(_folder(path))))
    print_json(info) if as_json else say(f"{info.name} is there: {_state(info)}.")


@command.command("remove", help="Put a skill aside, or switch off one that comes with Operant; nothing is deleted.")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a skill."""
    aside = call(SkillRemove(skill=name))
    if as_json:
        print_json({"name": name, "aside": aside})
    elif Path(aside).parent.name == ".removed":
        say(f"{name} is switched off; what it stands for is gone from the next start on. `operant skill reset {name}`")
    else:
        say(f"{name} is gone; its files are in {aside}.")


@command.command("reset", help="Bring a skill that comes with Operant back to what it was.")
@click.argument("name", default="")
@click.option("--all", "every", is_flag=True, help="All of them.")
@json_option
def reset(name: str, every: bool, as_json: bool) -> None:
    """Reset shipped skills."""
    if bool(name) == every:
        raise click.UsageError("Name one skill, or say --all.")
    back = call(SkillReset(skill=name))
    if as_json:
        print_json({"aside": back})
        return
    for one in back:
        say(f"{one} is back. If there was one of your own in its place, it is in skills/.trash of the home.")
    if not back:
        say("Nothing was changed.")


@command.command("validate", help="Check the folder of a skill by the letter of the standard; 1 when it fails.")
@click.argument("path", type=click.Path(exists=True))
@json_option
def validate(path: str, as_json: bool) -> int:
    """Check a skill."""
    folder = _folder(path)
    findings = call(SkillValidate(path=str(folder)))
    if as_json:
        print_json({"ok": not findings, "faults": [one.sentence for one in findings]})
    for one in () if as_json else findings:
        say(f"{coloured('✗', 'red')} {one_line(one.sentence, 300)}")
    if not findings and not as_json:
        say(f"{coloured('✓', 'green')} {folder.name} is valid.")
    return 1 if findings else 0


# ------------------------------------------------------------------ services


@command.command("services", help="List the services of skills: what runs, what asks to be allowed.")
@json_option
def services(as_json: bool) -> None:
    """Print services."""
    found = call(SkillReload())
    if as_json:
        print_json(found)
        return
    rows = [(one.name, one.state, ", ".join(one.hooks), ", ".join((*one.tools, *one.commands))) for one in found]
    print_table(("service", "state", "hooks", "tools and commands"), rows, "No skill has a service.")
    for one in found:
        words = ". ".join(filter(None, (one_line(one.reason, 300).rstrip("."), _next(one))))
        if words:
            say(dim(f"{one.name}: {words}"))


def _next(one: ServiceInfo) -> str:
    """Say what a person does about a service that does not run."""
    name = shlex.quote(one.name)
    if one.state == "ungranted":
        return f"`operant skill grant {name}` shows what it asks for" if one.digest else ""
    if one.state == "stopped":
        return f"`operant skill start {name}` starts it"
    if one.state == "failed":
        return f"`operant skill logs {name}` says more, `operant skill start {name}` tries again"
    if one.state == "waiting" and one.command == _REMOTE:
        return f"`operant token add {name} --scope service:{name}` makes the token that it connects with"
    return f"`operant skill logs {name}` prints it" if "its log" in one.reason else ""


@command.command("grant", help="Let the service of a skill run, as it is now; a change asks again.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def grant(name: str, yes: bool, as_json: bool) -> int:
    """Show what a service asks for, and allow it."""
    asked = next((one for one in call(SkillReload()) if one.name == name), None)
    if asked is None or not asked.digest:
        return _print_service(call(ServiceGrant(service=name)), as_json)  # says why it cannot be
    if asked.state == "running" and asked.running == asked.digest:
        print_json(asked) if as_json else say(f"{name} runs already, as it is now; you have allowed it.")
        return 0
    if not as_json:
        for line in _asked(asked):
            say_text(line)
    if not yes and not _confirmed():
        return 1
    return _print_service(call(ServiceGrant(service=name, digest=asked.digest)), as_json)


def _confirmed() -> bool:
    try:
        wanted = click.confirm("Let it run?", default=False, err=True)
    except click.Abort:
        click.echo("Nothing was granted. Without a terminal: --yes.", err=True)
        raise
    if not wanted:
        click.echo("Nothing was granted.", err=True)
    return wanted


def _asked(one: ServiceInfo) -> list[str]:
    where = "in the sandbox" if one.sandbox else "OUTSIDE OF THE SANDBOX, with all that you may do"
    runs = "runs elsewhere, and connects" if one.command == _REMOTE else f"runs {one.command} {where}"
    return [
        f"{strong(one.name)} {runs}.",
        f"  files    {one.path}",
        f"  content  {one.digest[:16]}",
        f"  hooks    {', '.join(one.declares) or 'anywhere that it asks for'}",
        f"  calls    {', '.join(one.wants) or 'none'}",
        f"  network  {', '.join(one.network) or 'none'}",
        f"  secrets  {', '.join(one.secrets) or 'none'}",
    ]


def _print_service(one: ServiceInfo, as_json: bool) -> int:
    """Print how a service stands now; 1 when it failed."""
    if as_json:
        print_json(one)
    else:
        say(f"{one.name}: {one.state}{f' ({one_line(one.reason, 300)})' if one.reason else ''}.")
        if one.state != "ungranted" and _next(one):
            say(dim(f"{_next(one)}."))
    return 1 if one.state == "failed" else 0


@command.command("revoke", help="Take back what the service of a skill may do; it ends.")
@click.argument("name")
@json_option
def revoke(name: str, as_json: bool) -> None:
    """Revoke a service."""
    _print_service(call(ServiceRevoke(service=name)), as_json)


@command.command("start", help="Start the service of a skill, also one that failed.")
@click.argument("name")
@json_option
def start(name: str, as_json: bool) -> int:
    """Start a service."""
    return _print_service(call(SkillStart(skill=name)), as_json)


@command.command("stop", help="Stop the service of a skill; a guard that is stopped guards nothing.")
@click.argument("name")
@json_option
def stop(name: str, as_json: bool) -> None:
    """Stop a service."""
    _print_service(call(SkillStop(skill=name)), as_json)


@command.command("logs", help="Print what the service of a skill wrote, and what became of it.")
@click.argument("name")
@click.option("-n", "--lines", default=50, show_default=True, help="How many of the last lines.")
@json_option
def logs(name: str, lines: int, as_json: bool) -> None:
    """Print the last lines of a service's log."""
    told = call(ServiceLogs(service=name, lines=lines))
    if as_json:
        print_json(told)
        return
    for line in told:
        say_text(line)
    if not told:
        click.echo(f"{name} has written nothing yet.", err=True)
