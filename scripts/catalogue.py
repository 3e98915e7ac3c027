"""Renew the catalogue of models from a file in the format of models.dev or of LiteLLM.

`python scripts/catalogue.py FILE [--date YYYY-MM]` reads JSON that somebody has downloaded, keeps the providers that
we know, and writes `src/operant/ext/providers/catalogue.json`. Entries that the file does not have stay as they are.
"""

from __future__ import annotations

import json
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
            found[f"{MODELS_DEV[provider]}/{name.casefold()}"] = entry(
                limit.get("context"),
                limit.get("output"),
                {
                    "input": cost.get("input"),
                    "out": cost.get("output"),
                    "cached": cost.get("cache_read"),
                    "write": cost.get("cache_write"),
                },
                can,
            )
    return {name: one for name, one in found.items() if one["window"]}


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
            {key: None if value is None else round(value * MILLION, 6) for key, value in prices.items()},
            can,
        )
    return {name: one for name, one in found.items() if one["window"]}


def entry(window: Any, output: Any, prices: dict[str, Any], can: dict[str, Any]) -> dict[str, Any]:
    """Return one entry as the catalogue has it; what is not known is left out."""
    made: dict[str, Any] = {"window": int(window or 0), "output": int(output or 0), **prices}
    made["can"] = "".join(letter for letter, able in can.items() if able)
    return {key: value for key, value in made.items() if key in ("window", "can") or value not in (None, 0)}


def merged(ours: dict[str, Any], theirs: dict[str, Any], date: str) -> dict[str, Any]:
    """Return the catalogue with what is new in it."""
    models = {**ours["models"], **theirs}
    return {"date": date or ours["date"], "models": dict(sorted(models.items()))}


def written(catalogue: dict[str, Any]) -> str:
    """Return the file: a line a model, so that changes can be read."""
    lines = [
        f"{json.dumps(name)}:{json.dumps(one, separators=(',', ':'))}" for name, one in catalogue["models"].items()
    ]
    return f'{{"date":{json.dumps(catalogue["date"])},"models":{{\n' + ",\n".join(lines) + "\n}}\n"


def main(arguments: list[str]) -> int:
    """Renew the file."""
    if not arguments:
        print("usage: python scripts/catalogue.py FILE [--date YYYY-MM]", file=sys.stderr)
        return 2
    data = json.loads(Path(arguments[0]).read_text("utf-8"))
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
