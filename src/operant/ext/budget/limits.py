"""Where a turn must end however it goes: steps, tokens, calls that lead nowhere. Limits of 0 are off."""

from __future__ import annotations

from operant.sdk import ComputeInput, Ending, Reject


async def within_limits(input: ComputeInput) -> Reject | None:
    """Refuse the next step of a turn that is at one of its agent's limits."""
    if input.purpose != "turn":
        return None
    limits, progress = input.agent.limits, input.progress
    if 0 < limits.max_steps <= progress.steps:
        return _stop("max_steps", f"I stopped after {progress.steps} steps. Say “continue” to go on.")
    used = progress.usage.input + progress.usage.output
    if limits.turn_tokens is not None and used + input.estimate > limits.turn_tokens:
        said = f"{used:,} of {limits.turn_tokens:,} tokens"
        return _stop("budget", f"I stopped at this turn's limit of tokens ({said} used). Say “continue” to go on.")
    if 0 < limits.repeated_calls <= progress.repeated:
        times = progress.repeated + 1
        return _stop("error", f"I stopped: I made the same call {times} times in a row and got no further.")
    if 0 < limits.malformed_calls <= progress.malformed:
        times = progress.malformed
        return _stop("error", f"I stopped: the model got the arguments of its calls wrong {times} times in a row.")
    return None


def _stop(code: Ending, sentence: str) -> Reject:
    return Reject(reason=sentence, code=code)
