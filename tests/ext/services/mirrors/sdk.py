"""The mirror, with the Python SDK."""

from operant_sdk import ask, command, define_service, reject, tool


@define_service
def service(kernel):
    def guard(input, output):
        words = output["arguments"].get("command", "")
        if "forbidden" in words:
            return reject("no")
        if "ask me" in words:
            return ask("sure?")
        if "please " in words:
            return {"arguments": {"command": words.replace("please ", "")}}
        if "count" in words:
            number = int(kernel.state.get("n") or 0)
            kernel.state.set("n", str(number + 1))
        return output

    def echo(arguments, call):
        call["progress"]("half")
        return arguments["text"]

    return {
        "hooks": {"tool.before": guard},
        "tools": {"echo": tool(echo, "Say it back.", {"type": "object", "properties": {"text": {"type": "string"}}})},
        "commands": {"greet": command(lambda arguments, input, call: f"hello {arguments[0]}\n", "Greet somebody.")},
        "events": {"turn.ended": lambda input: None},
    }
