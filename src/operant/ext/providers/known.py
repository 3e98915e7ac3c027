# shape: table
"""Providers that need no address: a key in the environment, or a server on this machine, is enough."""

from __future__ import annotations

from operant.sdk import Record

WINDOW = 128_000
"""The context window that is assumed where none is known."""
LOCAL_WINDOW = 32_000


class Known(Record):
    """A provider as it is found; `key` is the variable that holds its key, empty for a server on this machine."""

    name: str
    base_url: str
    key: str = ""
    model: str = ""
    window: int = WINDOW


KNOWN = (
    Known(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        key="ANTHROPIC_API_KEY",
        model="claude-sonnet-4-6",
        window=200_000,
    ),
    Known(name="openai", base_url="https://api.openai.com/v1", key="OPENAI_API_KEY", model="gpt-5.3", window=400_000),
    Known(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        model="anthropic/claude-sonnet-4-6",
        window=200_000,
    ),
    Known(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key="GEMINI_API_KEY",
        model="gemini-2.5-flash",
        window=1_000_000,
    ),
    Known(name="groq", base_url="https://api.groq.com/openai/v1", key="GROQ_API_KEY", model="llama-3.3-70b-versatile"),
    Known(name="mistral", base_url="https://api.mistral.ai/v1", key="MISTRAL_API_KEY", model="mistral-large-latest"),
    Known(name="deepseek", base_url="https://api.deepseek.com/v1", key="DEEPSEEK_API_KEY", model="deepseek-chat"),
    Known(name="xai", base_url="https://api.x.ai/v1", key="XAI_API_KEY", model="grok-4"),
    Known(name="together", base_url="https://api.together.xyz/v1", key="TOGETHER_API_KEY"),
    Known(name="fireworks", base_url="https://api.fireworks.ai/inference/v1", key="FIREWORKS_API_KEY"),
    Known(name="cerebras", base_url="https://api.cerebras.ai/v1", key="CEREBRAS_API_KEY"),
    Known(name="ollama", base_url="http://127.0.0.1:11434/v1", window=LOCAL_WINDOW),
    Known(name="lmstudio", base_url="http://127.0.0.1:1234/v1", window=LOCAL_WINDOW),
    Known(name="llamacpp", base_url="http://127.0.0.1:8080/v1", window=LOCAL_WINDOW),
    Known(name="vllm", base_url="http://127.0.0.1:8001/v1", window=LOCAL_WINDOW),
)
