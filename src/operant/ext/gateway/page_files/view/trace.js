// @ts-check
// What a turn was made of: each model call and tool on one time axis, and what each step added to the prompt.

import { html, useState } from "../vendor/preact.js";
import { api, filePath, sessionPath } from "../lib/api.js";
import { diff, folded } from "../lib/diff.js";
import { brief, duration, moment, money, percent, short, wordsOf } from "../lib/format.js";
import { path } from "../lib/route.js";
import { useLoaded } from "../lib/store.js";
import { Arguments } from "./tool.js";
import { Code } from "./code.js";
import { Icon } from "./icon.js";
import { Empty, Loaded, Table, Tag, View } from "./parts.js";

/** @param {{route: any}} props */
export function Trace({ route }) {
  const [session, turn] = route.parts;
  if (!session) return html`<${View} title="Trace"><${Empty} icon="list-tree" title="Choose a session">Open one, and then Trace in its menu.<//><//>`;
  return turn ? html`<${One} key=${turn} session=${session} turn=${turn} />` : html`<${All} session=${session} />`;
}

/** @param {{session: string}} props */
function All({ session }) {
  const state = useLoaded(() => api.get(`${sessionPath(session)}/turns`), [session]);
  return html`<${View} title="Turns" about=${session} actions=${html`<a class="button" href=${path("s", session)}>Open the session</a>`}>
    <${Loaded} state=${state}>${(/** @type {any} */ data) => !data.turns?.length ? html`<${Empty} icon="list-tree" title="No turns yet">They come when something is said.<//>` : html`<${Table} label="All turns" right=${[3, 4, 5, 6]}
      head=${["Began", "About", "Ended", "Took", "Steps", "Tokens", "Cost"]}
      rows=${[...data.turns].reverse().map((/** @type {any} */ one) => [html`<a href=${path("trace", session, one.turn)}>${moment(one.started)}</a>`, html`<span class="clip">${one.preview || one.trigger}</span>`,
        html`<${Tag} tone=${one.reason === "done" ? "good" : one.reason ? "warn" : ""}>${one.reason || "at work"}<//>`, one.ended ? duration((one.ended - one.started) / 1000) : "", one.steps || 0,
        short((one.usage?.input || 0) + (one.usage?.output || 0)), money(one.usage?.usd || 0)])} />`}<//><//>`;
}

/** @param {{session: string, turn: string}} props */
function One({ session, turn }) {
  const state = useLoaded(() => api.get(`${sessionPath(session)}/turns/${encodeURIComponent(turn)}`), [session, turn]);
  const actions = html`<a class="button" href=${path("trace", session)}>All turns</a><a class="button" href=${path("s", session)}>Open the session</a>`;
  return html`<${View} title="Trace" about=${session} actions=${actions}><${Loaded} state=${state}>${(/** @type {any} */ data) => html`<${Timeline} data=${data} session=${session} />`}<//><//>`;
}

