// @ts-check
// One turn: what was asked, what the agent did, what it said.

import { Component, html, useState } from "../vendor/preact.js";
import { filePath } from "../lib/api.js";
import { clock, duration, moment, money, percent, short, size } from "../lib/format.js";
import { markdown } from "../lib/markdown.js";
import { path } from "../lib/route.js";
import { Approval } from "./approval.js";
import { Copy } from "./code.js";
import { Icon } from "./icon.js";
import { Tool } from "./tool.js";

const ENDINGS = /** @type {Record<string, string>} */ ({ stopped: "stopped", max_steps: "step limit reached", budget: "budget reached", error: "failed", rejected: "refused" });

/** Drawn again only when its turn has changed: a long session stays quick. */
export class Turn extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return next.version !== this.drawn || next.working !== this.props.working;
  }

  render() {
    const { turn, session, actions, working } = this.props;
    this.drawn = turn.version;
    const busy = turn.started && !turn.ended;
    return html`<article class="turn" aria-busy=${busy ? "true" : "false"}>
      ${turn.entries.map((/** @type {any} */ entry, /** @type {number} */ at) => html`<${Entry} key=${entry.id || `${entry.kind}-${entry.seq || at}-${at}`} entry=${entry} session=${session} actions=${actions} working=${working} />`)}
      ${busy && html`<${Working} turn=${turn} />`}
      ${turn.ended > 0 && html`<${Foot} turn=${turn} session=${session} actions=${actions} working=${working} />`}
    </article>`;
  }
}

/** @param {any} props */
function Entry({ entry, session, actions, working }) {
  switch (entry.kind) {
    case "user": return html`<${Said} entry=${entry} session=${session} actions=${actions} working=${working} />`;
    case "text": return html`<${Answer} entry=${entry} session=${session} />`;
    case "reasoning": return html`<${Reasoning} entry=${entry} />`;
    case "tool": return html`<${Tool} entry=${entry} session=${session} />`;
    case "approval": return html`<${Approval} entry=${entry} answer=${actions.answer} />`;
    default: return html`<p class=${`note ${entry.tone || ""}`} data-seq=${entry.seq}><${Icon} name=${entry.tone === "warn" ? "triangle-alert" : "circle-dot"} size=${14} />${entry.text}</p>`;
  }
}

/** What the person said; it can be said again in other words, in a copy of the session. @param {any} props */
function Said({ entry, session, actions, working }) {
  const [text, edit] = useState(/** @type {string|null} */ (null));
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text?.trim()) actions.edit(entry, text), edit(null);
  };
  if (text !== null) {
    return html`<form class="said editing" onSubmit=${send}>
      <label class="hidden" for=${`edit-${entry.seq}`}>Say it differently</label>
      <textarea id=${`edit-${entry.seq}`} autofocus rows=${Math.min(12, text.split("\n").length + 1)} value=${text} onInput=${(/** @type {any} */ event) => edit(event.target.value)}
        onKeyDown=${(/** @type {any} */ event) => event.key === "Escape" && (event.preventDefault(), edit(null))}></textarea>
      <p class="muted">This is sent in a copy of the session up to here; this one stays as it is.</p>
      <div class="actions"><button type="button" onClick=${() => edit(null)}>Cancel</button><button class="primary">Send</button></div></form>`;
  }
  return html`<div class="said" data-seq=${entry.seq}>
    <div class="bubble"><${Files} files=${entry.files} session=${session} />${entry.text && html`<p>${entry.text}</p>`}</div>
    <div class="hover"><time title=${clock(entry.at)}>${moment(entry.at)}</time>
      <${Copy} text=${entry.text} />
      ${!working && html`<button type="button" class="quiet small" aria-label="Edit and send again" title="Edit and send again" onClick=${() => edit(entry.text)}><${Icon} name="pencil" size=${14} /></button>`}</div></div>`;
}

/** @param {any} props */
function Answer({ entry, session }) {
  return html`<div class=${`answer ${entry.streaming ? "streaming" : ""}`} data-seq=${entry.seq}>
    ${entry.text && html`<div class="md">${markdown(entry.text)}</div>`}
    <${Files} files=${entry.files} session=${session} /></div>`;
}

/** @param {any} props */
function Reasoning({ entry }) {
  return html`<details class="reasoning" open=${Boolean(entry.streaming)}><summary><${Icon} name="brain" size=${14} />${entry.streaming ? "Thinking" : "Thoughts"}</summary>
    <div class="md">${markdown(entry.text)}</div></details>`;
}

const SHOWN = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Files of a message or a result: pictures are shown, the others can be saved. @param {any} props */
export function Files({ files, session }) {
  if (!files?.length) return null;
  return html`<div class="files">${files.map((/** @type {any} */ file) => SHOWN.includes(file.media_type)
    ? html`<a class="picture" href=${filePath(session, file)} target="_blank" rel="noopener"><img src=${filePath(session, file)} alt=${file.name || "picture"} loading="lazy" /></a>`
    : html`<a class="file" href=${filePath(session, file)} download=${file.name || "file"}><${Icon} name="file" /><span>${file.name || "file"}</span><span class="muted">${size(file.size)}</span></a>`)}</div>`;
}

/** @param {any} props */
function Working({ turn }) {
  const calls = turn.entries.filter((/** @type {any} */ entry) => entry.kind === "tool" && !entry.outcome);
  const asking = turn.entries.some((/** @type {any} */ entry) => entry.kind === "approval" && !entry.answer);
  const words = asking ? "Waiting for your answer" : calls.length ? `Running ${calls.map((/** @type {any} */ one) => one.name).join(", ")}` : "Working";
  return html`<p class="working" role="status"><span class="pulse" aria-hidden="true"></span>${turn.notice || words}
    <span class="muted">step ${Math.max(1, turn.steps + (calls.length ? 0 : 1))}${turn.usage ? ` · ${short(turn.usage.input + turn.usage.output)} tokens` : ""}</span></p>`;
}

/** @param {any} props */
function Foot({ turn, session, actions, working }) {
  const usage = turn.usage || {};
  const ending = ENDINGS[turn.reason];
  const text = turn.entries.filter((/** @type {any} */ entry) => entry.kind === "text").map((/** @type {any} */ entry) => entry.text).join("\n\n");
  return html`<footer class="turn-foot">
    ${ending && html`<span class=${`tag ${turn.reason === "error" ? "bad" : "warn"}`}>${ending}</span>`}
    <span class="figures">${duration((turn.ended - turn.started) / 1000)} · ${turn.steps} ${turn.steps === 1 ? "step" : "steps"}
      ${usage.input ? html` · ${short(usage.input)} in${usage.cached ? ` (${percent(usage.cached / usage.input)} cached)` : ""} · ${short(usage.output)} out` : ""}
      ${usage.usd ? ` · ${money(usage.usd)}` : ""}</span>
    <span class="foot-actions">
      <${Copy} text=${text} label="Copy the answer" />
      ${!working && html`<button type="button" class="quiet small" aria-label="Answer again" title="Answer again, in a copy of the session" onClick=${() => actions.regenerate(turn)}><${Icon} name="refresh-cw" size=${14} /></button>`}
      <a class="quiet small" href=${path("trace", session, turn.id)} aria-label="Trace of this turn" title="Trace"><${Icon} name="list-tree" size=${14} /></a>
    </span></footer>`;
}
