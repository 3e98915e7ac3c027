"""Figures in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from operant.sdk import Status, UsageSummary

_BOUNDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)


class Metrics:
    """Count requests, and say all that is counted."""

    def __init__(self, sockets: Callable[[], int], watching: Callable[[], int]) -> None:
        self._sockets = sockets
        self._watching = watching
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, float] = {}
        self._within: Counter[tuple[str, float]] = Counter()
        self._total: Counter[str] = Counter()

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one request under its route."""
        self._requests[method, path, status] += 1
        self._total[path] += 1
        self._seconds[path] = self._seconds.get(path, 0.0) + seconds
        for bound in _BOUNDS:
            if seconds <= bound:
                self._within[path, bound] += 1

    def text(self, status: Status, usage: UsageSummary, memory: int) -> str:
        """Say everything."""
        return "\n".join([*self._lines(status, usage, memory), ""])

    def _lines(self, status: Status, usage: UsageSummary, memory: int) -> Iterator[str]:
        yield from _family("operant_ready", "gauge", "Whether messages are accepted.", [("", float(status.accepting))])
        yield from _family("operant_turns", "gauge", "Turns that work now.", [("", float(status.turns))])
        yield from _family(
            "operant_sessions_open", "gauge", "Sessions with an open turn.", [("", status.sessions_open)]
        )
        yield from _family(
            "operant_start_seconds", "gauge", "When it started, since 1970.", [("", status.started / 1e6)]
        )
        yield from _family(
            "operant_problems", "gauge", "Things that are not as they should be.", [("", len(status.problems))]
        )
        yield from _family("operant_memory_bytes", "gauge", "Resident memory.", [("", memory)])
        yield from _family("operant_websockets", "gauge", "Open WebSockets.", [("", self._sockets())])
        yield from _family("operant_watchers", "gauge", "Who follows a session.", [("", self._watching())])
        dropped = [(_labels(what=name), float(count)) for name, count in sorted(status.dropped.items())]
        yield from _family("operant_dropped_total", "counter", "Events that an observer had no room for.", dropped)
        tokens = [
            (_labels(model=line.name, kind=kind), float(getattr(line.usage, kind)))
            for line in usage.models
            for kind in ("input", "cached", "output", "reasoning")
        ]
        yield from _family("operant_tokens_total", "counter", "Tokens by model.", tokens)
        usd = [(_labels(model=line.name), line.usage.usd) for line in usage.models]
        yield from _family("operant_cost_usd_total", "counter", "Money by model.", usd)
        requests = [
            (_labels(method=method, path=path, status=str(code)), float(count))
            for (method, path, code), count in sorted(self._requests.items())
        ]
        yield from _family("operant_http_requests_total", "counter", "Requests.", requests)
        yield from self._histogram()

    def _histogram(self) -> Iterator[str]:
        name = "operant_http_seconds"
        yield f"# HELP {name} How long requests took."
        yield f"# TYPE {name} histogram"
        for path, total in sorted(self._total.items()):
            for bound in _BOUNDS:
                yield f"{name}_bucket{_labels(path=path, le=f'{bound:g}')} {self._within[path, bound]}"
            yield f"{name}_bucket{_labels(path=path, le='+Inf')} {total}"
            yield f"{name}_sum{_labels(path=path)} {self._seconds[path]:.6f}"
            yield f"{name}_count{_labels(path=path)} {total}"


def _family(name: str, kind: str, sentence: str, values: list[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {sentence}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        yield f"{name}{labels} {value:g}" if abs(value) < 1e6 else f"{name}{labels} {value:.6f}"


def _labels(**labels: str) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
