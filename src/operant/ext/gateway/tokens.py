"""Who may connect: tokens by the hash of what they are, login codes that work once."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from operant.kit.files import write_private
from operant.kit.token import new_token, own_token
from operant.sdk import (
    Broken,
    Clock,
    Conflict,
    Invalid,
    NotFound,
    Principal,
    Record,
    TokenAdd,
    TokenInfo,
    TokenList,
    TokenMade,
    TokenRevoke,
    Unavailable,
)

SCOPES: dict[str, frozenset[str]] = {
    "read": frozenset({"session.read", "agent.read", "tool.read", "kernel.read", "approval.read"}),
    "chat": frozenset({"session.read", "session.dispatch", "agent.read", "tool.read", "kernel.read", "approval.read"}),
    "approve": frozenset({"approval.read", "approval.answer"}),
    "tools": frozenset({"tool.read", "tool.invoke"}),
    "a2a": frozenset({"a2a", "a2a.*"}),
    "admin": frozenset({"admin"}),
}
"""What a token may do; the capabilities are bound here, whatever a client says about itself."""

_ONE_AGENT = re.compile(r"a2a:([a-z0-9][a-z0-9_-]{0,63})")
"""The scope of a token for other homes and programs that reach one agent over A2A."""

_ONE_SERVICE = re.compile(r"service:([\w@-]{1,128})")
"""The scope of a token for the service of one skill, which runs elsewhere and connects."""

OWNER_TOKEN = "token"
"""File under `state/` with the owner's own token, for programs of this user."""
LOGIN_S = 600
BROWSER_DAYS = 30
_DAY_US = 86_400_000_000
_NAME = re.compile(r"[\w.@-]{1,64}")
_NOTED_US = 60_000_000
"""How often the time of the last use is written down."""


class _Kept(Record):
    """A token as it is stored."""

    info: TokenInfo
    hash: str


