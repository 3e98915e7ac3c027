/** Write a service of a skill for Operant: what it may say, and what it gets. */
import type { Caller, CommandOffered, HookWanted, ToolOffered } from "./wire.js";

export type { Caller } from "./wire.js";

export type Json = Record<string, any>;
type Now<T> = T | Promise<T>;

export interface Verdict {
  verdict: "allow" | "reject" | "ask";
  reason?: string;
  question?: string;
}

/** Nothing lets pass; the changed output rewrites; a verdict decides. */
export type HookHandler = (input: any, output: any) => Now<Json | Verdict | null | undefined | void>;
export type Hook = HookHandler | (Omit<Partial<HookWanted>, "point"> & { handler: HookHandler });

export interface Call extends Caller {
  /** Show more output of a tool that is being run. */
  progress(text: string): void;
}
export type ToolHandler = (args: any, call: Call) => Now<string | { text: string; outcome?: "ok" | "error" }>;
export type Tool = Omit<ToolOffered, "name"> & { handler: ToolHandler };

export type CommandAnswer = string | { output?: string; error?: string; code?: number };
export type CommandHandler = (args: string[], input: string, call: Caller) => Now<CommandAnswer>;
export type Command = CommandHandler | (Omit<CommandOffered, "name"> & { handler: CommandHandler });

export interface Wanted {
  hooks?: Record<string, Hook>;
  tools?: Record<string, Tool>;
  commands?: Record<string, Command>;
  events?: Record<string, (input: any) => Now<unknown>>;
  timers?: Record<string, (data: string) => Now<unknown>>;
  /** Once it is registered: the place for what is done at the start, such as setting a timer. */
  started?: () => Now<unknown>;
  configured?: (configuration: Record<string, string>) => Now<unknown>;
  stopping?: () => Now<unknown>;
}

/** The way back: syscalls, as far as they were granted. */
export interface Kernel {
  configuration: Record<string, string>;
  granted: string[];
  call(name: string, parameters?: Json): Promise<any>;
  log(text: string, level?: "debug" | "info" | "warning" | "error"): void;
  secret(name: string): Promise<string>;
  timer(name: string, options?: { afterS?: number; everyS?: number; data?: string }): Promise<null>;
  state: {
    get(key: string): Promise<string | null>;
    set(key: string, value: string, ttlS?: number): Promise<null>;
    delete(key: string): Promise<null>;
    list(prefix?: string): Promise<Record<string, string>>;
    /** The texts after a key, 1,000 at most; `next` is the `after` of what follows, null when nothing does. */
    page(
      prefix?: string,
      options?: { after?: string | null; limit?: number },
    ): Promise<{ values: Record<string, string>; next: string | null }>;
  };
}

export type Define = (kernel: Kernel) => Now<Wanted | undefined>;

export class Failed extends Error {
  constructor(message: string, code?: string, hint?: string);
  code: string;
  hint: string;
}
export function reject(reason: string): Verdict;
export function ask(question?: string): Verdict;
export function allow(): Verdict;
/** Serve until Operant says to end. */
export function defineService(define: Define): void;