/** @param {{data: any, session: string}} props */
function Timeline({ data, session }) {
  const [chosen, choose] = useState(0);
  const spans = spansOf(data.events, data.opened?.body || null);
  const summary = data.turn;
  const start = summary.started || data.events[0]?.at || 0;
  const end = Math.max(summary.ended || 0, ...spans.map((span) => span.end), start + 1);
  const usage = summary.usage || {};
  const total = end - start;
  const shown = spans[chosen];
  return html`
    <dl class="facts">
      <div><dt>Took</dt><dd>${duration(total / 1000)}</dd></div><div><dt>Steps</dt><dd>${summary.steps || 0}</dd></div>
      <div><dt>Tools</dt><dd>${summary.tools || 0}</dd></div><div><dt>Input</dt><dd>${short(usage.input || 0)}</dd></div>
      <div><dt>Cached</dt><dd>${percent(usage.input ? (usage.cached || 0) / usage.input : 0)}</dd></div><div><dt>Output</dt><dd>${short(usage.output || 0)}</dd></div>
      <div><dt>Cost</dt><dd>${money(usage.usd || 0)}</dd></div><div><dt>Ended</dt><dd>${summary.reason || "at work"}</dd></div></dl>
    <div class="axis" aria-hidden="true">${[0, 0.25, 0.5, 0.75, 1].map((share) => html`<span>${share ? duration((total * share) / 1000) : "0"}</span>`)}</div>
    <ol class="spans" aria-label="Timeline">${spans.map((span, at) => html`<li><button type="button" class=${`span ${span.kind} ${span.tone}`} aria-pressed=${at === chosen ? "true" : "false"} onClick=${() => choose(at)}>
      <span class="span-name"><${Icon} name=${span.icon} size=${14} />${span.name}</span>
      <span class="span-lane"><svg viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true"><rect x=${((span.begin - start) / total) * 1000} width=${Math.max(3, ((span.end - span.begin) / total) * 1000)} height="8" rx="2" /></svg></span>
      <span class="span-time">${duration((span.end - span.begin) / 1000)}</span><span class="span-more">${span.more}</span></button></li>`)}</ol>
    ${shown && html`<section class="span-detail" aria-label="Details"><h2>${shown.name}</h2>${shown.detail(session)}</section>`}`;
}

/** Put events together to what has a beginning and an end; `before` is the prompt that held until then. @param {any[]} events @param {any} before @returns {any[]} */
function spansOf(events, before) {
  /** @type {any[]} */
  const spans = [];
  const open = new Map();
  /** @type {any[]} */
  let added = [];
  let opened = /** @type {any} */ (null);
  for (const event of events) {
    const body = event.body || {};
    if (event.type === "message.received") added.push({ role: "user", text: wordsOf(body.parts) });
    if (event.type === "context.opened") opened = { before: before, now: body };
    if (event.type === "context.opened") before = body;
    if (event.type === "model.replied") {
      spans.push(model(event, body, added, opened));
      added = [];
      opened = null;
    }
    if (event.type === "model.failed") spans.push({ kind: "failure", tone: "bad", icon: "triangle-alert", name: body.model, begin: event.at, end: event.at, more: body.error, detail: () => html`<p>${body.sentence}</p><p class="muted">then: ${body.then}</p>` });
    if (event.type === "tool.started") open.set(body.call_id, event);
    if (event.type === "approval.asked") open.set(body.approval_id, event);
    if (event.type === "tool.ended") {
      spans.push(tool(event, body, open.get(body.call_id)));
      added.push({ role: "tool", text: wordsOf(body.parts), name: body.name });
    }
    if (event.type === "approval.answered") spans.push(question(event, body, open.get(body.approval_id)));
    if (event.type === "context.compacted") spans.push({ kind: "note", tone: "", icon: "layers", name: "context shortened", begin: event.at, end: event.at, more: `${short(body.tokens_before || 0)} to ${short(body.tokens_after || 0)}`, detail: () => html`<${Code} code=${body.summary || ""} />` });
  }
  return spans.sort((one, two) => one.begin - two.begin);
}

