# shape: table
"""Providers that need no address: a key in the environment, or a server on this machine, is enough."""

from __future__ import annotations

from operant.ext.providers.endpoint import Quirks
from operant.ext.providers.settings import Protocol
from operant.sdk import Record

WINDOW = 128_000
"""The context window that is assumed where none is known."""
LOCAL_WINDOW = 32_000


class Preset(Record):
    """A provider as it is known; `key` is the variable that holds its key, empty for a server on this machine.

    `also` are other variables for the key. `place` is a variable that holds a part of the address, which `base_url`
    then has as `{place}`; without it the provider is not there.
    """

    name: str
    base_url: str
    key: str = ""
    also: tuple[str, ...] = ()
    place: str = ""
    model: str = ""
    embedding: str = ""
    protocol: Protocol = "openai"
    window: int = WINDOW
    quirks: Quirks = Quirks()


_OLD_LIMIT = Quirks(output_limit="max_tokens")
_PLAIN = Quirks(output_limit="max_tokens", effort_field="")

PRESETS = (
    Preset(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        key="ANTHROPIC_API_KEY",
        model="claude-sonnet-4-6",
        protocol="anthropic",
        window=200_000,
    ),
    Preset(
        name="openai",
        base_url="https://api.openai.com/v1",
        key="OPENAI_API_KEY",
        model="gpt-5.4",
        embedding="text-embedding-3-small",
        protocol="responses",
        window=272_000,
    ),
    Preset(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        model="anthropic/claude-sonnet-4.6",
        window=200_000,
        quirks=Quirks(output_limit="max_tokens", markers=True, reasoning_field="reasoning", charges=True),
    ),
    Preset(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        key="GEMINI_API_KEY",
        also=("GOOGLE_API_KEY",),
        model="gemini-2.5-flash",
        embedding="gemini-embedding-001",
        protocol="gemini",
        window=1_000_000,
    ),
    Preset(name="groq", base_url="https://api.groq.com/openai/v1", key="GROQ_API_KEY", model="llama-3.3-70b-versatile"),
    Preset(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        key="MISTRAL_API_KEY",
        model="mistral-large-latest",
        embedding="mistral-embed",
        quirks=Quirks(output_limit="max_tokens", stream_usage=False, effort_field=""),
    ),
    Preset(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        key="DEEPSEEK_API_KEY",
        model="deepseek-chat",
        quirks=Quirks(output_limit="max_tokens", reasoning_field="reasoning_content", effort_field=""),
    ),
    Preset(name="xai", base_url="https://api.x.ai/v1", key="XAI_API_KEY", model="grok-4", window=256_000),
    Preset(
        name="together",
        base_url="https://api.together.xyz/v1",
        key="TOGETHER_API_KEY",
        model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
        quirks=_OLD_LIMIT,
    ),
    Preset(
        name="fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        key="FIREWORKS_API_KEY",
        model="accounts/fireworks/models/deepseek-v3",
        quirks=_OLD_LIMIT,
    ),
    Preset(name="cerebras", base_url="https://api.cerebras.ai/v1", key="CEREBRAS_API_KEY", model="gpt-oss-120b"),
    Preset(
        name="nvidia",
        base_url="https://integrate.api.nvidia.com/v1",
        key="NVIDIA_API_KEY",
        model="meta/llama-3.3-70b-instruct",
        quirks=_PLAIN,
    ),
    Preset(
        name="zai",
        base_url="https://api.z.ai/api/paas/v4",
        key="ZAI_API_KEY",
        also=("ZHIPU_API_KEY",),
        model="glm-4.6",
        window=200_000,
        quirks=Quirks(output_limit="max_tokens", reasoning_field="reasoning_content", effort_field=""),
    ),
    Preset(
        name="moonshot",
        base_url="https://api.moonshot.ai/v1",
        key="MOONSHOT_API_KEY",
        model="kimi-k2-0905-preview",
        window=256_000,
        quirks=Quirks(output_limit="max_tokens", reasoning_field="reasoning_content", effort_field=""),
    ),
    Preset(
        name="qwen",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key="DASHSCOPE_API_KEY",
        model="qwen-plus",
        embedding="text-embedding-v4",
        quirks=_PLAIN,
    ),
    Preset(
        name="github",
        base_url="https://models.github.ai/inference",
        key="GITHUB_MODELS_TOKEN",
        model="openai/gpt-4.1",
        quirks=_OLD_LIMIT,
    ),
    Preset(
        name="azure",
        base_url="{place}/openai/v1",
        key="AZURE_OPENAI_API_KEY",
        place="AZURE_OPENAI_ENDPOINT",
        protocol="responses",
        window=400_000,
        quirks=Quirks(auth="api-key", query="api-version=preview"),
    ),
    Preset(
        name="bedrock",
        base_url="https://bedrock-runtime.{place}.amazonaws.com/openai/v1",
        key="AWS_BEARER_TOKEN_BEDROCK",
        place="AWS_REGION",
        model="openai.gpt-oss-120b-1:0",
    ),
    Preset(name="ollama", base_url="http://127.0.0.1:11434/v1", window=LOCAL_WINDOW, quirks=_OLD_LIMIT),
    Preset(name="lmstudio", base_url="http://127.0.0.1:1234/v1", window=LOCAL_WINDOW, quirks=_PLAIN),
    Preset(name="llamacpp", base_url="http://127.0.0.1:8080/v1", window=LOCAL_WINDOW, quirks=_PLAIN),
    Preset(name="vllm", base_url="http://127.0.0.1:8001/v1", window=LOCAL_WINDOW, quirks=_PLAIN),
)


def preset(name: str) -> Preset | None:
    """Return what is known of a provider."""
    return next((one for one in PRESETS if one.name == name), None)
