// The mirror, with the TypeScript SDK.
import { ask, defineService, reject } from "@operant/sdk";

defineService((kernel) => ({
  hooks: {
    "tool.before": async (input, output) => {
      const words = output.arguments.command ?? "";
      if (words.includes("forbidden")) return reject("no");
      if (words.includes("ask me")) return ask("sure?");
      if (words.includes("please ")) return { arguments: { command: words.replace("please ", "") } };
      if (words.includes("count")) {
        const number = Number((await kernel.state.get("n")) ?? 0);
        await kernel.state.set("n", String(number + 1));
      }
      return output;
    },
  },
  tools: {
    echo: {
      description: "Say it back.",
      schema: { type: "object", properties: { text: { type: "string" } } },
      handler: (args, call) => {
        call.progress("half");
        return args.text;
      },
    },
  },
  commands: { greet: { description: "Greet somebody.", handler: (args) => `hello ${args[0]}\n` } },
  events: { "turn.ended": () => undefined },
}));
