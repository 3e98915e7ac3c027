"""Calling the handlers of a hook point: two phases, deny wins, gates fail closed.

All `mutate` handlers run first, then all `validate` handlers, which may not rewrite, so no later rewriter undoes an
earlier guard. Order within a phase: tier, then priority (higher first), then name. A handler that crashes, is too slow
or answers with the wrong thing has failed; a failed handler of a gate rejects unless it was registered to fail open.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

from operant.kernel.crew import Crew
from operant.kernel.errors import Conflict, Invalid, OperantError, Refused
from operant.kernel.points import Allow, Ask, Point, Reject, Verdict
from operant.kernel.records import Note, Record

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)

HANDLER_S = 5.0
POINT_S = 15.0
DEPTH = 4
_QUEUE = 1_000
_TIERS = {"system": 0, "agent": 1, "session": 2}

_log = logging.getLogger("operant.hooks")
Handler = Callable[..., Coroutine[Any, Any, object]]

_running: ContextVar[tuple[Handler, ...]] = ContextVar("operant_running_handlers", default=())


class Registration(Record):
    """One handler at one point; `tools` and `agents` are the only ones that it is called for (empty: all)."""

    point: str
    author: str
    handler: Handler
    phase: Literal["mutate", "validate"] = "mutate"
    tier: Literal["system", "agent", "session"] = "system"
    priority: int = 0
    fail: Literal["closed", "open"] = "closed"
    timeout_s: float = HANDLER_S
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Return what handlers are sorted by."""
        return (self.phase == "validate", _TIERS[self.tier], -self.priority, self.author)


class Ruling(Record, Generic[Out]):
    """What became of a point: the output after all handlers, the verdict, and who did what, for the record."""

    output: Out
    verdict: Verdict = Allow()
    notes: tuple[Note, ...] = ()


class Hooks:
    """All handlers of a running system."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[Registration, ...]] = {}
        self._observers: dict[str, list[_Observer]] = {}
        self._crew = Crew()
        self.dropped: dict[str, int] = {}

    async def __aenter__(self) -> Hooks:
        await self._crew.__aenter__()
        for observers in self._observers.values():
            for observer in observers:
                self._crew.spawn(observer.work())
        return self

    async def __aexit__(self, *reason: Any) -> None:
        await self._crew.__aexit__(*reason)

    def has(self, point: Point[Any, Any]) -> bool:
        """Tell whether anybody listens."""
        return point.name in self._at

    def register(self, point: Point[Any, Any], registration: Registration) -> None:
        """Add a handler. Raises `Invalid` when it takes other arguments than `input` and `output`."""
        wants = tuple(inspect.signature(registration.handler).parameters)
        wrong = set(wants) - {"input", "output"}
        if wrong:
            raise Invalid(
                f"The handler of {registration.author} at {point.name} takes {', '.join(sorted(wrong))}.",
                "A handler takes any of: input, output.",
            )
        registration = msgspec.structs.replace(registration, wants=wants)
        if point.kind == "event":
            observer = _Observer(registration, self.dropped)
            self._observers.setdefault(point.name, []).append(observer)
            if self._crew.working:
                self._crew.spawn(observer.work())
            return
        there = self._at.get(point.name, ())
        self._at[point.name] = tuple(sorted((*there, registration), key=lambda one: one.order))

    def unregister(self, author: str) -> None:
        """Take away everything that an author registered."""
        kept = {name: tuple(one for one in there if one.author != author) for name, there in self._at.items()}
        self._at = {name: there for name, there in kept.items() if there}
        for observers in self._observers.values():
            for observer in [one for one in observers if one.author == author]:
                observer.close()
                observers.remove(observer)

    def emit(self, point: Point[In, Any], input: In) -> None:
        """Tell observers; never waits. What a slow one has no room for is dropped and counted."""
        for observer in self._observers.get(point.name, ()):
            observer.push(input)

    async def provide(self, point: Point[In, Out], input: In) -> Out | None:
        """Ask providers in order until one answers; None when nobody does."""
        for registration in self._at.get(point.name, ()):
            answer = await _call(registration, input, None)
            if answer is not None:
                return cast(Out, _checked(point, answer))
        return None

    async def run(self, point: Point[In, Out], input: In, output: Out) -> Ruling[Out]:
        """Pass a gate or a transform."""
        there = self._at.get(point.name)
        if there is None:
            return Ruling(output=output)
        chosen = [one for one in there if _matches(one, input)]
        return await self._chain(chosen, point, input, output)

    async def _chain(self, chosen: list[Registration], point: Point[In, Out], input: In, output: Out) -> Ruling[Out]:
        verdict: Verdict = Allow()
        notes: list[Note] = []
        purse = _Purse(POINT_S)
        for registration in chosen:
            answer = await self._answer(registration, point, input, output, (notes, purse))
            if isinstance(answer, Reject):
                notes.append(_note(point, registration, "rejected", answer.reason))
                return Ruling(output=output, verdict=answer, notes=tuple(notes))
            if isinstance(answer, Ask):
                verdict = verdict if isinstance(verdict, Ask) else answer
            elif not isinstance(answer, Allow) and answer != output:
                if _rewrites(point, output, answer):
                    notes.append(_note(point, registration, "rewrote", ""))
                output = answer
        return Ruling(output=output, verdict=verdict, notes=tuple(notes))

    async def _answer(
        self,
        registration: Registration,
        point: Point[In, Out],
        input: In,
        output: Out,
        passage: tuple[list[Note], _Purse],
    ) -> Verdict | Out:
        """Return a handler's verdict or output; a failure becomes what its registration says."""
        notes, purse = passage
        try:
            answer = await _call(registration, input, output, purse)
            if answer is None:
                return Allow()
            if isinstance(answer, Allow | Reject | Ask):
                return answer
            changed = cast(Out, _checked(point, answer))
            if registration.phase == "validate" and changed != output:
                raise Invalid("A validating handler may not rewrite.")
        except OperantError as error:
            notes.append(_note(point, registration, "failed", error.sentence))
            if registration.fail == "open":
                return Allow()
            return Reject(reason=f"The guard {registration.author} could not decide: {error.sentence}")
        return changed


