"""The configuration: read here, once, into one frozen record; everything else is handed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from operant.app.bindings import Binding
from operant.app.extensions import load_name, section_of
from operant.app.fit import Fitting, make, unknown_key
from operant.app.neighbours import is_there
from operant.app.profiles import check_profile
from operant.kernel.errors import Broken, Invalid, OperantError
from operant.kernel.records import Limits, Record
from operant.kit.egress import Allowance, Denied
from operant.kit.secret import Secret
from operant.kit.yaml import Document, KeyPath, YamlError, read_yaml
from operant.sdk.extension import Extension

if TYPE_CHECKING:
    from operant.app.describe import Row

FILE = "operant.yaml"
PREFIX = "OPERANT_"
DEFAULT_AGENT = "operant"

Answer = Literal["ask", "allow", "deny"]


class LimitSettings(Record):
    """Where a turn must end."""

    turn_s: Annotated[float, Meta(gt=0, description="Seconds after which a turn is ended, and the person is told.")] = (
        Limits().turn_s
    )
    turn_tokens: Annotated[
        Annotated[int, Meta(gt=0)] | None, Meta(description="Tokens that one turn may use; null: no limit.")
    ] = None
    stall_notice_s: Annotated[
        float, Meta(gt=0, description="Seconds without progress after which the person is told.")
    ] = Limits().stall_notice_s
    stall_s: Annotated[
        float, Meta(gt=0, description="Seconds without progress after which a model call is given up.")
    ] = Limits().stall_s
    tool_output_chars: Annotated[
        int, Meta(ge=200, description="Characters of a tool's output that a model is shown; the rest is kept.")
    ] = Limits().tool_output_chars
    repeated_calls: Annotated[
        int, Meta(ge=1, description="How often in a row a model may make the same tool call.")
    ] = Limits().repeated_calls
    malformed_calls: Annotated[int, Meta(ge=1, description="How often in a row a model may send broken arguments.")] = (
        Limits().malformed_calls
    )


class BoundarySettings(Record):
    """What no agent may exceed."""

    tools: Annotated[tuple[str, ...], Meta(description="Tools that any agent may use at most.")] = ("*",)
    deny: Annotated[tuple[str, ...], Meta(description="Tools that no agent may use.")] = ()
    skills: Annotated[tuple[str, ...], Meta(description="Skills that any agent may use at most.")] = ("*",)


class PermissionSettings(Record):
    """What an agent may use."""

    profile: Annotated[
        str,
        Meta(
            description="A set of tools: `full`, `coding`, `messaging`, `minimal` or one of `defaults.profiles`; "
            "`tools` and `deny` take from it."
        ),
    ] = ""
    tools: Annotated[tuple[str, ...], Meta(description="Tools that may be used: names, or patterns with `*`.")] = ("*",)
    deny: Annotated[tuple[str, ...], Meta(description="Tools that may not be used; wins over `tools`.")] = ()
    skills: Annotated[tuple[str, ...], Meta(description="Skills that may be used: names, or patterns with `*`.")] = (
        "*",
    )
    extensions: Annotated[
        tuple[str, ...],
        Meta(description="Extensions of your own that work for the agent: names, or patterns with `*`; live."),
    ] = ("*",)


class AgentSettings(Record):
    """How an agent works. AGENT.md is over `agents.<name>`, and that is over `defaults`."""

    models: Annotated[
        tuple[str, ...],
        Meta(description="Models as `provider/model`; the next is tried when one fails. Empty: found by itself."),
    ] = ()
    max_steps: Annotated[int, Meta(ge=1, description="Model calls that a turn may make.")] = 25
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Tokens that one reply may have; null: the model's own limit."),
    ] = None
    context_ratio: Annotated[
        float, Meta(gt=0, le=1, description="Part of the model's window that may be full before history is compacted.")
    ] = 0.5
    context_strategy: Annotated[
        Literal["compact", "mask", "window"],
        Meta(description="What happens then: summarise, hide tool results, or drop what is old."),
    ] = "compact"
    arrival: Annotated[
        Literal["steer", "queue", "interrupt"],
        Meta(description="What a message does that arrives in a turn: join it, wait for the next, or end it."),
    ] = "steer"
    sandbox: Annotated[
        bool, Meta(description="Commands and custom tools see only the workspace; false lets them do what you can do.")
    ] = True
    network: Annotated[
        Literal["none", "full"] | tuple[str, ...],
        Meta(description="What sandboxed commands reach: `none`, a list of hosts such as `*.example.org`, or `full`."),
    ] = "none"
    effort: Annotated[
        Literal["none", "low", "medium", "high"] | None,
        Meta(description="How long models that reason think; null: as the model does by itself."),
    ] = None
    timezone: Annotated[str, Meta(description="Time zone of the agent and its person.")] = "UTC"
    description: Annotated[str, Meta(description="One line about the agent, for lists.")] = ""
    permissions: Annotated[PermissionSettings, Meta(description="What the agent may use.")] = PermissionSettings()
    approval: Annotated[
        dict[str, Answer],
        Meta(description="By tool name or pattern: `ask` a person before it runs, `allow`, or `deny`."),
    ] = {}
    limits: Annotated[LimitSettings, Meta(description="Where a turn must end.")] = LimitSettings()

    def __post_init__(self) -> None:
        """Refuse a time zone that this machine does not know."""
        if self.timezone == "UTC":
            return
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"{self.timezone!r} is not a time zone, such as Europe/Berlin") from error


class Defaults(AgentSettings):
    """What holds for every agent that does not say otherwise."""

    agent: Annotated[str, Meta(min_length=1, description="The agent that answers when none is named.")] = DEFAULT_AGENT
    env_file: Annotated[str | None, Meta(description="File with NAME=value lines; the environment wins over it.")] = (
        None
    )
    profiles: Annotated[
        dict[str, tuple[str, ...]], Meta(description="Profiles of your own: tools or patterns by name.")
    ] = {}
    boundary: Annotated[BoundarySettings, Meta(description="What no agent may exceed, whatever its own file says.")] = (
        BoundarySettings()
    )


class ExtensionSettings(Record):
    """Which extensions run."""

    disabled: Annotated[tuple[str, ...], Meta(description="Extensions that are not started.")] = ()


class EgressSettings(Record):
    """What may be dialled that is not public."""

    private: Annotated[
        tuple[str, ...],
        Meta(
            description="Private places that tools and pages may reach: networks, addresses or host names, such as "
            "`192.168.1.0/24` or `nas.local`; `198.18.0.0/15` behind a fake-IP proxy."
        ),
    ] = ()

    def __post_init__(self) -> None:
        """Refuse what is no network, address or host name."""
        for entry in self.private:
            try:
                Allowance((entry,))
            except Denied as error:
                raise ValueError(f"{entry!r} is not a network, address or host name") from error


class SandboxSettings(Record):
    """What sandboxed programs may see and use beside the workspace; agents choose `sandbox` and `network`."""

    readable: Annotated[
        tuple[str, ...], Meta(description="More paths that sandboxed programs may read, such as `/opt/node`.")
    ] = ()
    writable: Annotated[
        tuple[str, ...], Meta(description="More paths that sandboxed programs may change; every agent sees them.")
    ] = ()
    memory_mb: Annotated[int, Meta(ge=64, description="Memory that a command may use, in MiB.")] = 4096
    processes: Annotated[int, Meta(ge=8, description="Processes that a command may have at once.")] = 512
    by: Annotated[
        tuple[Literal["bubblewrap", "landlock"], ...],
        Meta(description="What makes sandboxes; the first that works here. Where none does, nothing is run."),
    ] = ("bubblewrap", "landlock")

    def __post_init__(self) -> None:
        """Refuse paths that nobody can know the meaning of."""
        for path in (*self.readable, *self.writable):
            if not path.startswith(("/", "~/")) or ".." in path.split("/"):
                raise ValueError(f"{path!r} is not a whole path, such as /opt/node or ~/.nvm")


_ONLY_DEFAULTS = frozenset({"agent", "env_file", "profiles", "boundary"})


def _no_variable(name: str) -> str | None:
    return None


class Config(Record):
    """The whole configuration. `sections` has the settings of those extensions that are mentioned."""

    defaults: Defaults = Defaults()
    agents: dict[str, AgentSettings] = {}
    bindings: tuple[Binding, ...] = ()
    extensions: ExtensionSettings = ExtensionSettings()
    egress: EgressSettings = EgressSettings()
    sandbox: SandboxSettings = SandboxSettings()
    sections: dict[str, Any] = {}
    secrets: tuple[Secret, ...] = ()
    find: Callable[[str], str | None] = _no_variable
    """Return a variable of the environment or of the env file."""
    unchecked: tuple[str, ...] = ()
    """Sections that nobody could check because their extension cannot be loaded."""

    def settings(self, extension: Extension) -> Any:
        """Return an extension's settings; its defaults when it is not mentioned. Raises `Broken`."""
        if not extension.settings:
            return None
        section = section_of(extension)
        return self.sections[section] if section in self.sections else make({}, load_name(extension.settings))

    def agent(self, name: str) -> AgentSettings:
        """Return an agent's settings as far as the configuration knows them."""
        return self.agents.get(name) or make(_agent_defaults(self.defaults), AgentSettings)


