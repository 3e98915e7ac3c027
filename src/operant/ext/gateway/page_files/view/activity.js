// @ts-check
// What goes on now and went on lately, over all sessions.

import { html, useEffect, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { brief, clock, duration, short } from "../lib/format.js";
import { path } from "../lib/route.js";
import { useLoaded } from "../lib/store.js";
import { Icon } from "./icon.js";
import { Choice, Empty, Loaded, View } from "./parts.js";

const MOST = 500;
const KINDS = [["all", "All"], ["tool", "Tools"], ["model", "Models"], ["turn", "Turns"], ["bad", "Failures"]];

export function Activity() {
  const [fresh, add] = useState(/** @type {any[]} */ ([]));
  const [kind, show] = useState("all");
  const state = useLoaded(() => api.get("/api/activity?limit=200"), []);
  useEffect(() => {
    const take = (/** @type {any} */ event) => add((before) => [...before, event.detail].slice(-MOST));
    addEventListener("operant:activity", take);
    return () => removeEventListener("operant:activity", take);
  }, []);
  return html`<${View} title="Activity" about="Everything that happens, in every session, as it happens." actions=${html`<${Choice} label="Show" value=${kind} options=${KINDS} change=${show} />`}>
    <${Loaded} state=${state}>${(/** @type {any} */ data) => {
      const seen = new Set();
      const all = [...data.events, ...fresh].filter((one) => !seen.has(`${one.session_id}/${one.seq}`) && seen.add(`${one.session_id}/${one.seq}`)).filter((one) => fits(one, kind)).reverse();
      return all.length ? html`<ol class="activity" aria-live="off">${all.slice(0, MOST).map((one) => html`<li key=${`${one.session_id}/${one.seq}`} class=${bad(one) ? "bad" : ""}>
        <time>${clock(one.at)}</time><${Icon} name=${icon(one)} size=${14} /><span class="what">${words(one)}</span><a class="clip muted" href=${`${path("s", one.session_id)}?at=${one.seq}`}>${one.session_id}</a></li>`)}</ol>`
        : html`<${Empty} icon="activity" title="Nothing has happened">Say something in a session, and watch it here.<//>`;
    }}<//><//>`;
}

/** @param {any} one */
const bad = (one) => one.type === "model_error" || one.success === false || (one.type === "turn_ended" && one.reason !== "done");

/** @param {any} one @param {string} kind */
function fits(one, kind) {
  if (kind === "all") return true;
  if (kind === "bad") return bad(one);
  return one.type.startsWith(kind) || (kind === "turn" && one.type === "message");
}

const ICONS = /** @type {Record<string, string>} */ ({ tool_call: "wrench", tool_result: "circle-check", model_reply: "cpu", model_error: "triangle-alert", message: "message-square", turn_started: "play", turn_ended: "circle-stop", approval_request: "hand", approval_resolved: "hand" });

/** @param {any} one */
const icon = (one) => (bad(one) ? "circle-x" : ICONS[one.type] || "circle-dot");

/** @param {any} one */
function words(one) {
  switch (one.type) {
    case "tool_call": return html`<strong>${one.tool}</strong> ${brief(one.input)}`;
    case "tool_result": return html`<strong>${one.tool}</strong> ${one.outcome} in ${duration(one.duration_ms)} <span class="muted">${(one.result_preview || "").replace(/\s+/g, " ").slice(0, 120)}</span>`;
    case "model_reply": return html`<strong>${one.model}</strong> answered in ${duration(one.duration_ms)} <span class="muted">${short(one.usage.prompt_tokens)} in, ${short(one.usage.completion_tokens)} out</span>`;
    case "model_error": return html`<strong>${one.model}</strong> ${one.message || one.error}`;
    case "message": return html`<strong>${one.author || "somebody"}</strong> ${one.preview}`;
    case "turn_started": return html`a turn began <span class="muted">${one.trigger}</span>`;
    case "turn_ended": return html`a turn ended: ${one.reason} <span class="muted">${one.message}</span>`;
    case "approval_request": return html`asks: may <strong>${one.tool}</strong> run? ${brief(one.input)}`;
    case "approval_resolved": return html`${one.approved ? "allowed" : "denied"} <span class="muted">by ${one.by || "somebody"}</span>`;
    default: return one.type;
  }
}
