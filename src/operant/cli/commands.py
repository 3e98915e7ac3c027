"""The table of commands, and what their errors become: one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from types import TracebackType
from typing import cast

import click

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Talk": {
        "chat": ("chat.command", "Talk in the terminal, or line by line in a pipe."),
        "run": ("run", "Ask once and print the answer."),
        "open": ("open", "Open the web page, logged in."),
        "session": ("session", "List, show, stop, search, copy and erase conversations."),
        "acp": ("acp.command", "Serve an editor (Zed, JetBrains); the editor starts it."),
        "approval": ("approval", "See and answer what waits for your yes or no."),
        "a2a": ("a2a", "Send agents messages, and see those between them."),
    },
    "Look": {
        "trace": ("trace", "Show a session, or one message, as a timeline."),
        "usage": ("usage", "Show tokens and money."),
        "logs": ("logs", "Show the log."),
        "doctor": ("doctor", "Check everything, and say what to do."),
        "version": ("version", "Show the version."),
    },
    "Set up": {
        "init": ("init", "Make the home; nothing that is there is overwritten."),
        "serve": ("serve", "Run without a chat, until stopped: the web page, the API, everything."),
        "service": ("service", "Keep Operant running: install, start, stop and look at the service."),
        "config": ("config", "Show, check and explain the settings."),
        "agent": ("agent", "List, add and remove agents."),
        "skill": ("skill", "List, show, add, check and remove skills."),
        "mcp": ("mcp", "Add, list, test and approve MCP servers, and be one."),
        "model": ("model", "See which models there are, and choose one."),
        "token": ("token", "Make, list and revoke tokens for programs and browsers."),
        "tool": ("tool", "List tools, and run one by hand."),
        "kv": ("kv", "Read and write kept values."),
        "outbox": ("outbox", "See what could not be delivered, and send it again."),
        "completion": ("completion", "Print the completion script of a shell."),
    },
}

_MODULES = {name: module for section in SECTIONS.values() for name, (module, _) in section.items()}


class LazyGroup(click.Group):
    """Import a command's module when the command is called; `--help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        command: click.Command = importlib.import_module(f"operant.cli.{_MODULES[cmd_name]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _MODULES and not args[0].startswith("-"):
            from operant.kit.nearest import nearest

            near = nearest(args[0], _MODULES)
            ctx.fail(f"There is no command {args[0]!r}." + (f" Did you mean {near!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Operant, your agent. Without a command it starts, and opens a chat when there is a terminal.",
)
@click.option("--home", type=click.Path(), help="Another home than ~/.operant (or OPERANT_HOME).")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
@click.version_option(package_name="operant", message="operant %(version)s")
@click.pass_context
def operant(ctx: click.Context, home: str | None, debug: bool) -> None:
    """Remember what holds for every command; start when there is none."""
    if home is not None:
        os.environ["OPERANT_HOME"] = home
    if ctx.invoked_subcommand is None:
        from operant.cli.start import start

        ctx.exit(start())


def carry_out(words: list[str]) -> int:
    """Carry out a command line and return its exit code; an error is one line on standard error."""
    words = _global_first(words)
    debug = "--debug" in words or bool(os.environ.get("OPERANT_DEBUG"))
    if not debug:
        sys.excepthook = _say_crash
    try:
        code = operant.main(args=words, prog_name="operant", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        return _say_usage(error)
    except click.ClickException as error:
        return _say(error.format_message(), 1)
    except (KeyboardInterrupt, click.Abort):
        return _say("", 130)
    except BrokenPipeError:
        _drop_output()
        return 0
    except _known_errors() as error:
        return _say_error(_innermost(error), debug)
    return code if isinstance(code, int) else 0


def _known_errors() -> tuple[type[Exception], ...]:
    """Return the errors that say what to do; called only once something has been raised."""
    from operant.kernel.errors import OperantError

    return (OperantError, ExceptionGroup)


def _innermost(error: BaseException) -> BaseException:
    """Take a lone error out of the groups that task groups put around it."""
    while isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if len(inside) != 1:
            break
        error = inside[0]
    return cast("BaseException", error)


def _say_error(error: BaseException, debug: bool) -> int:
    from operant.kernel.errors import Invalid, NotFound, OperantError, Refused

    if debug or not isinstance(error, OperantError):
        raise error
    lines = error.line().splitlines()
    more = f" (and {len(lines) - 1} more: operant config check)" if len(lines) > 1 else ""
    codes = ((Refused, 3), (NotFound, 4), (Invalid, 2))
    return _say(lines[0] + more, next((code for kind, code in codes if isinstance(error, kind)), 1))


def _say_usage(error: click.UsageError) -> int:
    """Say what is wrong with a line; a group alone is answered with its help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
        return 2
    where = error.ctx.command_path if error.ctx else "operant"
    return _say(f"{error.format_message()} See: {where} --help", 2)


def _say(line: str, code: int) -> int:
    from operant.cli.inert import inert

    words = " ".join(inert(line).split())
    sys.stderr.write(f"operant: {words}\n" if words else "\n")
    return code


def _say_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Stand in for the traceback of an error that nobody foresaw."""
    words = str(error).splitlines()
    _say(
        f"Something went wrong that should not: {kind.__name__}{': ' + words[0] if words else ''}. "
        "The same with --debug shows where.",
        1,
    )


def _drop_output() -> None:
    """Let the interpreter flush into nothing at its end: who read us has gone."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _global_first(words: list[str]) -> list[str]:
    """Let `--home` and `--debug` stand anywhere before a `--`."""
    end = words.index("--") if "--" in words else len(words)
    front: list[str] = []
    rest: list[str] = []
    index = 0
    while index < end:
        word = words[index]
        if word == "--debug" or word.startswith("--home="):
            front.append(word)
        elif word == "--home" and index + 1 < end:
            front.extend(words[index : index + 2])
            index += 1
        else:
            rest.append(word)
        index += 1
    return [*front, *rest, *words[end:]]