def load_config(home: Path, env: Mapping[str, str], extensions: Sequence[Extension] = ()) -> Config:
    """Read `operant.yaml` under a home and the environment over it.

    Raises `Invalid` with one line for each thing that is wrong.
    """
    path = home / FILE
    try:
        document = read_yaml(path.read_text("utf-8")) if path.exists() else Document(None)
    except YamlError as error:
        raise Invalid(f"{FILE}:{error.line}: {error.sentence}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}.") from error
    data: Any = document.data
    if data is not None and not isinstance(data, dict):
        raise Invalid(f"{FILE}:1: expected keys and values, such as `defaults:`.")
    raw = _Raw(data or {}, document)
    raw.take_environment(env)
    return _Loading(raw, env, extensions, home).config()


def overlay(base: AgentSettings, settings: Document, find: Callable[[str], str | None]) -> AgentSettings:
    """Put the frontmatter of an AGENT.md over an agent's settings. Raises `Invalid`, its lines as `LINE: sentence`."""
    fitting = Fitting(find, {})
    fitted = fitting.fit(settings.data, AgentSettings, ())
    if fitting.misfits:
        raise Invalid("\n".join(f"{settings.line(one.path)}: {one.line()}" for one in fitting.misfits))
    try:
        return make(_merged(msgspec.to_builtins(base), fitted), AgentSettings)
    except msgspec.ValidationError as error:
        raise Invalid(f"1: {error}") from error