class Keyring:
    """All tokens of a home."""

    def __init__(self, state: Path, home: Path, clock: Clock) -> None:
        self._file = state / "tokens.json"
        self._own = home / "state" / OWNER_TOKEN
        self._clock = clock
        self._kept: dict[str, _Kept] = {one.info.name: one for one in self._read()}
        self._codes: dict[str, int] = {}
        self._owner = hash_of(self.own_token())
        self._voided: list[Callable[[str], None]] = []

    # ------------------------------------------------------------------ who is it

    def own_token(self) -> str:
        """Return the owner's token; make it where there is none."""
        try:
            return own_token(self._own)
        except OSError as error:
            raise Unavailable(f"{self._own} cannot be written: {error.strerror}.") from error

    def principal(self, token: str) -> Principal | None:
        """Return who holds a token, with what their scopes allow; None for one that is not, or no longer, valid."""
        given = hash_of(token)
        if hmac.compare_digest(given, self._owner):
            return Principal(kind="owner", id="owner", capabilities=SCOPES["admin"])
        for one in self._kept.values():
            if hmac.compare_digest(given, one.hash):
                return self._use(one)
        return None

    def seconds_left(self, token: str) -> float | None:
        """Return for how long a token stays valid; None: until somebody revokes it."""
        given = hash_of(token)
        expires = next((one.info.expires for one in self._kept.values() if one.hash == given), 0)
        return (expires - self._clock.now()) / 1_000_000 if expires else None

    def when_void(self, tell: Callable[[str], None]) -> None:
        """Tell the hash of every token that is made void, at that moment."""
        self._voided.append(tell)

    def _void(self, gone: str) -> None:
        self._write()
        for tell in self._voided:
            tell(gone)

    def _use(self, one: _Kept) -> Principal | None:
        now = self._clock.now()
        info = one.info
        if info.expires and info.expires < now:
            return None
        if now - info.used > _NOTED_US:
            self._kept[info.name] = _Kept(info=msgspec.structs.replace(info, used=now), hash=one.hash)
            self._write()
        held = frozenset[str]().union(*(capabilities_of(scope) or () for scope in info.scopes))
        if info.kind == "browser":
            return Principal(kind="owner", id="owner", capabilities=held)
        return Principal(kind="client", id=info.name, capabilities=held)

    # ------------------------------------------------------------------ browsers

    def login_code(self) -> str:
        """Return a code that lets one browser in, once, for a while."""
        now = self._clock.now()
        self._codes = {code: until for code, until in self._codes.items() if until > now}
        code = secrets.token_urlsafe(24)
        self._codes[hash_of(code)] = now + LOGIN_S * 1_000_000
        return code

    def log_in(self, code: str) -> str | None:
        """Return the token of a new browser for a code; None when the code is wrong, old or used."""
        until = self._codes.pop(hash_of(code), 0)
        if until < self._clock.now():
            return None
        name = f"browser-{secrets.token_hex(4)}"
        return self._make(name, ("admin",), BROWSER_DAYS, kind="browser").token

    def log_out(self, token: str) -> None:
        """Make a browser's token void."""
        given = hash_of(token)
        self._kept = {name: one for name, one in self._kept.items() if one.hash != given}
        self._void(given)

    # ------------------------------------------------------------------ syscalls

    async def add(self, who: Principal, call: TokenAdd) -> TokenMade:
        """Make a token."""
        if not _NAME.fullmatch(call.name):
            raise Invalid(f"{call.name!r} cannot be a token's name.", "Use letters, digits and . @ _ - (at most 64).")
        unknown = [scope for scope in call.scopes if capabilities_of(scope) is None]
        if unknown or not call.scopes:
            raise Invalid(
                f"There is no scope {', '.join(unknown)!r}.",
                f"There are: {', '.join(SCOPES)}, a2a:AGENT, service:NAME.",
            )
        if call.days < 0:
            raise Invalid("A token cannot have expired before it is made.", "Give days from now, or 0.")
        if call.name in self._kept or call.name == "owner":
            raise Conflict(f"There is already a token {call.name}.", "Revoke it first, or take another name.")
        return self._make(call.name, call.scopes, call.days)

    async def list(self, who: Principal, call: TokenList) -> tuple[TokenInfo, ...]:
        """List the tokens that are valid."""
        now = self._clock.now()
        return tuple(
            one.info for _, one in sorted(self._kept.items()) if not one.info.expires or one.info.expires > now
        )

    async def revoke(self, who: Principal, call: TokenRevoke) -> TokenInfo:
        """Make a token void."""
        one = self._kept.pop(call.name, None)
        if one is None:
            raise NotFound(f"There is no token {call.name!r}.", "`operant token list` shows those there are.")
        self._void(one.hash)
        return one.info

    # ------------------------------------------------------------------ inside

    def _make(self, name: str, scopes: Sequence[str], days: int, kind: str = "token") -> TokenMade:
        token = new_token()
        now = self._clock.now()
        info = TokenInfo(
            name=name,
            kind="browser" if kind == "browser" else "token",
            scopes=tuple(scopes),
            created=now,
            expires=now + days * _DAY_US if days else 0,
        )
        self._kept[name] = _Kept(info=info, hash=hash_of(token))
        self._write()
        return TokenMade(token=token, info=info)

    def _read(self) -> tuple[_Kept, ...]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=tuple[_Kept, ...])
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.MsgspecError) as error:
            raise Broken(
                f"{self._file} cannot be read: {error}.", "Put it aside; tokens are then made anew."
            ) from error

    def _write(self) -> None:
        now = self._clock.now()
        self._kept = {name: one for name, one in self._kept.items() if not one.info.expires or one.info.expires > now}
        try:
            write_private(self._file, msgspec.json.encode(tuple(self._kept.values())))
        except OSError as error:
            raise Unavailable(f"{self._file} cannot be written: {error.strerror}.") from error


def capabilities_of(scope: str) -> frozenset[str] | None:
    """Return what a scope allows; None for one that there is not."""
    if one := _ONE_AGENT.fullmatch(scope):
        return frozenset({"a2a", f"a2a.{one[1]}"})
    if one := _ONE_SERVICE.fullmatch(scope):
        return frozenset({"service.connect", f"service.connect.{one[1]}"})
    return SCOPES.get(scope)


def hash_of(token: str) -> str:
    """Return what is kept of a token; what came over the wire may be no text at all."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
