"""The default policies are skills: each can be removed, and another one, in any language, put in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.kernel.records import MessageReceived, TurnEnded
from operant.kernel.syscalls import SessionHistory, SkillGet, SkillList, SkillRemove, SkillReset
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import house, write_skill
from tests.journey.house import ended, say

POLICIES = ("context", "web", "a2a", "skill")
PERL_ENGINE = r"""
use strict;
use warnings;
use IO::Socket::UNIX;
use JSON::PP;
my $json = JSON::PP->new->utf8;
my $line = IO::Socket::UNIX->new(Peer => $ENV{OPERANT_SERVICE_SOCKET}) or die;
$line->autoflush(1);
sub say_it { print {$line} $json->encode({jsonrpc => "2.0", @_}), "\n" }
say_it(id => 1, method => "register", params => {protocol => "svc/1", token => $ENV{OPERANT_SERVICE_TOKEN},
    hooks => [{point => "session.assemble", priority => 10, timeout_s => 20}]});
while (my $text = <$line>) {
    my $asked = $json->decode($text);
    exit 0 if ($asked->{method} // "") eq "shutdown";
    next unless defined $asked->{id} and exists $asked->{method};
    my $input = $asked->{params}{input};
    my $result = $asked->{method} ne "hook" ? undef
        : {output => {system => "You are assembled in Perl, of " . @{$input->{messages}} . " messages.",
                      tools => $input->{tools}}};
    say_it(id => $asked->{id}, result => $result);
}
"""


async def test_with_all_of_them_removed_the_kernel_starts_keeps_history_and_says_what_is_missing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    async with house(home, server) as there:
        await there.says("first")
        listed = {one.name: one for one in await there.call(SkillList())}
        assert set(POLICIES) <= listed.keys()
        for name in POLICIES:
            await there.call(SkillRemove(skill=name))
        assert not set(POLICIES) & {one.name for one in await there.call(SkillList())}
    async with house(home, server) as there:
        assert not {"context", "gateway", "a2a"} & set(there.made.kernel.extensions)
        history = await there.call(SessionHistory(session="s"))
        assert any(isinstance(event.body, MessageReceived) for event in history), "what was said is still there"
        await say(there.made, "second")
        events = await ended(there.made, 2)
        last = events[-1].body
        assert isinstance(last, TurnEnded)
        assert last.reason == "error"
        assert "session.assemble" in last.sentence, last
        await there.call(SkillReset())
    async with house(home, server) as there:
        await say(there.made, "third")
        last = (await ended(there.made, 3))[-1].body
        assert isinstance(last, TurnEnded)
        assert last.reason == "done"


async def test_an_engine_in_another_language_takes_the_place_of_ours(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "perl-engine", {"engine.pl": PERL_ENGINE}, service="./engine.pl", hooks="session.assemble")
    async with house(home, server) as there:
        assert (await there.grant("perl-engine")).state == "running", await there.log("perl-engine")
        await there.call(SkillRemove(skill="context"))
        await there.says("hello")
    assert server.requests[-1].body["messages"][0]["content"] == "You are assembled in Perl, of 1 messages."
    async with house(home, server) as there:  # now without ours
        await there.says("again", turns=2)
    assert server.requests[-1].body["messages"][0]["content"] == "You are assembled in Perl, of 3 messages."


async def test_what_stands_for_a_part_is_not_told_to_models(tmp_path: Path, server: ScriptedServer) -> None:
    async with house(tmp_path / "h", server) as there:
        await there.says("hello")
        assert "switches it off" in (await there.call(SkillGet(skill="context"))).body
    told = str(server.requests[-1].body["tools"])
    assert "skill-creator" in told
    assert "context engine" not in told.lower()


@pytest.mark.parametrize("name", POLICIES)
async def test_each_can_be_removed_alone(tmp_path: Path, server: ScriptedServer, name: str) -> None:
    home = tmp_path / "h"
    async with house(home, server) as there:
        await there.call(SkillRemove(skill=name))
    async with house(home, server) as there:
        await say(there.made, "hello")
        last = (await ended(there.made))[-1].body
        assert isinstance(last, TurnEnded)
        assert last.reason == ("error" if name == "context" else "done")