def describe(extensions: Sequence[Extension] = ()) -> list[Row]:
    """List every key, its type, default and sentence; `agents.<name>` takes what `defaults` takes."""
    from operant.app.describe import rows

    own = {"defaults": Defaults, "extensions": ExtensionSettings, "egress": EgressSettings, "sandbox": SandboxSettings}
    found = [row for name, kind in own.items() for row in rows(name, kind)]
    for extension in extensions:
        if not extension.settings:
            continue
        try:
            found.extend(rows(section_of(extension), load_name(extension.settings)))
        except Broken:  # `operant doctor` names it
            continue
    return found


class _Raw:
    """The data of the file with the environment's over it, and where each value is from."""

    def __init__(self, data: Any, document: Document) -> None:
        self.data: dict[str, Any] = data
        self.texts: dict[KeyPath, str] = {}
        self.faults: list[str] = []
        self._document = document
        self._variables: dict[KeyPath, str] = {}

    def take_environment(self, env: Mapping[str, str]) -> None:
        """Set what `OPERANT_<SECTION>__<KEY>` variables say."""
        for name in sorted(env):
            if not name.startswith(PREFIX) or "__" not in name:
                continue
            path = self._place(name.removeprefix(PREFIX).split("__"))
            try:
                value = read_yaml(env[name]).data
            except YamlError as error:
                self.faults.append(f"{name}: {error.sentence}")
                continue
            self._put(path, value)
            self._variables[path] = name
            self.texts[path] = env[name]

    def where(self, path: KeyPath) -> str:
        """Name the line or the variable that a value is from."""
        around = path
        while around:
            if around in self._variables:
                return self._variables[around]
            around = around[:-1]
        below = [name for at, name in self._variables.items() if at[: len(path)] == path]
        if below and path not in self._document.lines:
            return below[0]
        return f"{FILE}:{self._document.line(path)}"

    def _place(self, words: list[str]) -> KeyPath:
        """Find the keys that upper case words stand for; `-` in a key is `_` in a variable."""
        place: list[str] = []
        there: Any = self.data
        for word in words:
            keys = (
                [key for key in cast("dict[Any, Any]", there) if isinstance(key, str)]
                if isinstance(there, dict)
                else []
            )
            same = [key for key in keys if key.upper().replace("-", "_") == word.upper()]
            place.append(same[0] if same else word.lower())
            there = cast("dict[Any, Any]", there).get(place[-1]) if isinstance(there, dict) else None
        return tuple(place)

    def _put(self, path: KeyPath, value: Any) -> None:
        there: dict[Any, Any] = self.data
        for key in path[:-1]:
            below = there.get(key)
            if not isinstance(below, dict):
                below = there[key] = {}
            there = cast("dict[Any, Any]", below)
        there[path[-1]] = value


