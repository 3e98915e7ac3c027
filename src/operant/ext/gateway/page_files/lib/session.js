// @ts-check
// A session as it is shown: a pure projection of its events, with what streams on top.

import { filesOf, wordsOf } from "./format.js";

/**
 * @typedef {{kind: string, seq?: number, text?: string, [more: string]: any}} Entry
 * @typedef {{id: string, entries: Entry[], started: number, ended: number, reason: string, sentence: string, mode: string,
 *   steps: number, usage: any, model: string, notice: string, version: number, first: number}} Turn
 */

const LIVE_TAIL = 65_536;

export class SessionModel {
  /** @param {string} key */
  constructor(key) {
    this.key = key;
    this.version = 0;
    this.last = 0;
    this.title = "";
    this.agent = "";
    this.model = "";
    this.archived = false;
    /** @type {Turn[]} */
    this.turns = [];
    /** @type {Map<string, Turn>} */
    this.byId = new Map();
    /** @type {Map<string, Entry>} */
    this.calls = new Map();
    /** @type {Map<string, any>} */
    this.tasks = new Map();
    /** @type {Map<string, Entry>} */
    this.asked = new Map();
  }

  clear() {
    this.turns = [];
    for (const known of [this.byId, this.calls, this.tasks, this.asked]) known.clear();
    this.last = 0;
    this.title = this.agent = this.model = "";
    this.archived = false;
    this.version += 1;
  }

  get working() {
    return this.turns.some((turn) => turn.started && !turn.ended);
  }

  /** The questions that wait for a person. */
  get questions() {
    return [...this.asked.values()];
  }

  /** @param {string} id @param {any} event @returns {Turn} */
  turn(id, event) {
    let found = this.byId.get(id);
    if (!found) {
      found = { id, entries: [], started: 0, ended: 0, reason: "", sentence: "", mode: "chat", steps: 0,
        usage: null, model: "", notice: "", version: 0, first: event.seq };
      this.byId.set(id, found);
      this.turns.push(found);
    }
    return found;
  }

  /** Take an event; one that is known already changes nothing. @param {any} event */
  apply(event) {
    if (event.seq <= this.last) return;
    this.last = event.seq;
    this.version += 1;
    const body = event.body || {};
    if (event.type === "session.opened") this.agent = body.agent;
    if (event.type === "session.opened" || event.type === "session.changed") {
      this.title = body.title ?? this.title;
      this.model = body.model ?? this.model;
      this.archived = body.archived ?? this.archived;
      return;
    }
    if (event.type === "note") return this.note(event, body);
    const take = TAKERS[event.type];
    if (!take) return;
    const turn = this.turn(event.turn || `event-${event.seq}`, event);
    turn.version += 1;
    take(this, turn, body, event);
  }

  /** Take the question of a sub-agent, which is on record in a session of its own. @param {any} event @param {any} body */
  note(event, body) {
    const take = event.actor === "extension:subagents" ? TAKERS[body.kind] : undefined;
    const turn = this.turns.filter((one) => one.started && !one.ended).pop();
    if (!take || !turn || !body.kind.startsWith("approval.")) return;
    turn.version += 1;
    take(this, turn, body.data || {}, event);
  }

  /** Take what streams. @param {any} frame */
  delta(frame) {
    const turn = this.byId.get(frame.turn);
    if (!turn || turn.ended) return;
    this.version += 1;
    turn.version += 1;
    if (frame.type === "restart") return dropStreaming(turn);
    if (frame.type === "tool_output") {
      const call = this.calls.get(frame.tool_call_id);
      if (call) call.live = ((call.live || "") + frame.text).slice(-LIVE_TAIL);
      return;
    }
    if (frame.type === "notice") {
      turn.notice = frame.text;
      return;
    }
    const kind = frame.type === "reasoning_delta" ? "reasoning" : "text";
    const last = turn.entries[turn.entries.length - 1];
    if (last && last.streaming && last.kind === kind) last.text += frame.text;
    else turn.entries.push({ kind, text: frame.text, streaming: true });
  }

  /** Forget what streamed: the server says it again from the beginning. */
  cut() {
    this.turns.forEach(dropStreaming);
    this.version += 1;
  }
}

/** @param {Turn} turn */
function dropStreaming(turn) {
  turn.entries = turn.entries.filter((entry) => !entry.streaming);
  turn.version += 1;
}

