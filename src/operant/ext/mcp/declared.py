"""The servers that the owner names: in `operant.yaml`, and in `mcp.json` as other programs write it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from operant.ext.mcp.settings import NAME, OAuthSettings, ServerSettings
from operant.kit.egress import Denied, parse
from operant.kit.files import write_private
from operant.kit.secret import Secret
from operant.sdk import Invalid, Json, NotFound, Record, Unavailable

FILE = "mcp.json"
KEY = "mcpServers"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TEXTS = ("command", "cwd", "url")
_SECRETS = ("env", "headers")

Find = Callable[[str], str | None]


class Declared(Record):
    """A server as the owner wrote it, with its variables filled in; `fault` says why it cannot be used."""

    name: str
    settings: ServerSettings
    source: str
    fault: str = ""

    @property
    def is_http(self) -> bool:
        """Tell whether it is reached over HTTP."""
        return bool(self.settings.url)

    @property
    def where(self) -> str:
        """Return its program or address, without anything that may be a secret."""
        return self.settings.url.partition("?")[0] if self.is_http else self.settings.command

    @property
    def origin(self) -> str:
        """Return a digest of who the server is: another command or address is another server."""
        one = self.settings
        return hashlib.sha256(msgspec.json.encode([one.command, one.args, one.url])).hexdigest()


def read_declared(home: Path, settings: dict[str, ServerSettings], find: Find) -> dict[str, Declared]:
    """Return all servers by name; `operant.yaml` wins over `mcp.json`. Raises `Invalid` for a file that is none."""
    found = {name: _written(name, raw, find) for name, raw in read_file(home / FILE).items()}
    for name, one in settings.items():
        found[name] = Declared(name=name, settings=one, source="operant.yaml", fault=_fault(name, one))
    return found


def read_file(path: Path) -> dict[str, Any]:
    """Return the servers of `mcp.json`, as they are written there. Raises `Invalid`."""
    servers = _document(path).get(KEY)
    if servers is not None and not isinstance(servers, dict):
        raise Invalid(f"{path}: `{KEY}` must hold servers by name.")
    return cast("dict[str, Any]", servers or {})


def write_server(path: Path, name: str, raw: Json | None) -> None:
    """Put a server into `mcp.json`, or take it out; all else in the file stays. Raises `Invalid`, `NotFound`."""
    document = _document(path)
    servers = read_file(path)
    if raw is None:
        if name not in servers:
            raise NotFound(f"{FILE} names no server {name!r}.", "`operant mcp list` shows where each is from.")
        del servers[name]
    else:
        _check_name(name)
        problem = _written(name, raw, lambda _: "").fault or _no_address(str(raw.get("url", "")))
        if problem:
            raise Invalid(f"{name}: {problem}")
        servers[name] = raw
    document[KEY] = servers
    try:
        write_private(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error


def _document(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise Invalid(f"{path} cannot be read: {error}.", 'It holds {"mcpServers": {NAME: {…}}}.') from error


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME, name):
        raise Invalid(f"{name!r} is no name for a server.", "Take letters, digits, - and _, at most 32.")


def _written(name: str, raw: Any, find: Find) -> Declared:
    """Read one entry leniently: what we do not know is another program's business."""
    missing: list[str] = []
    known = {field.name for field in msgspec.structs.fields(ServerSettings)}
    try:
        data = {key: value for key, value in msgspec.convert(raw, dict[str, Any]).items() if key in known}
        for key in _TEXTS:
            if key in data:
                data[key] = _filled(msgspec.convert(data[key], str), find, missing)
        if "args" in data:
            data["args"] = [_filled(one, find, missing) for one in msgspec.convert(data["args"], list[str])]
        for key in _SECRETS:
            texts = _texts(data.pop(key, {}) or {})
            data[key] = {at: Secret(_filled(text, find, missing)) for at, text in texts.items()}
        if data.get("oauth"):
            data["oauth"] = _oauth(data["oauth"], find, missing)
        if data.get("type") == "sse":
            raise msgspec.ValidationError("the SSE transport is out of use; ask for its address over plain HTTP")
        settings = msgspec.convert(data, ServerSettings, dec_hook=_as_it_is)
    except msgspec.ValidationError as error:
        return Declared(name=name, settings=ServerSettings(), source=FILE, fault=f"{error}".replace("`", ""))
    fault = f"the variable {missing[0]} is not set" if missing else _fault(name, settings)
    return Declared(name=name, settings=settings, source=FILE, fault=fault)


def _oauth(raw: Any, find: Find, missing: list[str]) -> OAuthSettings:
    known = OAuthSettings.__struct_fields__
    given = {key: text for key, text in msgspec.convert(raw, dict[str, Any]).items() if key in known}
    texts: dict[str, Any] = {key: _filled(text, find, missing) for key, text in _texts(given).items()}
    if "client_secret" in texts:
        texts["client_secret"] = Secret(texts["client_secret"])
    return msgspec.convert(texts, OAuthSettings, dec_hook=_as_it_is)


def _texts(raw: Any) -> dict[str, str]:
    return msgspec.convert(raw, dict[str, str])


def _filled(text: str, find: Find, missing: list[str]) -> str:
    """Put values in the place of `${NAME}` and `${NAME:-otherwise}`."""

    def value(match: re.Match[str]) -> str:
        found = find(match[1])
        if found is None and match[2] is None:
            missing.append(match[1])
        return found if found is not None else match[2] or ""

    return _VARIABLE.sub(value, text)


def _no_address(url: str) -> str:
    """Say why a url is none, as far as it can be seen before its variables are filled in."""
    if not url or "${" in url:
        return ""
    try:
        parse(url)
    except Denied as error:
        return f"{error}"
    return ""


def _fault(name: str, settings: ServerSettings) -> str:
    if not re.fullmatch(NAME, name):
        return "its name must be letters, digits, - and _, at most 32"
    if bool(settings.command) == bool(settings.url):
        return "it needs either a command or a url"
    oauth = settings.oauth
    if oauth is not None and oauth.client_secret and not oauth.issuer:
        return "its oauth needs the `issuer` of the secret, so that nobody else gets to see it"
    secrets = (*settings.env.values(), *settings.headers.values())
    unset = next((one.name for one in secrets if not one and one.name), "")
    return f"the variable {unset} is not set" if unset else ""


def _as_it_is(kind: type, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    raise msgspec.ValidationError(f"expected {kind.__name__}")
