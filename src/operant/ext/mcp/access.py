"""What a connection shows a server over HTTP to be let in, and what is said when that does not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import msgspec

from operant.ext.mcp.declared import Declared
from operant.ext.mcp.shelf import Kept, Shelf
from operant.sdk import Json, Unavailable

LOGINS = "logins.json"
_PAST = 1.0


class Login(Kept):
    """What a login brought, as the parties gave it.

    `tokens` are of the token endpoint and expire at `expires_at` (Unix seconds; 0: not said), `client` is our
    registration, `authority` the metadata of the authorization server. `more` are scopes that a call was refused for.
    """

    tokens: Json | None = None
    expires_at: float = 0.0
    client: Json | None = None
    authority: Json | None = None
    more: str = ""


Logins = Shelf[Login]


class Access:
    """The way into one server; `refusal` says why we are no longer let in.

    `refused` is called then, and told whether another try is worth it.
    """

    def __init__(self, server: Declared, logins: Logins, refused: Callable[[bool], None]) -> None:
        self.server = server
        self.logins = logins
        self.refusal = ""
        self._refused = refused

    @property
    def login(self) -> Login | None:
        """Return the login that is kept of the server, if its settings leave room for one."""
        return None if self.has_header or self.by_program else self.logins.of(self.server)

    @property
    def has_header(self) -> bool:
        """Tell whether the settings say what to show."""
        return any(name.lower() == "authorization" for name in self.server.settings.headers)

    @property
    def by_program(self) -> bool:
        """Tell whether we come as a program, which nobody logs in for."""
        chosen = self.server.settings.oauth
        return chosen is not None and not chosen.by_person

    def turned_away(self) -> None:
        """Note that the server does not let us in."""
        header = "it refuses the token in its headers"
        self._refuse(header if self.has_header else f"it wants a login: {self._remedy}")

    def wants_more(self, scope: str) -> bool:
        """Note that a call was refused for the want of these scopes; tell whether a login could bring them."""
        login = self.login
        if login is None:
            return False
        self.logins.keep(self.server, msgspec.structs.replace(login, more=scope))
        self.refusal = f"it wants more rights for this: {self._remedy}"
        return True

    def give_up(self) -> NoReturn:
        """Say that our login does not do, where a person would have to log in. Raises `Unavailable`.

        A token that was taken back before its time is renewed first, if it can be.
        """
        login = self.login
        if login is not None and "refresh_token" in (login.tokens or {}) and login.expires_at != _PAST:
            self.logins.keep(self.server, msgspec.structs.replace(login, expires_at=_PAST))
            self._refuse("it took its token back before its time, try again", again=True)
        else:
            self.turned_away()
        raise Unavailable(f"{self.server.name}: {self.refusal}.")

    def _refuse(self, sentence: str, *, again: bool = False) -> None:
        self.refusal = sentence
        self._refused(again)

    @property
    def _remedy(self) -> str:
        return f"operant mcp login {self.server.name}"
