// @ts-check
/**
 * Write a service of a skill for Operant. Needs nothing but Node.
 *
 *     import { defineService, reject } from "@operant/sdk";
 *
 *     defineService(() => ({
 *       hooks: {
 *         "tool.before": (input, output) =>
 *           String(output.arguments.command).includes("rm -rf /") ? reject("that would delete everything") : undefined,
 *       },
 *     }));
 *
 * See index.d.ts for all that a service may say.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createConnection } from "node:net";

const PROTOCOL = "svc/1";
const LONGEST = 1 << 20;

/** @type {AsyncLocalStorage<number | string>} */
const answering = new AsyncLocalStorage();

/** A syscall that failed; `code` and `hint` are the kernel's. */
export class Failed extends Error {
  /** @param {string} message @param {string} code @param {string} hint */
  constructor(message, code = "broken", hint = "") {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** Refuse what a gate is asked about. @param {string} reason */
export const reject = (reason) => ({ verdict: /** @type {const} */ ("reject"), reason });

/** Have a person decide. @param {string} [question] */
export const ask = (question = "") => ({ verdict: /** @type {const} */ ("ask"), question });

/** Let it pass; returning nothing does the same. */
export const allow = () => ({ verdict: /** @type {const} */ ("allow") });

/**
 * Serve until Operant says to end.
 * @param {import("./index.d.ts").Define} define
 */
export function defineService(define) {
  const path = process.env.OPERANT_SERVICE_SOCKET;
  const token = process.env.OPERANT_SERVICE_TOKEN;
  delete process.env.OPERANT_SERVICE_TOKEN;
  if (!path || !token) {
    console.error("This is a service of a skill: Operant starts it. See `operant skill show`.");
    process.exit(1);
  }
  void new Service(path).run(define, token);
}

class Service {
  /** @param {string} path */
  constructor(path) {
    this.socket = createConnection(path);
    this.rest = "";
    this.last = 0;
    /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
    this.waiting = new Map();
    /** @type {import("./index.d.ts").Wanted} */
    this.wants = {};
    this.registered = false;
    this.kernel = makeKernel(this);
    this.socket.setEncoding("utf8");
    this.socket.on("data", (text) => this.heard(String(text)));
    this.socket.on("error", () => process.exit(0));
    this.socket.on("close", () => process.exit(0));
  }

  /** @param {import("./index.d.ts").Define} define @param {string} token */
  async run(define, token) {
    try {
      this.wants = (await define(this.kernel)) ?? {};
      await this.call("register", {
        protocol: PROTOCOL,
        token,
        hooks: listed(this.wants.hooks, "point"),
        tools: listed(this.wants.tools, "name"),
        commands: listed(this.wants.commands, "name"),
        events: Object.keys(this.wants.events ?? {}),
      });
    } catch (error) {
      console.error(error instanceof Failed ? error.message : error);
      process.exit(1);
    }
    try {
      await this.wants.started?.();
    } catch (error) {
      console.error(error); // the author's code; the service goes on, and its log says why
    }
  }

  /** Note the answer to the registration. @param {any} answer */
  enter(answer) {
    this.kernel.configuration = answer.configuration ?? {};
    this.kernel.granted = answer.granted ?? [];
    this.registered = true;
  }

  /** @param {string} method @param {Record<string, unknown>} params @returns {Promise<any>} */
  call(method, params) {
    const id = ++this.last;
    const within = answering.getStore();
    return new Promise((resolve, rejected) => {
      this.waiting.set(id, { resolve, reject: rejected });
      this.send({ jsonrpc: "2.0", id, method, params, ...(within === undefined ? {} : { within }) });
    });
  }

  /** @param {Record<string, unknown>} message */
  send(message) {
    const line = `${wellFormed(JSON.stringify(message))}\n`;
    if (Buffer.byteLength(line) > LONGEST) throw new Failed(`A message may have ${LONGEST} bytes.`, "invalid");
    this.socket.write(line);
  }

  /** @param {string} text */
  heard(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) this.take(JSON.parse(line));
  }

  /** @param {any} message */
  take(message) {
    if (message.method === undefined) {
      const slot = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (!slot) return;
      if (!message.error && !this.registered) this.enter(message.result); // before what stands behind it is taken
      if (message.error) slot.reject(new Failed(message.error.message, message.error.data?.code, message.error.data?.hint));
      else slot.resolve(message.result);
      return;
    }
    answering.run(message.id, () => void this.answer(message));
  }

  /** @param {any} message */
  async answer({ id, method, params }) {
    try {
      const result = await this.handle(method, params ?? {}, id);
      if (id !== undefined) this.send({ jsonrpc: "2.0", id, result: result ?? null });
    } catch (error) {
      console.error(error);
      const words = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      if (id !== undefined) this.send({ jsonrpc: "2.0", id, error: { code: -32000, message: words } });
    }
  }

  /** @param {string} method @param {any} params @param {number} id */
  async handle(method, params, id) {
    const wants = /** @type {Record<string, any>} */ (this.wants);
    switch (method) {
      case "hook": {
        const before = JSON.stringify(params.output);
        const answer = await handler(wants.hooks, params.point)(await this.whole(params.input), params.output);
        if (answer === undefined || answer === null || "verdict" in answer) return answer;
        return JSON.stringify(answer) === before ? null : { output: answer };
      }
      case "tool": {
        const progress = (/** @type {unknown} */ text) => this.tell("progress", { id, text: String(text) });
        const answer = await handler(wants.tools, params.name)(params.arguments, { ...params.call, progress });
        return typeof answer === "object" && answer !== null ? answer : { text: String(answer ?? "") };
      }
      case "command": {
        const answer = await handler(wants.commands, params.name)(params.arguments, params.input ?? "", params.call ?? {});
        return typeof answer === "object" && answer !== null ? answer : { output: String(answer ?? "") };
      }
      case "event":
        return void (await handler(wants.events, params.point)(params.input));
      case "timer":
        return void (await handler(wants.timers, params.name)(params.data ?? ""));
      case "config":
        this.kernel.configuration = params.configuration;
        return void (await wants.configured?.(params.configuration));
      case "shutdown":
        await wants.stopping?.();
        this.socket.end(() => process.exit(0));
        return null;
      default:
        return null;
    }
  }

  /** Read an input that was too long for one message. @param {any} input */
  async whole(input) {
    if (Object.keys(input).sort().join() !== "blob,size") return input;
    /** @type {Buffer[]} */
    const pieces = [];
    for (let length = 0; length < input.size; length += pieces[pieces.length - 1].length) {
      const piece = await this.call("service.blob", { blob: input.blob, offset: length });
      pieces.push(Buffer.from(piece, "base64"));
    }
    return JSON.parse(Buffer.concat(pieces).toString("utf8"));
  }

  /** @param {string} method @param {Record<string, unknown>} params */
  tell(method, params) {
    this.send({ jsonrpc: "2.0", method, params });
  }
}

/** @param {Service} service @returns {import("./index.d.ts").Kernel} */
function makeKernel(service) {
  const early = "The service is not registered yet; do it in `started` or in a handler.";
  const call = async (/** @type {string} */ name, /** @type {Record<string, unknown>} */ parameters = {}) => {
    if (!service.registered) throw new Failed(early, "unavailable");
    return service.call(name, parameters);
  };
  /** @type {import("./index.d.ts").Kernel["state"]["page"]} */
  const page = (prefix = "", { after = null, limit = 1000 } = {}) =>
    call("service.state.list", { prefix, after, limit });
  return {
    configuration: {},
    granted: [],
    call,
    log: (text, level = "info") =>
      service.registered ? service.tell("log", { text: String(text), level }) : console.log(text),
    secret: (name) => call("service.secret", { name }),
    timer: (name, { afterS = 0, everyS = 0, data = "" } = {}) =>
      call("service.timer.set", { name, after_s: afterS, every_s: everyS, data }),
    state: {
      get: (key) => call("service.state.get", { key }),
      set: (key, value, ttlS = 0) => call("service.state.set", { key, value, ttl_s: ttlS }),
      delete: (key) => call("service.state.delete", { key }),
      page,
      list: async (prefix = "") => {
        /** @type {Record<string, string>} */
        const found = {};
        /** @type {string | null} */
        let after = null;
        do {
          const some = await page(prefix, { after });
          Object.assign(found, some.values);
          after = some.next;
        } while (after !== null);
        return found;
      },
    },
  };
}

/** Return JSON with U+FFFD for each half of a character, which stands in it as an escape. @param {string} json */
function wellFormed(json) {
  if (!json.includes("\\ud")) return json;
  return json.replace(/\\(?:u(d[89a-f][0-9a-f]{2})|.)/g, (escape, half) => (half ? "\ufffd" : escape));
}

/** @param {Record<string, any> | undefined} wanted @param {string} key */
function listed(wanted, key) {
  return Object.entries(wanted ?? {}).map(([name, given]) => {
    const { handler: _, ...options } = typeof given === "function" ? {} : given;
    return { [key]: name, ...options };
  });
}

/** @param {Record<string, any>} wanted @param {string} name */
function handler(wanted, name) {
  const given = wanted[name];
  return typeof given === "function" ? given : given.handler;
}
