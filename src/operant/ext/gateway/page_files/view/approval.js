// @ts-check
import { html, useState } from "../vendor/preact.js";
import { exposed, moment } from "../lib/format.js";
import { Icon } from "./icon.js";

/** A question about exactly one call: every argument in full, with what cannot be seen written out. @param {{entry: any, answer: (reply: any) => Promise<any>, where?: any}} props */
export function Approval({ entry, answer, where }) {
  const [busy, set] = useState(false);
  const [why, say] = useState("");
  const reply = async (/** @type {string} */ verdict, /** @type {string} */ scope) => {
    set(true);
    await answer({ id: entry.id, answer: verdict, scope, reason: why });
    set(false);
  };
  if (entry.answer) {
    const yes = entry.answer === "allow";
    return html`<p class=${`note ${yes ? "" : "warn"}`} data-seq=${entry.seq}><${Icon} name=${yes ? "circle-check" : "hand"} size=${14} />
      ${yes ? "Allowed" : "Denied"}: ${entry.name}${entry.scope === "session" ? ", for the rest of the session" : ""}${entry.reason ? ` — ${entry.reason}` : ""}</p>`;
  }
  return html`<section class="approval" data-seq=${entry.seq} aria-label=${`May ${entry.name} run?`}>
    <header><${Icon} name="hand" size=${18} /><strong>May <code>${entry.name}</code> run?</strong>${where}</header>
    ${entry.question && html`<p>${entry.question}</p>`}
    <dl class="named whole">${Object.entries(entry.input).filter(([, value]) => value !== null && value !== "").map(([name, value]) => html`<div><dt>${exposed(name)}</dt><dd><pre tabindex="0">${exposed(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre></dd></div>`)}</dl>
    <label class="why"><span class="hidden">Why, or what instead</span><input placeholder="Why not, or what instead (the agent reads it)" value=${why} onInput=${(/** @type {any} */ event) => say(event.target.value)} /></label>
    <div class="actions">
      ${entry.expires > 0 && html`<span class="muted">open until ${moment(entry.expires)}</span>`}
      <button type="button" disabled=${busy} onClick=${() => reply("deny", "once")}>Deny</button>
      <button type="button" disabled=${busy} onClick=${() => reply("allow", "session")} title="The same call with the same arguments, for the rest of this session">Allow in this session</button>
      <button type="button" class="primary" disabled=${busy} onClick=${() => reply("allow", "once")}>Allow once</button>
    </div></section>`;
}
