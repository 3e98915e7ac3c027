"""Write a service of a skill for Operant in Python. Needs nothing but the standard library (3.9 or newer).

    from operant_sdk import define_service, reject

    @define_service
    def service(kernel):
        def guard(input, output):
            if "rm -rf /" in output["arguments"].get("command", ""):
                return reject("that would delete everything")

        return {"hooks": {"tool.before": guard}}

The function is called once and returns what the service does, all of it optional:

    hooks     {point: handler(input, output)}; a handler returns nothing (let pass), the changed output, `reject(…)`
              or `ask(…)`. Instead of a handler: `hook(handler, phase="validate", tools=["shell"], priority=10, …)`
    tools     {name: tool(handler(arguments, call), "what it does", schema)}; a handler returns a text
    commands  {name: command(handler(arguments, input, call), "what it does")}; returns a text, or (code, output, error)
    events    {point: handler(input)}
    timers    {name: handler(data)}, see `kernel.timer`
    started   handler(), once it is registered: the place for what is done at the start, such as setting a timer
    configured handler(configuration), stopping handler()

`kernel` makes syscalls: `kernel.call("session.get", session="x")`, `kernel.state`, `kernel.secret(NAME)`,
`kernel.log(text)`, `kernel.timer(name, after_s=60)`; from its registration on, also while a hook is answered. Handlers
may run side by side, in threads, and may be `async`.
"""

import base64
import contextvars
import inspect
import json
import os
import re
import socket
import sys
import threading
import traceback

PROTOCOL = "svc/1"
LONGEST = 1 << 20
MOST_THREADS = 64
MOST_WORDS = 8_000
WRONG_CONFIGURATION = 78

_HALVES = re.compile("[\ud800-\udfff]")
_answering = contextvars.ContextVar("operant_answering", default=None)
_defined = []


class Failed(Exception):
    """Report that a syscall failed; `code` and `hint` are the kernel's."""

    def __init__(self, message, code="broken", hint=""):
        super().__init__(message)
        self.code = code
        self.hint = hint


def reject(reason):
    """Refuse what a gate is asked about."""
    return {"verdict": "reject", "reason": reason}


def ask(question=""):
    """Have a person decide."""
    return {"verdict": "ask", "question": question}


def allow():
    """Let it pass; returning nothing does the same."""
    return {"verdict": "allow"}


def hook(handler, **options):
    """Give a handler options: phase, priority, timeout_s, fail, tools, agents."""
    return {"handler": handler, **options}


def tool(handler, description, schema=None, **options):
    """Describe a tool; options: effect, timeout_s, deferred."""
    schema = schema or {"type": "object", "properties": {}}
    return {"handler": handler, "description": description, "schema": schema, **options}


def command(handler, description=""):
    """Describe a command for the shell of agents."""
    return {"handler": handler, "description": description}


def define_service(function):
    """Take the function that says what the service does; it runs once the script has been read."""
    _defined.append(function)
    return function


def run(function=None, adapt=None):
    """Serve until Operant says to end; called by `python -m operant_sdk FILE`, or by a script itself."""
    _hide()
    path = os.environ.get("OPERANT_SERVICE_SOCKET")
    token = os.environ.pop("OPERANT_SERVICE_TOKEN", None)
    if not path or not token:
        sys.exit("This is a service of a skill: Operant starts it. See `operant skill show`.")
    Service(function or _defined[-1], path, token, adapt).run()


class Kernel:
    """The way back: syscalls, as far as they were granted."""

    def __init__(self, service):
        self._service = service
        self.state = State(self)
        self.configuration = {}
        self.granted = []

    def call(self, name, /, **parameters):
        """Make a syscall and return its result. Raises `Failed`."""
        return self._service.call(name, parameters)

    def log(self, text, level="info"):
        """Write a line into the log of the service."""
        if not self._service.registered:
            sys.stdout.write(f"{text}\n")  # which is a line in the log too
            sys.stdout.flush()
            return
        self._service.tell("log", {"text": str(text), "level": level})

    def secret(self, name):
        """Return a secret that the skill names in `operant.secrets`."""
        return self.call("service.secret", name=name)

    def timer(self, name, after_s=0.0, every_s=0.0, data=""):
        """Have the handler below `timers` called later, also after a restart."""
        self.call("service.timer.set", name=name, after_s=after_s, every_s=every_s, data=data)


