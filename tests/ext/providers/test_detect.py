"""A model is found by itself: a key, else a server on this machine, else the offline one."""

from __future__ import annotations

from operant.ext.providers.detect import detect
from operant.ext.providers.presets import PRESETS, Preset
from operant.kit.egress import Egress
from operant.sdk.testing.server import scripted_server

KEYS = tuple(one for one in PRESETS if one.key)


async def test_a_key_wins_and_the_sentence_says_why() -> None:
    found = await detect({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}.get, Egress(), KEYS)
    assert found.chain[0].startswith("anthropic/")
    assert any(model.startswith("openai/") for model in found.chain)
    assert "ANTHROPIC_API_KEY" in found.sentence


async def test_a_server_on_this_machine_is_asked_for_its_models() -> None:
    async with scripted_server() as server:
        found = await detect({}.get, Egress(), [*KEYS, Preset(name="here", base_url=server.url)])
    assert found.chain == ("here/one",)
    assert server.url.removesuffix("/v1") in found.sentence


async def test_something_else_on_the_port_is_no_model_server_and_then_it_is_the_offline_model() -> None:
    found = await detect({}.get, Egress(), [*KEYS, Preset(name="gone", base_url="http://127.0.0.1:9/v1")])
    assert found.chain == ("offline/commands",)
    assert "no intelligence" in found.sentence
