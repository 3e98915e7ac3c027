"""Renew the catalogue of models from a file in the format of models.dev or of LiteLLM.

`python scripts/catalogue.py FILE_OR_URL [--date YYYY-MM]` reads JSON, keeps the providers that we know, and writes
`src/operant/ext/providers/catalogue.json`. Entries that it does not have stay as they are. A model that is only there
with a date is also known without it, by its latest.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

OURS = Path(__file__).parents[1] / "src" / "operant" / "ext" / "providers" / "catalogue.json"
MODELS_DEV = {
    "anthropic": "anthropic", "openai": "openai", "google": "gemini", "xai": "xai", "deepseek": "deepseek",
    "mistral": "mistral", "groq": "groq", "cerebras": "cerebras", "togetherai": "together", "fireworks-ai": "fireworks",
    "zai": "zai", "moonshotai": "moonshot", "alibaba": "qwen", "nvidia": "nvidia",
}  # fmt: skip
LITELLM = {
    "anthropic": "anthropic", "openai": "openai", "gemini": "gemini", "xai": "xai", "deepseek": "deepseek",
    "mistral": "mistral", "groq": "groq", "cerebras": "cerebras", "together_ai": "together",
    "fireworks_ai": "fireworks", "moonshot": "moonshot", "dashscope": "qwen", "zai": "zai",
}  # fmt: skip
MILLION = 1_000_000
DATED = re.compile(r"[-@](?:20\d{6}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|latest|preview|exp)$")
ABOVE = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
MOST = 64 * 2**20


def from_models_dev(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return entries of a file whose top level is providers."""
    found: dict[str, dict[str, Any]] = {}
    for provider, about in data.items():
        if provider not in MODELS_DEV:
            continue
        for name, model in about.get("models", {}).items():
            limit, cost = model.get("limit", {}), model.get("cost", {})
            inputs = model.get("modalities", {}).get("input", [])
            can = {
                "t": model.get("tool_call"),
                "i": "image" in inputs,
                "f": "pdf" in inputs,
                "r": model.get("reasoning"),
            }
            beyond = tier(200_000, models_dev_prices(cost.get("context_over_200k") or {}))
            found[f"{MODELS_DEV[provider]}/{name.casefold()}"] = entry(
                limit.get("context"), limit.get("output"), models_dev_prices(cost), can, beyond
            )
    return {name: one for name, one in found.items() if one["window"]}


def models_dev_prices(cost: dict[str, Any]) -> dict[str, Any]:
    """Return prices under our names."""
    return {
        "input": cost.get("input"),
        "out": cost.get("output"),
        "cached": cost.get("cache_read"),
        "write": cost.get("cache_write"),
    }


def from_litellm(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return entries of a file whose top level is models, with prices per token."""
    found: dict[str, dict[str, Any]] = {}
    for name, model in data.items():
        provider = LITELLM.get(model.get("litellm_provider", ""))
        if provider is None or model.get("mode") not in ("chat", "responses"):
            continue
        prices = {
            "input": model.get("input_cost_per_token"),
            "out": model.get("output_cost_per_token"),
            "cached": model.get("cache_read_input_token_cost"),
            "write": model.get("cache_creation_input_token_cost"),
        }
        can = {
            "t": model.get("supports_function_calling"),
            "i": model.get("supports_vision"),
            "f": model.get("supports_pdf_input"),
            "r": model.get("supports_reasoning"),
        }
        own = name.partition("/")[2] if name.startswith(f"{model['litellm_provider']}/") else name
        found[f"{provider}/{own.casefold()}"] = entry(
            model.get("max_input_tokens") or model.get("max_tokens"),
            model.get("max_output_tokens"),
            {key: millions(value) for key, value in prices.items()},
            can,
            litellm_tier(model),
        )
    return {name: one for name, one in found.items() if one["window"]}


def litellm_tier(model: dict[str, Any]) -> dict[str, Any]:
    """Return what long calls cost, whose limit stands in the names of the fields."""
    limit = next((found[1] for key in model if (found := ABOVE.fullmatch(key))), "0")
    end = f"_above_{limit}k_tokens"
    prices = {
        "input": millions(model.get(f"input_cost_per_token{end}")),
        "out": millions(model.get(f"output_cost_per_token{end}")),
        "cached": millions(model.get(f"cache_read_input_token_cost{end}")),
        "write": millions(model.get(f"cache_creation_input_token_cost{end}")),
    }
    return tier(int(limit) * 1000, prices)


def tier(above: int, prices: dict[str, Any]) -> dict[str, Any]:
    """Return what calls with more input cost, or nothing."""
    if not above or prices["input"] is None or prices["out"] is None:
        return {}
    return {"above": above, **{key: value for key, value in prices.items() if value is not None}}


def millions(per_token: float | None) -> float | None:
    """Return a price per million tokens."""
    return None if per_token is None else round(per_token * MILLION, 6)


def entry(
    window: Any, output: Any, prices: dict[str, Any], can: dict[str, Any], beyond: dict[str, Any]
) -> dict[str, Any]:
    """Return one entry as the catalogue has it; what is not known is left out, what is free is not."""
    made: dict[str, Any] = {"window": int(window or 0), "output": int(output or 0) or None, **prices}
    made["beyond"] = beyond or None
    made["can"] = "".join(letter for letter, able in can.items() if able)
    return {key: value for key, value in made.items() if value is not None}


def aliased(models: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the models, those that are only there with a date also without it."""
    plain: dict[str, dict[str, Any]] = {}
    for name in sorted(models):
        plain[DATED.sub("", name)] = models[name]
    return {**plain, **models}


def merged(ours: dict[str, Any], theirs: dict[str, Any], date: str) -> dict[str, Any]:
    """Return the catalogue with what is new in it."""
    models = {**ours["models"], **aliased(theirs)}
    return {"date": date or ours["date"], "models": dict(sorted(models.items()))}


def written(catalogue: dict[str, Any]) -> str:
    """Return the file: a line a model, so that changes can be read."""
    lines = [
        f"{json.dumps(name)}:{json.dumps(one, separators=(',', ':'))}" for name, one in catalogue["models"].items()
    ]
    return f'{{"date":{json.dumps(catalogue["date"])},"models":{{\n' + ",\n".join(lines) + "\n}}\n"


async def fetched(url: str) -> bytes:
    """Return what is at an address."""
    from operant.kit.egress import Reach
    from operant.kit.http import Get, Http

    async with Http() as http:
        answer = await http.fetch(Get(url=url, max_bytes=MOST, total_s=120.0, reach=Reach.NAMED))
    if answer.status != 200 or answer.truncated:
        raise SystemExit(f"{url} answered {answer.status}{', and more than is read' if answer.truncated else ''}.")
    return answer.body


def main(arguments: list[str]) -> int:
    """Renew the file."""
    if not arguments:
        print("usage: python scripts/catalogue.py FILE_OR_URL [--date YYYY-MM]", file=sys.stderr)
        return 2
    source = arguments[0]
    data = json.loads(asyncio.run(fetched(source)) if "://" in source else Path(source).read_bytes())
    date = arguments[arguments.index("--date") + 1] if "--date" in arguments else ""
    by_provider = any(isinstance(one, dict) and "models" in one for one in data.values())
    theirs = from_models_dev(data) if by_provider else from_litellm(data)
    if not theirs:
        print("There is no model of a provider that we know in this file.", file=sys.stderr)
        return 1
    OURS.write_text(written(merged(json.loads(OURS.read_text("utf-8")), theirs, date)), "utf-8")
    print(f"{len(theirs)} models are new or renewed.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