/** @type {Record<string, (model: SessionModel, turn: Turn, body: any, event: any) => void>} */
const TAKERS = {
  "message.received": (model, turn, body, event) => {
    dropStreaming(turn);
    turn.entries.push({ kind: "user", seq: event.seq, at: event.at, text: wordsOf(body.parts), files: filesOf(body.parts),
      parts: body.parts, author: body.author || "", id: body.external_id || "", channel: body.address?.channel || "" });
  },
  "turn.started": (model, turn, body, event) => {
    if (!turn.started) turn.started = event.at;
    else turn.entries.push({ kind: "note", seq: event.seq, text: "Taken up again after a restart." });
    turn.mode = body.mode || "chat";
  },
  "model.replied": (model, turn, body, event) => {
    turn.usage = added(turn.usage, body.usage);
    if (body.purpose && body.purpose !== "turn") return;
    dropStreaming(turn);
    turn.steps += 1;
    turn.model = body.model;
    for (const part of body.parts || []) {
      if (part.type === "reasoning" && part.text) turn.entries.push({ kind: "reasoning", seq: event.seq, text: part.text });
      if (part.type === "text" && part.text.trim()) turn.entries.push({ kind: "text", seq: event.seq, text: part.text });
    }
  },
  "model.failed": (model, turn, body, event) => {
    dropStreaming(turn);
    turn.entries.push({ kind: "note", seq: event.seq, tone: "warn", text: `${body.model}: ${body.sentence || body.error}`, then: body.then });
  },
  "tool.started": (model, turn, body, event) => {
    const call = model.calls.get(body.call_id);
    if (call) {
      Object.assign(call, { started: event.at, outcome: "", input: body.arguments });
      return;
    }
    const entry = { kind: "tool", seq: event.seq, id: body.call_id, name: body.name, input: body.arguments || {},
      effect: body.effect || "external", started: event.at, outcome: "", parts: [], artifacts: [], live: "", duration: 0 };
    model.calls.set(body.call_id, entry);
    turn.entries.push(entry);
  },
  "tool.ended": (model, turn, body, event) => {
    let call = model.calls.get(body.call_id);
    if (!call) {
      call = { kind: "tool", seq: event.seq, id: body.call_id, name: body.name || "tool", input: {}, started: event.at, live: "" };
      model.calls.set(body.call_id, call);
      turn.entries.push(call);
    }
    Object.assign(call, { outcome: body.outcome, parts: body.parts || [], artifacts: body.artifacts || [],
      duration: body.duration_ms || 0, labels: body.labels || [], live: "" });
    for (const [id, asked] of model.asked) if (asked.callId === body.call_id) model.asked.delete(id);
  },
  "approval.asked": (model, turn, body, event) => {
    const entry = { kind: "approval", seq: event.seq, id: body.approval_id, callId: body.call_id, name: body.name,
      input: body.arguments || {}, question: body.question || "", expires: body.expires || 0, answer: "" };
    turn.entries.push(entry);
    model.asked.set(body.approval_id, entry);
  },
  "approval.answered": (model, turn, body) => {
    const entry = model.asked.get(body.approval_id);
    if (entry) Object.assign(entry, { answer: body.answer, by: body.by || "", scope: body.scope || "once", reason: body.reason || "" });
    model.asked.delete(body.approval_id);
  },
  "task.changed": (model, turn, body) => {
    model.tasks.set(body.id, { ...model.tasks.get(body.id), ...body });
  },
  "context.compacted": (model, turn, body, event) => {
    turn.entries.push({ kind: "note", seq: event.seq, text: `Context shortened (${body.strategy}): ${body.tokens_before || 0} to ${body.tokens_after || 0} tokens.` });
  },
  "message.queued": (model, turn, body, event) => {
    const text = wordsOf(body.parts);
    const files = filesOf(body.parts);
    const said = turn.entries.some((entry) => entry.kind === "text" && entry.text?.trim() === text.trim());
    if (!said || files.length) turn.entries.push({ kind: "text", seq: event.seq, text: said ? "" : text, files, told: true });
  },
  "message.failed": (model, turn, body, event) => {
    turn.entries.push({ kind: "note", seq: event.seq, tone: "warn", text: `Not delivered: ${body.error}` });
  },
  "turn.ended": (model, turn, body, event) => {
    dropStreaming(turn);
    Object.assign(turn, { ended: event.at, reason: body.reason, sentence: body.sentence || "", notice: "" });
    turn.usage = body.usage || turn.usage;
    for (const [id, asked] of model.asked) if (turn.entries.includes(asked)) model.asked.delete(id);
  },
};

/** @param {any} one @param {any} two */
function added(one, two) {
  /** @type {Record<string, number>} */
  const sum = {};
  for (const name of ["input", "cached", "cache_write", "output", "reasoning", "calls", "usd"])
    sum[name] = ((one && one[name]) || 0) + ((two && two[name]) || 0);
  return sum;
}
