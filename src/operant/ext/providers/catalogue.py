"""What is known about models: windows, limits, prices, abilities. Data, not code: `scripts/catalogue.py` renews it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from operant.sdk import Facts, Price, Rates

FILE = "catalogue.json"
_DATED = re.compile(r"[-@](?:20\d{6}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|latest|preview|exp)$")
_MONTH = re.compile(r"-(?:0[1-9]|1[0-2]|2[3-9])\d{2}$")
"""A date as some put it: month and day, or year and month. Other models have it in their name."""
_VERSION = re.compile(r"-v?\d+$")
_REGION = re.compile(r"^(?:us|eu|apac|jp|au|global)\.")
_FREE = ":free"
_MAKERS = {"azure": "openai", "bedrock": "", "github": "", "openrouter": ""}
"""Providers that sell the models of others at the makers' prices; empty: the maker stands in the model's name."""
_PREFIXES = {"google": "gemini", "x-ai": "xai", "mistralai": "mistral", "moonshotai": "moonshot", "z-ai": "zai"}


class Beyond(msgspec.Struct, omit_defaults=True):
    """What a call costs that has more tokens of input than `above`."""

    above: int
    input: float
    out: float
    cached: float | None = None
    write: float | None = None


class Entry(msgspec.Struct, omit_defaults=True):
    """A model. Prices are US dollars per million tokens; `can` has t(ools), i(mages), f(iles), r(easoning)."""

    window: int
    output: int = 0
    input: float | None = None
    out: float | None = None
    cached: float | None = None
    write: float | None = None
    beyond: Beyond | None = None
    can: str = "t"

    def facts(self) -> Facts:
        """Return it as the kernel knows it."""
        return Facts(
            window=self.window,
            output=self.output,
            price=self._price(),
            tools="t" in self.can,
            images="i" in self.can,
            files="f" in self.can,
            reasoning="r" in self.can,
        )

    def _price(self) -> Price | None:
        if self.input is None or self.out is None:
            return None
        more, above = None, 0
        if self.beyond is not None:
            more = self.beyond
            above = more.above
            more = Rates(input=more.input, output=more.out, cached=more.cached, cache_write=more.write)
        return Price(
            input=self.input, output=self.out, cached=self.cached, cache_write=self.write, above=above, beyond=more
        )


class Stored(msgspec.Struct):
    """The file: when it was made, and entries by `provider/model`."""

    date: str
    models: dict[str, Entry]


class Catalogue:
    """Read when the first model is asked about."""

    def __init__(self, stored: Stored | None = None) -> None:
        self._stored = stored

    @property
    def stored(self) -> Stored:
        """Return the data."""
        if self._stored is None:
            self._stored = msgspec.json.decode(Path(__file__).with_name(FILE).read_bytes(), type=Stored)
        return self._stored

    def find(self, provider: str, model: str) -> Facts | None:
        """Return what is known of a provider's model; one of a date that is not there itself is the one without."""
        models = self.stored.models
        found = next((models[name] for name in _names(provider, model.casefold()) if name in models), None)
        if found is None:
            return None
        facts = found.facts()
        return replace(facts, price=Price(input=0.0, output=0.0)) if model.endswith(_FREE) else facts

    def search(self, words: Iterable[str], provider: str = "") -> Mapping[str, Facts]:
        """Return models whose name has all of some words."""
        wanted = [word.casefold() for word in words]
        return {
            name: entry.facts()
            for name, entry in sorted(self.stored.models.items())
            if all(word in name for word in wanted) and (not provider or name.startswith(f"{provider}/"))
        }


def _names(provider: str, model: str) -> Iterable[str]:
    """Yield the names under which a model may be in the catalogue, the most exact first."""
    plain = _plain(model)
    yield f"{provider}/{model}"
    yield f"{provider}/{plain}"
    yield f"{provider}/{_MONTH.sub('', plain)}"
    maker, _, rest = plain.rpartition("/")
    if provider in _MAKERS:
        own = _MAKERS[provider] or _PREFIXES.get(maker, maker) or plain.partition(".")[0]
        yield f"{own}/{rest or plain}"
        yield f"{own}/{_MONTH.sub('', rest or plain)}"
        inner = plain.partition(".")[2]
        yield f"{own}/{inner}"
        yield f"{own}/{_undated(_VERSION.sub('', inner))}"


def _plain(model: str) -> str:
    """Return a name without date, variant and the dots that some write for dashes."""
    name = _undated(_REGION.sub("", model.partition(":")[0]))
    return re.sub(r"(claude-[a-z]+-\d)\.(\d)", r"\1-\2", name)


def _undated(name: str) -> str:
    while (shorter := _DATED.sub("", name)) != name:
        name = shorter
    return name
