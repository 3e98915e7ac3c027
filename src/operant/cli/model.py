"""`operant model …`: which models there are, and which one answers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from operant.cli import figures
from operant.cli.here import call
from operant.cli.inert import inert
from operant.cli.output import json_option, print_json, print_table, say
from operant.kernel.errors import Invalid, NotFound, OperantError
from operant.kernel.records import Price
from operant.kernel.syscalls import (
    KernelStatus,
    ModelGet,
    ModelInfo,
    ModelList,
    ModelSearch,
    ModelTest,
    ModelUse,
    ProviderInfo,
    ProviderList,
    SessionGet,
    SessionOpen,
    SessionUpdate,
)
from operant.sdk.client import Client

MAIN = "main"
_MANY = 200
_PROVIDER = ("provider", "", "model by itself", "speaks", "address")


@click.group(help="See which models there are, and choose one.")
def command() -> None:
    """Hold the commands about models."""


@command.command("list", help="List the models that are used when nobody names one, best first, and all providers.")
@click.option("--agent", default="", help="That this agent uses, instead of the default one.")
@click.option(
    "--all", "everything", is_flag=True, help="Also the providers that are known and what each of them lacks."
)
@json_option
def list_models(agent: str, everything: bool, as_json: bool) -> None:
    """Print models."""
    models = _models(agent)
    providers = call(KernelStatus()).models
    known = _known() if everything or as_json else ()
    if as_json:
        print_json({"models": models, "providers": providers, "known": known})
        return
    _print_models(models, "No model was found.")
    if everything:
        say("")
        print_table(_PROVIDER, [_provider(one) for one in known], "No provider is known.")
        return
    say(f"\nproviders: {inert(', '.join(providers)) or 'none'} (--all: what the others lack)")
    say("`operant model search WORDS` looks into the catalogue, `operant model test` tries one.")


@command.command("show", help="Show what is known of a model: sizes, prices, what it can.")
@click.argument("model")
@json_option
def show(model: str, as_json: bool) -> None:
    """Print one model."""
    one = call(ModelGet(model=model))
    if as_json:
        print_json(one)
        return
    rows = [
        ("window", f"{_size(one.window) or 'unknown'} tokens"),
        ("output", f"{_size(one.output)} tokens" if one.output else "unknown"),
        ("in / cached / out", f"$ {_price(one)} per million" if one.price else "no price is known"),
        *_more(one.price),
        ("can", ", ".join(one.can) or "words only"),
        ("provider", _ready(one)),
    ]
    print_table((one.model, ""), rows, "")


@command.command(
    "search", help="Find models by words of their names: in the catalogue, and at providers that are here."
)
@click.argument("words", nargs=-1)
@json_option
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Print what is known of models."""
    models = call(ModelSearch(words=" ".join(words)))
    if as_json:
        print_json(models)
        return
    rows = [
        (one.model, _size(one.window), _size(one.output), _price(one), " ".join(one.can), _ready(one)) for one in models
    ]
    heads = ("model", "window", "output", "in / cached / out, $ per million", "can", "provider")
    print_table(heads, rows, "No model of this name is known; a model that is not in the catalogue can still be used.")
    if len(rows) >= _MANY:
        say(f"\nThese are the first {len(rows)}: more words find fewer.")


@command.command(
    "use", help="Choose a model, as provider/model, for a session, an agent or all; `default` gives it back."
)
@click.argument("model")
@click.option("--session", default="", help=f"For this session (when nothing else is said: {MAIN}).")
@click.option("--agent", default="", help="For this agent, over what its files say.")
@click.option("--all", "everywhere", is_flag=True, help="For every agent.")
@json_option
def use(model: str, session: str, agent: str, everywhere: bool, as_json: bool) -> None:
    """Set the model of a session, an agent or all of them."""
    if sum(map(bool, (session, agent, everywhere))) > 1:
        raise click.UsageError("Name one of --session, --agent and --all.")
    name = "" if model == "default" else model
    if agent or everywhere:
        whom = call(ModelUse(model=name, agent=agent))
        done = f"{whom} uses {inert(name)}" if name else f"{whom} uses again what the files say"
        print_json({"whom": whom, "model": name}) if as_json else say(f"{done} from the next step on.")
        return
    _use_in(session or MAIN, name, as_json)


def _use_in(session: str, name: str, as_json: bool) -> None:
    providers = call(KernelStatus()).models
    provider, _, model = name.partition("/")
    if name and (provider not in providers or not model):
        raise Invalid(f"{name!r} is no model here.", f"Name it as PROVIDER/MODEL; there are: {', '.join(providers)}.")
    if session == MAIN:
        call(SessionOpen(session=MAIN))
    else:
        call(SessionGet(session=session))
    info = call(SessionUpdate(session=session, model=name))
    print_json(info) if as_json else say(
        f"{session} uses {inert(name) or 'what its agent says'} from its next step on."
    )


@command.command("test", help="Try a model with one small call each: streaming, tools, images, structure, caching.")
@click.argument("model", default="")
@json_option
def test(model: str, as_json: bool) -> None:
    """Print what a model can do."""
    trials = call(ModelTest(model=model))
    if as_json:
        print_json(trials)
    else:
        marks = {True: "ok", False: "FAILED", None: "-"}
        rows = [
            (one.name, marks[one.ok], f"{one.ms:,.0f} ms" if one.ms else "", figures.money(one.usd), one.words)
            for one in trials
        ]
        print_table(("what", "", "took", "cost", "said"), rows, "Nothing was tried.")
    if any(one.ok is False for one in trials):
        raise SystemExit(1)


def _print_models(models: Sequence[ModelInfo], nothing: str) -> None:
    rows = [(one.model, _size(one.window), _price(one), one.why) for one in models]
    print_table(("model", "window", "in / cached / out, $", "why"), rows, nothing)


def _provider(one: ProviderInfo) -> tuple[str, ...]:
    return (one.name, "ready" if one.ready else f"wants {one.wants}", one.model, one.protocol, one.address)


def _more(price: Price | None) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if price is not None and price.cache_write is not None:
        rows.append(("written to the cache", f"$ {price.cache_write:g} per million"))
    if price is not None and price.beyond is not None:
        rates = price.beyond
        rows.append((f"above {price.above:,} in", f"$ {rates.input:g} in, {rates.output:g} out per million"))
    return rows


def _size(tokens: int) -> str:
    return f"{tokens:,}" if tokens else ""


def _price(one: ModelInfo) -> str:
    if one.price is None:
        return "unknown"
    cached = one.price.input if one.price.cached is None else one.price.cached
    return f"{one.price.input:g} / {cached:g} / {one.price.output:g}"


def _ready(one: ModelInfo) -> str:
    return "ready" if one.ready else "no key"


async def explain(client: Client) -> str:
    """Say in one line which model answers and why."""
    try:
        models = await client.call(ModelList())
    except OperantError:
        return ""  # whoever knows about models is switched off; the first turn will say so
    return models[0].why or f"Using {models[0].model}." if models else "No model was found."


def _known() -> Sequence[ProviderInfo]:
    try:
        return call(ProviderList())
    except NotFound:
        return ()


def _models(agent: str) -> Sequence[ModelInfo]:
    if agent:
        return call(ModelList(agent=agent))
    try:
        return call(ModelList())
    except NotFound:
        return ()