/** @param {any} event @param {any} body @param {any[]} added @param {any} opened */
function model(event, body, added, opened) {
  const usage = body.usage || {};
  const begin = event.at - (body.latency_ms || 0) * 1000;
  return {
    kind: "model", tone: "", icon: "cpu", name: body.purpose && body.purpose !== "turn" ? `${body.model} (${body.purpose})` : body.model, begin, end: event.at,
    more: `${short(usage.input || 0)} in · ${percent(usage.input ? (usage.cached || 0) / usage.input : 0)} cached · ${short(usage.output || 0)} out`,
    detail: (/** @type {string} */ session) => html`
      <dl class="facts"><div><dt>First token</dt><dd>${duration(body.first_token_ms || 0)}</dd></div><div><dt>Whole</dt><dd>${duration(body.latency_ms || 0)}</dd></div>
        <div><dt>Input</dt><dd>${short(usage.input || 0)}</dd></div><div><dt>Cached</dt><dd>${short(usage.cached || 0)}</dd></div><div><dt>Output</dt><dd>${short(usage.output || 0)}</dd></div>
        <div><dt>Reasoning</dt><dd>${short(usage.reasoning || 0)}</dd></div><div><dt>Cost</dt><dd>${money(usage.usd || 0)}</dd></div><div><dt>Tries</dt><dd>${body.attempts || 1}</dd></div></dl>
      <h3>What this step added to the prompt</h3>
      ${opened && html`<${Opened} session=${session} opened=${opened} />`}
      ${added.length ? added.map((one) => html`<div class="added"><span class="tag">${one.role}${one.name ? ` · ${one.name}` : ""}</span><pre tabindex="0">${one.text.split("\n").slice(0, 40).map((/** @type {string} */ line) => `+ ${line}\n`)}</pre></div>`) : html`<p class="muted">Nothing: the prompt was as before.</p>`}
      <h3>What came back</h3>
      ${(body.parts || []).map((/** @type {any} */ part) => part.type === "tool_call" ? html`<p><code>${part.name}</code> <span class="muted">${part.arguments.slice(0, 300)}</span></p>` : html`<pre class="plain" tabindex="0">${part.text || ""}</pre>`)}`,
  };
}

/** The part of the prompt that stays: what it is now, against what it was. @param {{session: string, opened: any}} props */
function Opened({ session, opened }) {
  const change = opened.before && opened.before.system?.digest !== opened.now.system?.digest;
  const texts = useLoaded(() => (change ? Promise.all([opened.before, opened.now].map((one) => api.get(filePath(session, one.system)))) : Promise.resolve(null)), [session, opened.now.system?.digest]);
  const lines = Array.isArray(texts.data) ? folded(diff(texts.data[0], texts.data[1])) : [];
  return html`<p class="muted">The system prompt (${short((opened.now.system?.size || 0) / 4)} tokens, about) and the list of tools were ${opened.before ? `opened anew: ${opened.now.reason || "changed"}` : "opened for the first time"}.
    ${change && " The prompt itself is another one:"}</p>
    ${lines.length > 0 && html`<figure class="code diff"><figcaption><span>system prompt</span></figcaption><pre tabindex="0">${lines.map((line) => html`<span class=${`line line-${{ "+": "plus", "-": "minus", "@": "skip" }[line.sign] || "same"}`}>${line.sign === "=" ? " " : line.sign} ${line.text}\n</span>`)}</pre></figure>`}`;
}

/** @param {any} event @param {any} body @param {any} started */
function tool(event, body, started) {
  const input = started?.body?.arguments || {};
  const text = wordsOf(body.parts);
  return {
    kind: "tool", tone: body.outcome === "ok" ? "" : "bad", icon: "wrench", name: body.name || started?.body?.name || "tool", begin: started?.at || event.at, end: event.at, more: brief(input).slice(0, 60),
    detail: () => html`<p class="muted">${body.outcome} · ${started?.body?.effect || "external"} · ${duration(body.duration_ms || 0)}</p><${Arguments} name=${body.name} input=${input} /><${Code} code=${text.slice(0, 20_000)} />`,
  };
}

/** @param {any} event @param {any} body @param {any} asked */
function question(event, body, asked) {
  return { kind: "wait", tone: body.answer === "allow" ? "" : "bad", icon: "hand", name: `waiting for a person`, begin: asked?.at || event.at, end: event.at, more: `${body.answer} by ${body.by || "somebody"}`,
    detail: () => html`<p>${asked?.body?.question || ""}</p><${Arguments} name=${asked?.body?.name || ""} input=${asked?.body?.arguments || {}} /><p class="muted">${body.answer}${body.reason ? `: ${body.reason}` : ""}</p>` };
}

