"""The mirror, by hand in Python: the wire and nothing else."""

import json
import os
import socket

line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["OPERANT_SERVICE_SOCKET"])
lines = line.makefile("rb")
last = 0


def send(**message):
    line.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def call(method, within=None, **params):
    """Make a syscall; requests that come meanwhile are answered first."""
    global last
    last += 1
    mine = last
    send(id=mine, method=method, params=params, within=within)
    while True:
        message = json.loads(lines.readline())
        if "method" in message:
            answer(message)
        elif message["id"] == mine:
            if "error" in message:
                raise RuntimeError(message["error"]["message"])
            return message["result"]


def hook(id, params):
    words = params["output"]["arguments"].get("command", "")
    if "forbidden" in words:
        return {"verdict": "reject", "reason": "no"}
    if "ask me" in words:
        return {"verdict": "ask", "question": "sure?"}
    if "please " in words:
        return {"output": {"arguments": {"command": words.replace("please ", "")}}}
    if "count" in words:
        number = int(call("service.state.get", within=id, key="n") or 0)
        call("service.state.set", within=id, key="n", value=str(number + 1))
    return None


def tool(id, params):
    send(method="progress", params={"id": id, "text": "half"})
    return {"text": params["arguments"]["text"]}


def command(id, params):
    return {"output": f"hello {params['arguments'][0]}\n"}


def answer(message):
    if message["method"] == "shutdown":
        raise SystemExit(0)
    if "id" not in message:
        return
    handle = {"hook": hook, "tool": tool, "command": command}.get(message["method"], lambda id, params: None)
    try:
        send(id=message["id"], result=handle(message["id"], message.get("params")))
    except (RuntimeError, KeyError) as error:
        send(id=message["id"], error={"code": -32000, "message": str(error)})


call(
    "register",
    protocol="svc/1",
    token=os.environ["OPERANT_SERVICE_TOKEN"],
    hooks=[{"point": "tool.before"}],
    tools=[
        {
            "name": "echo",
            "description": "Say it back.",
            "schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        }
    ],
    commands=[{"name": "greet", "description": "Greet somebody."}],
    events=["turn.ended"],
)
for text in lines:
    answer(json.loads(text))
