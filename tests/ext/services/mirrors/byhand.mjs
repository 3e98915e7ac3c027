// The mirror, by hand in JavaScript (and, but for types, TypeScript): nothing but Node.
import { createConnection } from "node:net";
import { createInterface } from "node:readline";

const line = createConnection(process.env.OPERANT_SERVICE_SOCKET);
const waiting = new Map();
let last = 0;

const send = (message) => line.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

/** Make a syscall; `within` is the request that is being answered meanwhile. */
function call(method, params, within) {
  const id = ++last;
  send({ id, method, params, within });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

const handlers = {
  async hook(id, { output }) {
    const words = output.arguments.command ?? "";
    if (words.includes("forbidden")) return { verdict: "reject", reason: "no" };
    if (words.includes("ask me")) return { verdict: "ask", question: "sure?" };
    if (words.includes("please ")) return { output: { arguments: { command: words.replace("please ", "") } } };
    if (words.includes("count")) {
      const number = Number((await call("service.state.get", { key: "n" }, id)) ?? 0);
      await call("service.state.set", { key: "n", value: String(number + 1) }, id);
    }
    return null;
  },
  tool(id, params) {
    send({ method: "progress", params: { id, text: "half" } });
    return { text: params.arguments.text };
  },
  command: (id, params) => ({ output: `hello ${params.arguments[0]}\n` }),
};

async function answer({ id, method, params }) {
  if (method === "shutdown") process.exit(0);
  if (id === undefined) return;
  try {
    send({ id, result: (await handlers[method]?.(id, params)) ?? null });
  } catch (error) {
    send({ id, error: { code: -32000, message: String(error) } });
  }
}

createInterface({ input: line }).on("line", (text) => {
  const message = JSON.parse(text);
  if (message.method !== undefined) return void answer(message);
  const slot = waiting.get(message.id);
  waiting.delete(message.id);
  if (message.error) slot?.reject(new Error(message.error.message));
  else slot?.resolve(message.result);
});

await call("register", {
  protocol: "svc/1",
  token: process.env.OPERANT_SERVICE_TOKEN,
  hooks: [{ point: "tool.before" }],
  tools: [
    {
      name: "echo",
      description: "Say it back.",
      schema: { type: "object", properties: { text: { type: "string" } } },
    },
  ],
  commands: [{ name: "greet", description: "Greet somebody." }],
  events: ["turn.ended"],
});
