"""All services: found in skills, run as the owner allowed, in their places at the hook points."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from operant.ext.services.commands import ServiceCommands
from operant.ext.services.contents import Contents
from operant.ext.services.declared import Declared, check, services_of
from operant.ext.services.grants import Grant, Grants
from operant.ext.services.keeper import Keeper, Target, slowly
from operant.ext.services.post import Post
from operant.ext.services.settings import ServiceSettings
from operant.ext.services.tools import ServiceTools
from operant.ext.services.wire import HookWanted
from operant.ext.services.workshop import Workshop
from operant.kit.text import plain
from operant.sdk import POINTS, Host, Invalid, NotFound, OperantError, ServiceInfo, SkillInfo, SkillList

_log = logging.getLogger("operant.services")


class Roster:
    """Look at the skills and see to it that what was allowed runs."""

    def __init__(self, host: Host, settings: ServiceSettings, group: asyncio.TaskGroup, workshop: Workshop) -> None:
        self._host = host
        self._settings = settings
        self._group = group
        self._workshop = workshop
        self.grants = Grants(host)
        self._contents = Contents(host.clock)
        self.tools = ServiceTools()
        self.commands = ServiceCommands()
        self._posts: dict[str, Post] = {}
        self._looking = asyncio.Lock()
        self._beginning = asyncio.Lock()
        self._looked = False
        self._working = False

    async def begin(self) -> None:
        """Look for the first time, and wait until what was allowed runs, or does not."""
        self._working = True
        await self.known()
        await asyncio.gather(*(post.keeper.settled() for post in self._posts.values()))

    async def known(self) -> None:
        """See to it that there was a first look; in a system that takes up no work nothing is started."""
        async with self._beginning:
            if not self._looked:
                await self.grants.load()
                await self.look()
                self._looked = True

    def end(self) -> None:
        """Let every service end."""
        for post in self._posts.values():
            post.keeper.end()

    async def look(self) -> None:
        """Look at the skills: what is new is kept, what has changed is replaced, what has gone ends."""
        async with self._looking:
            found, broken = await self._found()
            for name in self._posts.keys() - found.keys():
                await self._missed(name, broken)
            for name, told in found.items():
                await self._see(name, told)
            self._offer()

    def configure(self, configuration: Mapping[str, Mapping[str, str]]) -> None:
        """Let services have this from now on; those that run are told when theirs is another one."""
        self._workshop.configuration = configuration
        for post in self._posts.values():
            self._configure(post)

    def post(self, service: str) -> Post:
        """Return a service. Raises `NotFound`."""
        if service not in self._posts:
            names = ", ".join(sorted(self._posts)) or "none"
            hint = f"There are: {names}. `operant skill list` says which skills cannot be read."
            raise NotFound(f"No skill {service!r} has a service.", hint)
        return self._posts[service]

    @property
    def posts(self) -> Iterable[Post]:
        """Return all services by name."""
        return [self._posts[name] for name in sorted(self._posts)]

    def told(self, post: Post) -> ServiceInfo:
        """Say how a service stands."""
        keeper, told = post.keeper, post.told
        current, grant = keeper.current, self.grants.of(told.name)
        register = current.register if current else None
        weak = post.fault or slowly(current) or _stale(post)
        hooks = tuple(dict.fromkeys(one.point for one in (register.hooks if register else grant.hooks)))
        return ServiceInfo(
            name=told.name,
            skill=told.skill,
            state="degraded" if keeper.state == "running" and weak else keeper.state,
            path=told.folder,
            agent=told.agent,
            digest=post.digest,
            running=current.plan.digest if current else "",
            command=told.command,
            generation=current.plan.number if current else 0,
            pid=current.pid if current else 0,
            since=keeper.since,
            restarts=max(0, keeper.starts - 1),
            hooks=hooks or told.hooks,
            declares=told.hooks,
            tools=tuple(one.name for one in register.tools) if register else (),
            commands=self.commands.of(keeper),
            wants=told.wants,
            granted=allowed.wants if (allowed := grant.told.get(keeper.digest or grant.newest)) else (),
            network=told.network,
            secrets=told.secrets,
            sandbox=told.sandbox,
            reason=post.fault or keeper.reason or weak or self._aside(told.name, grant),
        )

    def _aside(self, service: str, grant: Grant) -> str:
        """Say what else there is to say of a service that is as it should be."""
        if self._working:
            return "; ".join(self.commands.lost(service))
        return "it runs when Operant does" if grant.newest else ""

    def trusts(self, told: Declared) -> bool:
        """Tell whether every version runs unasked; a skill of the same name from elsewhere is another one."""
        own = bool(told.agent) or Path(told.folder).is_relative_to(Path(self._host.home) / "skills")
        return own and told.name in self._settings.trusted

    async def direct(self, post: Post) -> None:
        """Say what is to run, as the grants are."""
        name, keeper = post.told.name, post.keeper
        grant = self.grants.of(name)
        if self.trusts(post.told) and post.digest and post.digest not in grant.digests:
            await self.grants.allow(name, post.digest, post.told, stopped=grant.stopped)
            grant = self.grants.of(name)
        if grant.stopped:
            keeper.want(None, "stopped")
        elif not self._working:
            keeper.want(None, "waiting" if grant.newest else "ungranted")
        elif post.digest in grant.digests:
            keeper.want(Target(declared=post.told, digest=post.digest))
        elif grant.newest in grant.told and keeper.current is None:
            keeper.want(Target(declared=grant.told[grant.newest], digest=grant.newest))
        elif not grant.newest:
            keeper.want(None, "ungranted")
        self._place(post)

    async def tidy(self, post: Post) -> None:
        """Forget the copies of contents that are not allowed any more and do not run."""
        kept = {*self.grants.of(post.told.name).digests, *post.keeper.running}
        try:
            await asyncio.to_thread(self._workshop.stash(post.told.name).thin, kept)
        except OSError as error:
            _log.warning("old copies of the service %s could not be removed: %s", post.told.name, error)

    # ------------------------------------------------------------------ inside

    async def _found(self) -> tuple[dict[str, Declared], set[str]]:
        """Return the services that there are by name, and the folders of skills that cannot be read."""
        found: dict[str, Declared] = {}
        broken: set[str] = set()
        for agent in self._host.agents.list():
            skills = await self._skills(agent.name)
            broken |= {skill.path for skill in skills if skill.state == "broken"}
            for told in services_of(skills, agent.name):
                found.setdefault(told.name, told)
        return found, broken

    async def _missed(self, name: str, broken: set[str]) -> None:
        """Let a service end whose skill has gone; one that cannot be read, as while it is saved, goes on."""
        post = self._posts[name]
        if post.told.folder in broken:
            post.digest, post.fault = "", "its SKILL.md cannot be read"
            await self.direct(post)
        else:
            self._leave(self._posts.pop(name))

    async def _skills(self, agent: str) -> tuple[SkillInfo, ...]:
        try:
            return await self._host.call(SkillList(agent=agent))
        except NotFound:  # without skills there are no services
            return ()

    async def _see(self, name: str, told: Declared) -> None:
        post = self._posts.get(name)
        if post is None:
            journal = self._workshop.journal(name)
            keeper = Keeper(name, self._workshop.at(journal, self.tools), self._host.clock, self._changed)
            post = self._posts[name] = Post(told, keeper, journal)
            self._group.create_task(_kept(keeper))
        try:
            digest, fault = await asyncio.to_thread(self._looked_at, told), ""
        except (Invalid, OSError) as error:
            digest, fault = "", plain(error.line() if isinstance(error, OperantError) else str(error))
        if digest != post.digest and digest not in self.grants.of(name).digests and not self.trusts(told):
            _log.warning("the service %s is new or has changed: `operant skill grant %s` lets it run", name, name)
        other = digest != post.digest
        post.told, post.digest, post.fault = told, digest, fault
        await self.direct(post)
        if other:
            await self.tidy(post)

    def _looked_at(self, told: Declared) -> str:
        """Return the digest of what could run. Raises `Invalid` for what could not."""
        check(told)
        return self._contents.digest(Path(told.folder), told.words)

    def _leave(self, post: Post) -> None:
        self._contents.forget(Path(post.told.folder))
        post.keeper.end()
        self._host.enroll(post.told.name, [])

    def _changed(self, keeper: Keeper) -> None:
        """Put another version in its places, or leave them to refuse, in one go."""
        post = self._posts.get(keeper.name)
        if post is not None:
            self._place(post)
            self._offer()
            self._configure(post)  # it may have been edited while this version started

    def _configure(self, post: Post) -> None:
        post.configuration = self._workshop.configured(post.told.skill)
        if post.unsettled:
            self._group.create_task(post.configure())

    def _place(self, post: Post) -> None:
        """Register the handlers of a service: those it has, or those it had while it is down."""
        current = post.keeper.current
        register = current.register if current else None
        enabled = post.keeper.enabled
        hooks = post.keeper.hooks if register else self._expected(post) if enabled else ()
        handlers = post.slots.handlers(hooks, register.events if register else ())
        self._host.enroll(post.told.name, handlers)
        if register is not None:
            self._group.create_task(self._remember(post.told.name, register.hooks))

    async def _remember(self, service: str, hooks: tuple[HookWanted, ...]) -> None:
        try:
            await self.grants.remember(service, hooks)
        except OperantError as error:
            _log.warning("where the service %s hooks could not be kept: %s", service, error.line())

    def _expected(self, post: Post) -> tuple[HookWanted, ...]:
        allowed = post.keeper.allowed or post.told
        hooks = self.grants.of(post.told.name).hooks or tuple(HookWanted(point=point) for point in allowed.hooks)
        return tuple(one for one in hooks if one.point in POINTS)

    def _offer(self) -> None:
        keepers = [(post.keeper, post.told.agent) for post in self.posts]
        self.tools.offer(keepers)
        self.commands.offer(keepers)
        for post in self.posts:
            post.lose(self.commands.lost(post.told.name))


async def _kept(keeper: Keeper) -> None:
    """Keep a service; one that breaks us breaks alone."""
    (wrong,) = await asyncio.gather(keeper.live(), return_exceptions=True)
    if isinstance(wrong, Exception):
        _log.error("the service %s cannot be kept", keeper.name, exc_info=wrong)
        keeper.broke("keeping it broke; the log of Operant says how")


def _stale(post: Post) -> str:
    """Say that another content runs than the folder has by now; an empty text when it does not."""
    if not post.keeper.enabled or post.keeper.digest == post.digest:
        return ""
    return f"its folder has changed; `operant skill grant {post.told.name}` allows the new version"
