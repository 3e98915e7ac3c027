"""Choosing models while it runs, trying them, vectors and pictures: over the syscalls, with the scripted server."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.kernel.errors import Invalid, NotFound
from operant.kernel.records import OWNER, BlobRef, ModelReplied, text_of
from operant.kernel.syscalls import (
    ModelEmbed,
    ModelGet,
    ModelList,
    ModelSearch,
    ModelTest,
    ModelUse,
    ProviderList,
    ToolInvoke,
)
from operant.sdk.testing.server import scripted_server
from tests.journey.house import ended, say, system


async def test_a_choice_holds_over_a_restart_until_it_is_given_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with scripted_server() as server:
        async with system(home, server) as made:
            assert await made.kernel.call(OWNER, ModelUse(model="scripted/two")) == "every agent"
            assert await made.kernel.call(OWNER, ModelUse(model="offline/x", agent="operant")) == "the agent operant"
        async with system(home, server) as made:
            await say(made, "hello")
            await ended(made, 1)
            await made.kernel.call(OWNER, ModelUse(model="", agent="operant"))
            await say(made, "hello")
            await ended(made, 2)
            assert "chosen for all agents" in (await made.kernel.call(OWNER, ModelList()))[0].why
            await made.kernel.call(OWNER, ModelUse(model=""))
            await say(made, "hello")
            events = await ended(made, 3)
    answered = [event.body.model for event in events if isinstance(event.body, ModelReplied)]
    assert answered == ["offline/x", "scripted/two", "scripted/one"]


async def test_what_is_no_model_is_refused_in_words(tmp_path: Path) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server) as made:
        for name in ("nobody/x", "scripted", "scripted/"):
            with pytest.raises(Invalid, match="is no model here"):
                await made.kernel.call(OWNER, ModelUse(model=name))
        with pytest.raises(NotFound):
            await made.kernel.call(OWNER, ModelUse(model="scripted/one", agent="nobody"))


async def test_the_catalogue_is_searched_and_says_what_is_ready(tmp_path: Path) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server) as made:
        found = await made.kernel.call(OWNER, ModelSearch(words="claude sonnet 4-5"))
        assert [one.model for one in found] == ["anthropic/claude-sonnet-4-5"]
        assert not found[0].ready
        assert "images" in found[0].can
        assert await made.kernel.call(OWNER, ModelSearch(words="no such thing")) == ()


async def test_what_a_server_lists_is_found_too_and_comes_first(tmp_path: Path) -> None:
    for protocol in ("openai", "anthropic", "gemini"):
        async with scripted_server() as server, system(tmp_path / protocol, server, protocol=protocol) as made:
            found = await made.kernel.call(OWNER, ModelSearch(words="one"))
        assert (found[0].model, found[0].ready) == ("scripted/one", True)


async def test_the_models_of_an_agent_are_listed_with_their_reasons(tmp_path: Path) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server) as made:
        await made.kernel.call(OWNER, ModelUse(model="offline/x", agent="operant"))
        await made.kernel.call(OWNER, ModelUse(model="scripted/two"))
        listed = await made.kernel.call(OWNER, ModelList(agent="operant"))
    assert [one.model for one in listed] == ["offline/x", "scripted/two", "scripted/one"]
    assert ["the agent operant" in listed[0].why, "all agents" in listed[1].why] == [True, True]
    assert "the settings of operant" in listed[2].why


async def test_providers_are_listed_with_what_they_lack(tmp_path: Path) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server) as made:
        listed = {one.name: one for one in await made.kernel.call(OWNER, ProviderList())}
        assert (listed["scripted"].ready, listed["scripted"].wants) == (True, "")
        assert next(iter(listed)) == "scripted"
        assert listed["gemini"].wants == "GEMINI_API_KEY or GOOGLE_API_KEY"
        assert listed["azure"].wants == "AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT"
        assert listed["ollama"].wants.startswith("a server at http://127.0.0.1:")
        known = await made.kernel.call(OWNER, ModelGet(model="scripted/one"))
        assert known.price is not None
        assert (known.price.output, known.window, known.ready) == (2.0, 32_000, True)
        with pytest.raises(NotFound, match="Nothing is known"):
            await made.kernel.call(OWNER, ModelGet(model="nobody/x"))


async def test_the_offline_model_says_that_there_is_nothing_to_try(tmp_path: Path) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server) as made:
        (trial,) = await made.kernel.call(OWNER, ModelTest(model="offline/commands"))
    assert trial.ok is None
    assert "no intelligence" in trial.words


@pytest.mark.parametrize("protocol", ["openai", "responses", "anthropic", "gemini"])
async def test_a_model_is_tried_on_everything(tmp_path: Path, protocol: str) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server, protocol=protocol) as made:
        trials = await made.kernel.call(OWNER, ModelTest(model="scripted/one"))
    verdicts = {one.name: one.ok for one in trials}
    assert set(verdicts) == {"streaming", "tools", "images", "structured", "caching"}
    assert verdicts["streaming"]
    assert verdicts["caching"]
    assert verdicts["tools"] is False  # it says hello to everything
    assert all(one.usd > 0 for one in trials if one.ok)


async def test_texts_become_vectors_by_either_protocol(tmp_path: Path) -> None:
    texts = tuple(f"text number {at}" for at in range(300))
    async with scripted_server() as server:
        for protocol in ("openai", "gemini"):
            async with system(tmp_path / protocol, server, protocol=protocol) as made:
                answer = await made.kernel.call(OWNER, ModelEmbed(texts=texts, model="scripted/embed"))
                assert len(answer.vectors) == 300
                assert len(set(map(len, answer.vectors))) == 1
                assert answer.vectors[0] != answer.vectors[1]
                assert answer.usage.input > 0
                with pytest.raises(NotFound, match="No provider here makes vectors"):
                    await made.kernel.call(OWNER, ModelEmbed(texts=("x",)))


async def test_a_picture_is_made_and_kept(tmp_path: Path) -> None:
    async with scripted_server() as server, system(tmp_path / "home", server) as made:
        wanted = {"prompt": "a loaf of bread", "model": "scripted/paint", "size": "1024x1024"}
        result = await made.kernel.call(OWNER, ToolInvoke(name="generate_image", arguments=wanted))
        assert result.outcome == "ok", text_of(result.parts)
        (picture,) = [part for part in result.parts if isinstance(part, BlobRef)]
        assert picture.media_type == "image/png"
        assert (await made.kernel.store.get_blob(picture.digest)).startswith(b"\x89PNG")
        nobody = await made.kernel.call(OWNER, ToolInvoke(name="generate_image", arguments={"prompt": "x"}))
        assert "No provider here makes such pictures" in text_of(nobody.parts)
