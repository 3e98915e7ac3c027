"""Make the tables of the reference out of the code, or check that they are up to date (`--check`).

A page holds a block `<!-- generated:NAME -->` … `<!-- end -->`; what stands between is written here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"(<!-- generated:(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    bar = "\\|"
    return "".join(f"| {' | '.join(cell.replace('|', bar) for cell in line)} |\n" for line in lines)


def first_sentence(text: str | None) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((text or "").split("\n\n")[0].split())


def fields(struct: Any, *, skip: tuple[str, ...] = ()) -> str:
    """Return a record's field names; those with a default are in brackets."""
    import msgspec

    names: list[str] = []
    for field in msgspec.structs.fields(struct):
        if field.name in skip:
            continue
        optional = not field.required
        names.append(f"[{field.name}]" if optional else field.name)
    return f"`{', '.join(names)}`" if names else "-"


def events() -> str:
    """Return every event type."""
    from operant.kernel.records import BODIES

    rows = [(f"`{name}`", fields(body), first_sentence(body.__doc__)) for name, body in sorted(BODIES.items())]
    return table(("type", "body", "says"), rows)


def hooks() -> str:
    """Return every hook point."""
    from operant.kernel.points import POINTS

    rows = [
        (f"`{name}`", point.kind, fields(point.input), fields(point.output), point.doc)
        for name, point in sorted(POINTS.items())
    ]
    return table(("hook", "class", "input", "output", "when"), rows)


def syscalls() -> str:
    """Return every syscall: the kernel's, and those that extensions define."""
    import importlib
    import pkgutil

    import operant.ext
    from operant.kernel.syscalls import Syscall

    for module in pkgutil.walk_packages(operant.ext.__path__, "operant.ext."):
        importlib.import_module(module.name)
    found: list[Any] = []
    pending: list[Any] = list(Syscall.__subclasses__())
    while pending:
        one = pending.pop()
        pending += one.__subclasses__()
        if one.call and one.__module__.startswith("operant."):
            found.append(one)
    rows = [
        (f"`{one.call}`", f"`{one.capability}`", fields(one), returned(one.returns), first_sentence(one.__doc__))
        for one in sorted(set(found), key=lambda one: one.call)
    ]
    return table(("syscall", "capability", "parameters", "returns", "does"), rows)


def returned(kind: Any) -> str:
    """Name what a syscall returns."""
    if kind is None:
        return "-"
    name = getattr(kind, "__name__", "") if isinstance(kind, type) and not getattr(kind, "__args__", ()) else ""
    words = name or re.sub(r"[\w.]+\.(\w+)", r"\1", str(kind))
    return f"`{words.replace(', ...', '…')}`"


def configuration() -> str:
    """Return every key of operant.yaml."""
    from operant.app.config import describe
    from operant.app.extensions import find_extensions

    rows = [(f"`{row.key}`", row.type, row.default, row.sentence) for row in describe(find_extensions().extensions)]
    return table(("key", "type", "default", "says"), rows)


def commands() -> str:
    """Return every command."""
    import click

    from operant.cli.commands import operant as root

    rows: list[tuple[str, ...]] = []

    def walk(command: click.Command, path: str, context: click.Context) -> None:
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None:
                    walk(child, f"{path} {name}", context)
            return
        arguments = " ".join(one.make_metavar(context) for one in command.params if isinstance(one, click.Argument))
        options = " ".join(one.opts[-1] for one in command.params if isinstance(one, click.Option))
        rows.append((f"`{path} {arguments}`".replace(" `", "`"), options, first_sentence(command.help)))

    walk(root, "operant", click.Context(root))
    return table(("command", "options", "does"), rows)


def errors() -> str:
    """Return the tree of errors."""
    from operant.kernel.errors import OperantError

    rows: list[tuple[str, ...]] = []

    def walk(kind: type[OperantError], depth: int) -> None:
        rows.append((f"{'· ' * depth}`{kind.__name__}`", f"`{kind.code}`", first_sentence(kind.__doc__)))
        for child in kind.__subclasses__():
            if child.__module__ == OperantError.__module__:
                walk(child, depth + 1)

    walk(OperantError, 0)
    return table(("error", "code", "says"), rows)


def tables() -> str:
    """Return the store's schema."""
    from operant.ext.sqlite.schema import MIGRATIONS

    return "```sql\n" + re.sub(r"(?m)^    ", "", "".join(MIGRATIONS)).strip() + "\n```\n"


def providers() -> str:
    """Return every provider that is known by name."""
    from operant.ext.providers.presets import PRESETS

    rows = [
        (
            f"`{one.name}`",
            one.protocol,
            " or ".join(f"`{name}`" for name in (one.key, *one.also) if name)
            + (f" and `{one.place}`" if one.place else "")
            or "none: a server here",
            f"`{one.model}`" if one.model else "",
            f"`{one.embedding}`" if one.embedding else "",
            one.base_url.replace("{place}", f"${one.place}"),
        )
        for one in PRESETS
    ]
    return table(("provider", "protocol", "variable", "model by itself", "vectors", "address"), rows)


