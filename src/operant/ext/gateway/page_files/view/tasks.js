// @ts-check
import { html } from "../vendor/preact.js";
import { duration, short } from "../lib/format.js";
import { shell, useStore } from "../lib/store.js";
import { Icon } from "./icon.js";

const MARKS = /** @type {Record<string, [string, string]>} */ ({ pending: ["circle", "open"], active: ["circle-dot", "at work"], done: ["circle-check", "done"], failed: ["circle-x", "failed"], dropped: ["circle-stop", "dropped"] });

/** Deep work: the task tree, and how much of steps, tokens and time is used. @param {{model: any}} props */
export function Tasks({ model }) {
  const state = useStore(shell);
  const turn = model.turns[model.turns.length - 1];
  const tasks = [...model.tasks.values()];
  if (!turn || turn.ended || (turn.mode !== "deep" && !tasks.length)) return null;
  const limits = state.agents.find((one) => one.name === model.agent)?.limits || {};
  const used = (turn.usage?.input || 0) + (turn.usage?.output || 0);
  const done = tasks.filter((task) => task.state === "done").length;
  return html`<details class="tasks" open><summary><${Icon} name="layers" size=${15} />Deep work
      <span class="muted">${tasks.length ? `${done} of ${tasks.length} tasks · ` : ""}${turn.steps} of ${limits.max_steps || 25} steps · ${short(used)}${limits.turn_tokens ? ` of ${short(limits.turn_tokens)}` : ""} tokens · ${duration((Date.now() * 1000 - turn.started) / 1000)}</span></summary>
    <progress max=${limits.turn_tokens || limits.max_steps || 25} value=${limits.turn_tokens ? used : turn.steps} aria-label="How much of the budget is used"></progress>
    ${tasks.length > 0 && html`<${Branch} tasks=${tasks} parent="" />`}</details>`;
}

/** @param {{tasks: any[], parent: string}} props */
function Branch({ tasks, parent }) {
  const own = tasks.filter((task) => (task.parent || "") === parent);
  if (!own.length) return null;
  return html`<ul>${own.map((task) => {
    const [icon, said] = MARKS[task.state] || MARKS.pending;
    return html`<li class=${task.state}><${Icon} name=${icon} label=${said} size=${14} /><span>${task.title || task.id}</span>${task.note && html`<span class="muted"> — ${task.note}</span>`}<${Branch} tasks=${tasks} parent=${task.id} /></li>`;
  })}</ul>`;
}
