"""Which model is asked, and what happens when it fails: retry, the next of the chain, compact once, or end."""

from __future__ import annotations

from operant.ext.providers.choices import Choices
from operant.sdk import ErrorInput, ErrorOutput, Host, ModelInput, ModelOutput, Parameters

ATTEMPTS = 3
EMPTY_ATTEMPTS = 2
BACKOFF_S = 0.5
BACKOFF_MAX_S = 20.0
PATIENCE_S = 60.0
"""The longest wait that a provider may ask for; beyond it the next model is tried."""
COOL_DOWN_S = 120.0


class Chain:
    """Choose models, and remember for a while which of them failed."""

    def __init__(self, host: Host, found: tuple[str, ...], choices: Choices) -> None:
        self._host = host
        self._choices = choices
        self.found = found
        self._cool_until: dict[str, float] = {}

    async def choose(self, input: ModelInput) -> ModelOutput:
        """Return the session's own model, what was chosen meanwhile, the agent's, else what was found at start.

        Those that failed a moment ago come last.
        """
        own = (input.session.model,) if input.session.model else ()
        own += await self._choices.of(input.agent)
        wanted = tuple(dict.fromkeys(own + (input.agent.models or self.found)))
        now = self._host.clock.monotonic()
        cool = [model for model in wanted if self._cool_until.get(model, 0.0) > now]
        chain = tuple(model for model in wanted if model not in cool) + tuple(cool)
        return ModelOutput(
            chain=chain,
            parameters=Parameters(max_output_tokens=input.agent.max_output_tokens, effort=input.agent.effort),
        )

    async def decide(self, input: ErrorInput) -> ErrorOutput:
        """Say what to try after a failure."""
        if input.kind == "context_overflow" and not input.compacted:
            return ErrorOutput(then="compact")
        if input.kind == "unsupported" and input.retry_after is not None:
            return ErrorOutput(then="retry")  # the provider has learned what to leave out
        limit = EMPTY_ATTEMPTS if input.kind == "empty" else ATTEMPTS
        wait = self._wait(input)
        if input.retriable and input.attempt < limit and wait <= PATIENCE_S:
            return ErrorOutput(then="retry", wait_s=wait)
        if input.kind != "content_filter":
            self._cool_until[input.model] = self._host.clock.monotonic() + COOL_DOWN_S
        later = input.chain[input.chain.index(input.model) + 1 :] if input.model in input.chain else ()
        if later and input.kind != "context_overflow":
            return ErrorOutput(then="next", model=later[0])
        return ErrorOutput(then="fail", sentence=_told(input))

    def _wait(self, input: ErrorInput) -> float:
        if input.retry_after is not None:
            return input.retry_after
        pause = min(BACKOFF_S * 2 ** (input.attempt - 1), BACKOFF_MAX_S)
        return pause * (0.5 + self._host.ids.jitter() / 2)


def _told(input: ErrorInput) -> str:
    tried = f" I tried {', '.join(input.chain)}." if len(input.chain) > 1 else ""
    again = f" ({input.attempt} attempts)" if input.attempt > 1 else ""
    return f"I could not get an answer{again}: {input.sentence}{tried}"
