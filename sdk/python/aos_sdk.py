"""The name under which AgentOS offered its SDK: its services run as they stand.

Its handlers of `tool.before` and `tool.after` find the arguments under `args`; everything else is `operant_sdk`.
"""

from operant_sdk import *  # noqa: F403
from operant_sdk import define_service  # noqa: F401


def adapt(point, handler):
    """Let a handler see `args` where we say `arguments`, and understand it when it answers so."""
    if point not in ("tool.before", "tool.after"):
        return handler

    def adapted(input_data, output_data):
        if "arguments" in input_data:
            input_data = dict(input_data, args=input_data["arguments"])
        if not output_data or "arguments" not in output_data:
            return handler(input_data, output_data)
        given = dict(output_data)
        given["args"] = given.pop("arguments")
        answer = handler(input_data, given)
        if isinstance(answer, dict) and "args" in answer:
            answer = dict(answer)
            answer["arguments"] = answer.pop("args")
        return {key: answer[key] for key in output_data} if answer and "verdict" not in answer else answer

    return adapted