class _Loading:
    """One reading of the configuration."""

    def __init__(self, raw: _Raw, env: Mapping[str, str], extensions: Sequence[Extension], home: Path) -> None:
        self._home = home
        self._raw = raw
        self._env = env
        self._faults = list(raw.faults)
        self._kinds: dict[str, Any] = {
            "defaults": Defaults,
            "agents": dict[str, AgentSettings],
            "extensions": ExtensionSettings,
            "egress": EgressSettings,
            "sandbox": SandboxSettings,
            "bindings": tuple[Binding, ...],
        }
        self._settings = {section_of(one): one.settings for one in extensions if one.settings}
        self._loaded = {one.name for one in extensions}
        self._unchecked: list[str] = []

    def config(self) -> Config:
        find = self._variables().get
        fitting = Fitting(find, self._raw.texts)
        fitted = {
            str(key): self._section(fitting, key, value) for key, value in self._raw.data.items() if self._known(key)
        }
        lines = [f"{self._raw.where(one.path)}: {one.line()}" for one in fitting.misfits]
        if self._faults or lines:
            raise Invalid("\n".join([*self._faults, *lines]))
        own = {key: fitted.pop(key) for key in list(fitted) if key in self._kinds}
        defaults = make(own.get("defaults", {}), Defaults)
        agents = {
            name: make(_merged(_agent_defaults(defaults), settings), AgentSettings)
            for name, settings in own.get("agents", {}).items()
        }
        self._check_profiles(defaults, agents)
        bindings = make(own.get("bindings") or [], tuple[Binding, ...])
        self._check_bindings(bindings, {defaults.agent, *agents})
        return Config(
            defaults=defaults,
            agents=agents,
            bindings=bindings,
            extensions=make(own.get("extensions", {}), ExtensionSettings),
            egress=make(own.get("egress", {}), EgressSettings),
            sandbox=make(own.get("sandbox", {}), SandboxSettings),
            sections={
                key: make(value, load_name(self._settings[key]))
                for key, value in fitted.items()
                if key not in self._unchecked
            },
            secrets=tuple(fitting.secrets),
            find=find,
            unchecked=tuple(self._unchecked),
        )

    def _check_profiles(self, defaults: Defaults, agents: Mapping[str, AgentSettings]) -> None:
        """Refuse a profile that there is not. Raises `Invalid`."""
        chosen = {("defaults",): defaults, **{("agents", name): one for name, one in agents.items()}}
        for path, settings in chosen.items():
            try:
                check_profile(settings.permissions.profile, defaults.profiles)
            except Invalid as error:
                at = (*path, "permissions", "profile")
                raise Invalid(f"{self._raw.where(at)}: {'.'.join(at)}: {error.sentence}.") from error

    def _check_bindings(self, bindings: Sequence[Binding], named: set[str]) -> None:
        """Refuse a binding to an agent that there is not. Raises `Invalid`."""
        there = named | {path.parent.name for path in self._home.glob("agents/*/AGENT.md")}
        for number, binding in enumerate(bindings):
            if binding.agent not in there:
                at = self._raw.where(("bindings", number, "agent"))
                known = ", ".join(sorted(there))
                raise Invalid(f"{at}: bindings: there is no agent {binding.agent!r}; there are: {known}.")

    def _known(self, key: object) -> bool:
        known = {**self._kinds, **self._settings}
        if key in known:
            return True
        if isinstance(key, str) and key not in self._loaded and is_there(self._home, key):
            self._unchecked.append(key)  # what it would be checked against cannot be loaded
            return False
        self._faults.append(f"{self._raw.where((str(key),))}: {key}: {unknown_key(str(key), known)}")
        return False

    def _section(self, fitting: Fitting, key: str, value: Any) -> Any:
        try:
            kind = self._kinds[key] if key in self._kinds else load_name(self._settings[key])
        except OperantError:
            self._unchecked.append(key)
            return {}
        return fitting.fit(value, kind, (key,))

    def _variables(self) -> dict[str, str]:
        """Return the environment, over the env file if one is named."""
        defaults = self._raw.data.get("defaults")
        named: Any = cast("dict[Any, Any]", defaults).get("env_file") if isinstance(defaults, dict) else None
        if not isinstance(named, str):
            return dict(self._env)
        try:
            text = Path(named).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError, RuntimeError, ValueError) as error:
            where = self._raw.where(("defaults", "env_file"))
            self._faults.append(f"{where}: defaults.env_file: {named} cannot be read: {error}")
            return dict(self._env)
        return {**read_env_file(text), **self._env}


def read_env_file(text: str) -> dict[str, str]:
    """Read NAME=value lines; `export` in front, quotes around a value, and lines of `#` are understood."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name.isidentifier():
            continue
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[name] = value
    return found


def _agent_defaults(defaults: Defaults) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(defaults)
    return {key: value for key, value in data.items() if key not in _ONLY_DEFAULTS}


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Lay one mapping over another; mappings in both are merged, everything else is replaced."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _merged(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            merged[key] = value
    return merged