class _Observer:
    """Feeds one handler of an event point, in order."""

    def __init__(self, registration: Registration, dropped: dict[str, int]) -> None:
        self.author = registration.author
        self._registration = registration
        self._dropped = dropped
        self._queue: asyncio.Queue[Record | None] = asyncio.Queue(_QUEUE + 1)

    def push(self, input: Record) -> None:
        if self._queue.qsize() >= _QUEUE:
            self._dropped[self.author] = self._dropped.get(self.author, 0) + 1
            return
        self._queue.put_nowait(input)

    def close(self) -> None:
        while self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    async def work(self) -> None:
        while (input := await self._queue.get()) is not None:
            try:
                await _call(self._registration, input, None)
            except OperantError as error:
                _log.warning("observer %s failed: %s", self.author, error.sentence)


class _Purse:
    """The time that all handlers of one passage may take together; only waiting spends it."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds


class _Rest(Generator[Any, Any, object]):
    """The rest of a coroutine that has yielded its first future already."""

    def __init__(self, work: Coroutine[Any, Any, object], first: Any) -> None:
        self._work = work
        self._first: tuple[Any, ...] = (first,)

    def __await__(self) -> Generator[Any, Any, object]:
        return self

    def send(self, value: Any, /) -> Any:
        """Go on with a value."""
        if self._first:
            (first,), self._first = self._first, ()
            return first
        return self._work.send(value)

    def throw(self, error: Any, value: Any = None, traceback: Any = None, /) -> Any:
        """Go on with an exception, as a cancellation is one."""
        return self._work.throw(error if value is None else value)


async def _bounded(work: Coroutine[Any, Any, object], limit_s: float, purse: _Purse) -> object:
    """Run a handler. Most never wait: those are spared the timer, which costs more than they do."""
    try:
        first = work.send(None)
    except StopIteration as done:
        return done.value
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(max(0.0, min(limit_s, purse.left))):
            return await _Rest(work, first)
    finally:
        purse.left -= loop.time() - began


async def _call(
    registration: Registration, input: Record, output: Record | None, purse: _Purse | None = None
) -> object:
    """Call a handler; whatever goes wrong in it comes out as one of our errors."""
    stack = _running.get()
    if registration.handler in stack:
        return None
    if len(stack) >= DEPTH:
        raise Refused(f"Handlers are nested deeper than {DEPTH}.")
    token = _running.set((*stack, registration.handler))
    arguments = {name: input if name == "input" else output for name in registration.wants}
    try:
        work = registration.handler(**arguments)
        return await _bounded(work, registration.timeout_s, purse or _Purse(registration.timeout_s))
    except OperantError:
        raise
    except TimeoutError as error:
        raise Conflict(f"{registration.author} took more than {registration.timeout_s:g} s.") from error
    except Exception as error:  # supervisor: a handler is foreign code; its failure is put on record
        _log.exception("handler %s at %s failed", registration.author, registration.point)
        raise Conflict(f"{registration.author} failed with {type(error).__name__}.") from error
    finally:
        _running.reset(token)


def _checked(point: Point[Any, Any], answer: object) -> Record:
    if isinstance(answer, point.output):
        return cast(Record, answer)
    try:
        return msgspec.convert(answer, point.output)
    except msgspec.ValidationError as error:
        raise Invalid(f"The answer does not fit {point.name}: {error}.") from error


def _rewrites(point: Point[Any, Any], before: Record, after: Record) -> bool:
    """Tell whether more was changed than what a point invites to fill in."""
    same = {name: getattr(before, name) for name in point.additions}
    return not same or msgspec.structs.replace(after, **same) != before


def _matches(registration: Registration, input: Record) -> bool:
    if registration.tools and getattr(input, "name", "") not in registration.tools:
        return False
    agent = getattr(input, "agent", None)
    return not registration.agents or getattr(agent, "name", "") in registration.agents


def _note(point: Point[Any, Any], registration: Registration, did: str, reason: str) -> Note:
    return Note(kind="hook", text=reason, data={"point": point.name, "by": registration.author, "did": did})
