// Made by scripts/wire.py from the wire svc/1. Do not edit.

/** Where a call comes from; `key` is the same when the same call is made again. */
export interface Caller {
  call_id?: string;
  session?: string;
  turn?: string;
  agent?: string;
  key?: string;
  repeated?: boolean;
}

/** `cancel`, a notification, both ways: the answer to the request `id` is not waited for any more. */
export interface Cancel {
  id: number | string;
}

/** The answer to `command`. */
export interface CommandAnswer {
  output?: string;
  error?: string;
  code?: number;
}

/** `command`: somebody typed it in a shell; `input` is what stood on its standard input. */
export interface CommandCalled {
  name: string;
  arguments: Array<string>;
  input?: string;
  call?: Caller;
}

/** A command for the shell of agents. */
export interface CommandOffered {
  name: string;
  description?: string;
}

/** `config`: the configuration has changed. */
export interface Configured {
  configuration: Record<string, string>;
}

/** The answer to `hook`: null lets pass; fields of `output` that are left out stay as they are. */
export interface HookAnswer {
  verdict?: "" | "allow" | "ask" | "reject";
  reason?: string;
  question?: string;
  output?: Record<string, unknown> | null;
}

/** `hook`: `input` is fixed, `output` is what may be changed; see the table of hook points for their fields. */
export interface HookCall {
  point: string;
  input: unknown;
  output?: unknown;
}

/** A hook point that the service answers at; an empty `fail` is `closed` for gates and `open` for the others. */
export interface HookWanted {
  point: string;
  phase?: "mutate" | "validate";
  priority?: number;
  timeout_s?: number;
  fail?: "" | "closed" | "open";
  tools?: Array<string>;
  agents?: Array<string>;
}

/** What the service is held to. */
export interface Limits {
  message_bytes?: number;
  handler_s?: number;
  heartbeat_s?: number;
}

/** `progress`, a notification: more output of the tool that is being run under the request `id`. */
export interface ProgressMade {
  id: number | string;
  text: string;
}

/** `register`, the first message of a service; `token` is in its environment and good for once. */
export interface Register {
  protocol: string;
  token: string;
  name?: string;
  hooks?: Array<HookWanted>;
  tools?: Array<ToolOffered>;
  commands?: Array<CommandOffered>;
  events?: Array<string>;
  grants?: Array<string>;
}

/** The answer to `register`. */
export interface Registered {
  service: string;
  generation: number;
  protocol?: string;
  limits?: Limits;
  configuration?: Record<string, string>;
  granted?: Array<string>;
}

/** `log`, a notification: a line for the log of the service. */
export interface Said {
  text: string;
  level?: "debug" | "error" | "info" | "warning";
}

/** `shutdown`: end within so many seconds. */
export interface Shutdown {
  reason?: string;
  within_s?: number;
}

/** `timer`: it is time; answered when it is dealt with, until then it is told again after a restart. */
export interface TimerDue {
  name: string;
  data?: string;
  due?: number;
}

/** `event`, a notification: something happened. */
export interface Told {
  point: string;
  input: unknown;
}

/** The answer to `tool`. */
export interface ToolAnswer {
  text: string;
  outcome?: "error" | "ok";
}

/** `tool`: use one. */
export interface ToolCalled {
  name: string;
  arguments: Record<string, unknown>;
  call: Caller;
}

/** A tool that models may use; `schema` is the JSON Schema of its arguments. */
export interface ToolOffered {
  name: string;
  description: string;
  schema?: Record<string, unknown>;
  effect?: "external" | "idempotent" | "read";
  timeout_s?: number;
  deferred?: boolean;
}