def tools() -> str:
    """Return every tool that comes with Operant: those that a model is told about, then those that it finds."""
    import asyncio
    import tempfile

    from operant.app.build import Options, running
    from operant.app.home import Home
    from operant.kernel.records import OWNER, ToolSpec
    from operant.kernel.syscalls import ToolList

    async def offered() -> tuple[ToolSpec, ...]:
        with tempfile.TemporaryDirectory() as folder:
            async with running(Home(Path(folder) / "home"), Options(env={}, overrides={}, work=False)) as made:
                return await made.kernel.call(OWNER, ToolList())

    rows = [
        (
            f"`{spec.name}`",
            "on need" if spec.deferred else "always",
            spec.effect,
            ", ".join(f"`{name}`" for name in spec.schema.get("properties") or ()),
            " ".join(spec.description.split()),
        )
        for spec in sorted(asyncio.run(offered()), key=lambda spec: (spec.deferred, spec.name))
    ]
    return table(("tool", "told", "effect", "parameters", "does"), rows)


def routes() -> str:
    """Return every HTTP route, from the description that a running gateway gives of itself."""
    import asyncio
    import json
    import tempfile
    import urllib.request

    from operant.app.build import Options, running
    from operant.app.home import Home
    from operant.kernel.records import OWNER
    from operant.kernel.syscalls import LoginOpen

    async def described() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder) / "home")
            options = Options(env={"OPERANT_GATEWAY__PORT": "0"}, overrides={}, role="daemon")
            async with running(home, options) as made:
                address = (await made.kernel.call(OWNER, LoginOpen())).partition("/#")[0]
                headers = {"Authorization": f"Bearer {home.token.read_text().strip()}"}
                request = urllib.request.Request(f"{address}/openapi.json", headers=headers)
                return json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(request).read()))

    document = asyncio.run(described())
    rows: list[tuple[str, ...]] = []
    for path, operations in document["paths"].items():
        for method, one in operations.items():
            query = ", ".join(f"`{part['name']}`" for part in one["parameters"] if part["in"] == "query")
            rows.append((one["tags"][0], f"`{method.upper()} {path}`", query, one["summary"]))
    return table(("about", "route", "query", "does"), sorted(rows, key=lambda row: row[0]))


def frames() -> str:
    """Return what a client may send over the WebSocket of a session."""
    from typing import get_args

    from operant.ext.gateway.incoming import Incoming

    rows = [
        (f"`{kind.__struct_config__.tag}`", fields(kind), first_sentence(kind.__doc__)) for kind in get_args(Incoming)
    ]
    return table(("type", "fields", "does"), rows)


def scopes() -> str:
    """Return what tokens may do."""
    from operant.ext.gateway.tokens import SCOPES

    rows = [(f"`{name}`", ", ".join(f"`{one}`" for one in sorted(held))) for name, held in SCOPES.items()]
    return table(("scope", "capabilities"), rows)


def host() -> str:
    """Return what a running system offers to an extension, in the order of the protocol."""
    import inspect

    from operant.sdk import Host

    rows: list[tuple[str, str]] = []
    for name, member in vars(Host).items():
        if name.startswith("_"):
            continue
        if inspect.isfunction(member):
            parameters = [one for one in inspect.signature(member).parameters if one != "self"]
            rows.append((f"`{name}({', '.join(parameters)})`", first_sentence(member.__doc__)))
        elif isinstance(member, property):
            rows.append((f"`{name}`", first_sentence(member.__doc__)))
    return table(("call", "does"), rows)


MAKERS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "configuration": configuration,
    "errors": errors,
    "events": events,
    "frames": frames,
    "host": host,
    "hooks": hooks,
    "providers": providers,
    "routes": routes,
    "scopes": scopes,
    "syscalls": syscalls,
    "tables": tables,
    "tools": tools,
}


def fresh(text: str) -> str:
    """Return a page with its blocks made anew."""
    return BLOCK.sub(lambda match: f"{match[1]}{MAKERS[match[2]]()}{match[3]}", text)


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` say which are stale."""
    stale: list[str] = []
    used: set[str] = set()
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        used |= {match[1] for match in BLOCK.findall(text)}
        made = fresh(text)
        if made != text:
            stale.append(str(page.relative_to(DOCS.parent)))
            if "--check" not in arguments:
                page.write_text(made)
    missing = sorted(set(MAKERS) - used)
    for name in missing:
        print(f"docs: nothing shows the generated table {name!r}")
    if "--check" not in arguments:
        return 1 if missing else 0
    for name in stale:
        print(f"docs: {name} is stale: run `make docs`")
    return 1 if stale or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
