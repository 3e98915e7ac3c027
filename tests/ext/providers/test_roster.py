"""What servers say that they have."""

from __future__ import annotations

import pytest

from operant.ext.providers.roster import Roster, listing, names_in
from operant.kit.http import Http
from operant.sdk.testing.fakes import ManualClock
from operant.sdk.testing.server import scripted_server


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'{"object":"list","data":[{"id":"a"},{"id":"b/c"}]}', ("a", "b/c")),
        (b'{"models":[{"name":"models/gemini-x"}]}', ("gemini-x",)),
        (b'[{"id":"a"}]', ("a",)),
        (b"<html>", ()),
        (b'{"data":[{"name":"a"}]}', ()),
        (b"{}", ()),
    ],
)
def test_lists_are_read_in_every_shape(body: bytes, names: tuple[str, ...]) -> None:
    assert names_in(body) == names


async def test_who_answers_is_listed_and_kept_for_a_while_and_nobody_waits_for_the_others() -> None:
    clock = ManualClock()
    async with Http() as http:
        async with scripted_server() as server:
            asked = {
                "here": listing(f"{server.url}/models", {}),
                "wrong": listing(f"{server.url}/nothing", {}),
                "gone": listing("http://127.0.0.1:9/v1/models", {}),
            }
            roster = Roster(lambda: asked, http, clock)
            assert await roster.names() == ("here/one",)
        assert await roster.names() == ("here/one",)
        clock.advance(601)
        assert await roster.names() == ()