class State:
    """Texts that outlive the process; nobody else has them."""

    def __init__(self, kernel):
        self._kernel = kernel

    def get(self, key, default=None):
        """Return a text."""
        value = self._kernel.call("service.state.get", key=key)
        return default if value is None else value

    def set(self, key, value, ttl_s=0.0):
        """Keep a text."""
        self._kernel.call("service.state.set", key=key, value=value, ttl_s=ttl_s)

    def delete(self, key):
        """Forget a text."""
        self._kernel.call("service.state.delete", key=key)

    def list(self, prefix=""):
        """Return all texts whose keys begin so, however many there are."""
        found, after = {}, None
        while True:
            page = self.page(prefix, after)
            found.update(page["values"])
            after = page["next"]
            if after is None:
                return found

    def page(self, prefix="", after=None, limit=1000):
        """Return `{"values", "next"}`: the texts after a key, 1,000 at most; `next` is the `after` of what follows."""
        return self._kernel.call("service.state.list", prefix=prefix, after=after, limit=limit)


class Service:
    """One connection. Threads take turns at reading: whoever has read a request answers it, another reads on."""

    def __init__(self, function, path, token, adapt=None):
        self._socket = _connect(path)
        self._file = self._socket.makefile("rb")
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._last = 0
        self._waiting = {}
        self._ended = threading.Event()
        self._function = function
        self._token = token
        self._adapt = adapt or (lambda point, handler: handler)
        self.registered = False
        self.kernel = Kernel(self)

    def run(self):
        """Register, then answer until the connection ends."""
        wanted = self._function(self.kernel) if inspect.signature(self._function).parameters else self._function()
        self._wants = wanted = wanted or {}
        unknown = set(wanted) - {"hooks", "tools", "commands", "events", "timers", "started", "configured", "stopping"}
        if unknown:
            sys.exit(f"The service says {', '.join(sorted(unknown))}, which means nothing.")
        self._last = 1
        self._send({"jsonrpc": "2.0", "id": 1, "method": "register", "params": self._register(wanted)})
        answer = json.loads(self._file.readline() or b"{}")
        if "result" not in answer:
            sys.exit(answer.get("error", {}).get("message", "Operant hung up."))
        self.kernel.configuration = answer["result"].get("configuration", {})
        self.kernel.granted = answer["result"].get("granted", [])
        self.registered = True
        self._more()
        try:
            if "started" in wanted:
                _finished(wanted["started"]())
        except Exception:  # supervisor: the author's code; the service goes on, and its log says why
            traceback.print_exc()
        self._ended.wait()

    def call(self, method, parameters):
        """Make a syscall. Raises `Failed`."""
        if not self.registered:
            raise Failed("The service is not registered yet; do it in `started` or in a handler.", "unavailable")
        done = threading.Event()
        with self._counting:
            self._last += 1
            id = self._last
            self._waiting[id] = slot = [done, None]
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}
        within = _answering.get()
        if within is not None:
            message["within"] = within
        self._send(message)
        self._more(needed=True)
        if self._ended.is_set():
            raise Failed("Operant is gone.", "unavailable")
        done.wait()
        answer = slot[1]
        if answer is None:
            raise Failed("Operant is gone.", "unavailable")
        if "error" in answer:
            data = answer["error"].get("data") or {}
            raise Failed(answer["error"]["message"], data.get("code", "broken"), data.get("hint", ""))
        return answer["result"]

    def tell(self, method, parameters):
        """Tell something; there is no answer."""
        self._send({"jsonrpc": "2.0", "method": method, "params": parameters})

    # ------------------------------------------------------------------ inside

    def _register(self, wanted):
        hooks = [{"point": point, **_options(given)} for point, given in (wanted.get("hooks") or {}).items()]
        tools = [{"name": name, **_options(given)} for name, given in (wanted.get("tools") or {}).items()]
        commands = [{"name": name, **_options(given)} for name, given in (wanted.get("commands") or {}).items()]
        return {
            "protocol": PROTOCOL,
            "token": self._token,
            "hooks": hooks,
            "tools": tools,
            "commands": commands,
            "events": list(wanted.get("events") or {}),
        }

    def _send(self, message):
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        try:
            line = text.encode() + b"\n"
        except UnicodeEncodeError:  # half a character, as in the name of a file that is not UTF-8
            line = _HALVES.sub("\ufffd", text).encode() + b"\n"
        if len(line) > LONGEST:
            raise Failed(f"A message may have {LONGEST} bytes, this one has {len(line)}.", "invalid")
        with self._writing:
            try:
                self._socket.sendall(line)
            except OSError:
                self._end()

    def _more(self, needed=False):
        """See to it that somebody reads; `needed`: also when there are many threads, as all may wait for answers."""
        with self._counting:
            if self._idle or (self._threads >= MOST_THREADS and not needed):
                return
            self._threads += 1
            self._idle += 1
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while not self._ended.is_set():
            with self._reading:
                line = self._line()
            if not line.endswith(b"\n"):
                self._end()
                return
            message = json.loads(line)
            if "method" not in message:
                self._settle(message)
                continue
            with self._counting:
                self._idle -= 1
                alone = not self._idle and self._threads < MOST_THREADS
            if alone and message["method"] != "ping":
                self._more()
            try:
                self._take(message)
            finally:
                with self._counting:
                    self._idle += 1

    def _line(self):
        try:
            return self._file.readline()
        except OSError:  # Operant hung up while it was sent something
            return b""

    def _settle(self, answer):
        with self._counting:
            slot = self._waiting.pop(answer.get("id"), None)
        if slot is not None:
            slot[1] = answer
            slot[0].set()

    def _take(self, message):
        method, id, params = message["method"], message.get("id"), message.get("params") or {}
        _answering.set(id)
        try:
            handle = getattr(self, "_on_" + method, None)
            result = handle(params, id) if handle else None
            if id is not None:
                self._send({"jsonrpc": "2.0", "id": id, "result": result})
        except Exception as error:  # supervisor: the author's code; Operant hears of it, and so does the log
            traceback.print_exc()
            if id is not None:
                words = f"{type(error).__name__}: {error}"
                self._send({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": words[:MOST_WORDS]}})

    def _on_hook(self, params, id):
        point, output = params["point"], params.get("output")
        handler = self._adapt(point, _handler(self._wants["hooks"][point]))
        before = json.dumps(output) if output is not None else ""
        answer = _finished(handler(self._whole(params["input"]), output))
        if answer is None or (isinstance(answer, dict) and "verdict" in answer):
            return answer
        return None if before and json.dumps(answer) == before else {"output": answer}

    def _whole(self, input):
        """Read an input that was too long for one message."""
        if set(input) != {"blob", "size"}:
            return input
        data = b""
        while len(data) < input["size"]:
            piece = self.call("service.blob", {"blob": input["blob"], "offset": len(data)})
            data += base64.b64decode(piece)
        return json.loads(data)

    def _on_tool(self, params, id):
        handler = _handler(self._wants["tools"][params["name"]])
        call = dict(params["call"], progress=lambda text: self.tell("progress", {"id": id, "text": str(text)}))
        answer = _finished(handler(params["arguments"], call))
        return (
            answer if isinstance(answer, dict) and "text" in answer else {"text": "" if answer is None else str(answer)}
        )

    def _on_command(self, params, id):
        handler = _handler(self._wants["commands"][params["name"]])
        answer = _finished(handler(params["arguments"], params.get("input", ""), params.get("call") or {}))
        if isinstance(answer, tuple):
            code, output, error = (*answer, "", "")[:3]
            return {"code": code, "output": output, "error": error}
        return {"output": "" if answer is None else str(answer)}

    def _on_event(self, params, id):
        _finished(_handler(self._wants["events"][params["point"]])(params["input"]))

    def _on_timer(self, params, id):
        _finished(_handler(self._wants["timers"][params["name"]])(params.get("data", "")))

    def _on_config(self, params, id):
        self.kernel.configuration = params["configuration"]
        if "configured" in self._wants:
            _finished(self._wants["configured"](params["configuration"]))

    def _on_shutdown(self, params, id):
        if "stopping" in self._wants:
            _finished(self._wants["stopping"]())
        self._end()

    def _end(self):
        self._ended.set()
        with self._counting:
            waiting, self._waiting = list(self._waiting.values()), {}
        for slot in waiting:
            slot[0].set()


def _options(given):
    return {key: value for key, value in given.items() if key != "handler"} if isinstance(given, dict) else {}


def _handler(given):
    return given["handler"] if isinstance(given, dict) else given


def _finished(answer):
    """Return what a handler returned, also one that is `async`."""
    if inspect.isawaitable(answer):
        import asyncio

        async def wait():
            return await answer

        return asyncio.run(wait())
    return answer


def _connect(path):
    if hasattr(socket, "AF_UNIX"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(path)
        return connection
    with open(path, encoding="utf-8") as file:  # Windows: a port and a token in a private file; untried
        port, token = file.read().split()
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.sendall(token.encode() + b"\n")
    return connection


def _hide():
    """Let no other process of this user look into this one, where the system can."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError, TypeError):
        return


def _complain(kind, error, trace):
    """Print what went wrong in the author's file, without our own lines above it."""
    while trace and (trace.tb_frame.f_code.co_filename == __file__ or "runpy" in trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def main():
    """Run the file of a service: what it defines is served when it does not serve itself."""
    import runpy

    sys.excepthook = _complain
    sys.modules.setdefault("operant_sdk", sys.modules["__main__"])
    path = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(path))
    runpy.run_path(path, run_name="__main__")
    other = sys.modules.get("aos_sdk")
    if _defined:
        run(adapt=other.adapt if other else None)


if __name__ == "__main__":
    main()
