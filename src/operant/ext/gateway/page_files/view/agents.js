// @ts-check
// Agents: what they are told, what they may do, and the files that say so.

import { html, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { loadAgents } from "../lib/load.js";
import { go, path } from "../lib/route.js";
import { attempt, say, shell, useLoaded, useStore } from "../lib/store.js";
import { Icon } from "./icon.js";
import { Ask, Confirm, Loaded, Table, Tag, View } from "./parts.js";

/** @param {{route: any}} props */
export function Agents({ route }) {
  return route.parts[0] ? html`<${One} key=${route.parts[0]} name=${route.parts[0]} />` : html`<${All} />`;
}

function All() {
  const state = useStore(shell);
  const [dialog, ask] = useState(/** @type {any} */ (null));
  const close = () => ask(null);
  const make = async (/** @type {string} */ name) => {
    if (await attempt(api.post("/api/agents", { name }))) await loadAgents(), go("agents", name);
  };
  return html`<${View} title="Agents" about="Who answers, with what, and how far they may go."
    actions=${html`<button type="button" onClick=${() => ask(html`<${Ask} title="New agent" label="Name (small letters, digits, - and _)" close=${close} done=${make} />`)}><${Icon} name="plus" />New agent</button>`}>
    <${Table} label="All agents" right=${[3]} head=${["Agent", "About", "Models", "Steps", "Sandbox", "Network"]} rows=${state.agents.map((one) => [html`<a href=${path("agents", one.name)}>${one.name}</a>`, one.description || "", (one.models || []).join(", ") || "found by itself",
      one.limits?.max_steps || 25, one.sandbox === false ? html`<${Tag} tone="bad">off<//>` : html`<${Tag} tone="good">on<//>`, (one.network || []).join(", ") || "none"])} />${dialog}<//>`;
}

/** @param {{name: string}} props */
function One({ name }) {
  const state = useLoaded(() => Promise.all([api.get(`/api/agents/${encodeURIComponent(name)}`), api.get(`/api/agents/${encodeURIComponent(name)}/prompt`)]), [name]);
  const [dialog, ask] = useState(/** @type {any} */ (null));
  const remove = async () => {
    const gone = await attempt(api.remove(`/api/agents/${encodeURIComponent(name)}`));
    if (gone) say(`Its files are in ${gone.aside}.`), await loadAgents(), go("agents");
  };
  const actions = html`<a class="button" href=${path("agents")}>All agents</a><button type="button" class="danger" onClick=${() => ask(html`<${Confirm} title=${`Remove ${name}?`} words="Its files are put aside; nothing is deleted." yes="Remove" close=${() => ask(null)} done=${remove} />`)}>Remove</button>`;
  return html`<${View} title=${name} about="An edit counts from the next turn." actions=${actions}>
    <${Loaded} state=${state}>${(/** @type {any} */ [agent, files]) => html`
      <h2>What it may do</h2>
      <p class="muted">This is changed in a file on the machine only, never over the network: <code>agents/${name}/AGENT.md</code>.</p>
      <dl class="facts wide">
        <div><dt>Tools</dt><dd>${(agent.permissions?.tools || ["*"]).join(", ")}</dd></div><div><dt>Denied</dt><dd>${(agent.permissions?.deny || []).join(", ") || "none"}</dd></div>
        <div><dt>Asks before</dt><dd>${Object.entries(agent.approval || {}).map(([tool, answer]) => `${tool}: ${answer}`).join(", ") || "as the guard decides"}</dd></div>
        <div><dt>Sandbox</dt><dd>${agent.sandbox === false ? "off" : "on"}</dd></div><div><dt>Network of commands</dt><dd>${(agent.network || []).join(", ") || "none"}</dd></div>
        <div><dt>Steps a turn</dt><dd>${agent.limits?.max_steps || 25}</dd></div><div><dt>Arrival</dt><dd>${agent.arrival || "steer"}</dd></div><div><dt>Effort</dt><dd>${agent.effort || "the model's own"}</dd></div>
        <div><dt>Workspace</dt><dd><code>${agent.workspace}</code></dd></div></dl>
      <h2>Files</h2>
      ${files.map((/** @type {any} */ file) => html`<${File} key=${file.name} agent=${name} file=${file} again=${state.again} />`)}`}<//>${dialog}<//>`;
}

/** @param {{agent: string, file: any, again: () => void}} props */
function File({ agent, file, again }) {
  const [text, write] = useState(file.text || "");
  const [error, fail] = useState(/** @type {any} */ (null));
  const dirty = text !== (file.text || "");
  const save = async () => {
    try {
      await api.put(`/api/agents/${encodeURIComponent(agent)}/prompt/${file.name}`, { text, digest: file.digest || "" });
      fail(null);
      say(`${file.name} is saved; it counts from the next turn.`);
      loadAgents();
      again();
    } catch (caught) {
      fail(caught);
    }
  };
  return html`<details class="file-edit" open=${file.name === "AGENT.md"}><summary><${Icon} name="file" size=${15} />${file.name}<span class="muted">${file.digest ? `${text.split("\n").length} lines` : "not there"}</span>${dirty && html`<${Tag} tone="warn">not saved<//>`}</summary>
    <label class="hidden" for=${`file-${file.name}`}>${file.name}</label>
    <textarea id=${`file-${file.name}`} class="mono" rows=${Math.min(28, Math.max(6, text.split("\n").length + 1))} spellcheck="false" value=${text} onInput=${(/** @type {any} */ event) => write(event.target.value)}></textarea>
    ${error && html`<p class="bad" role="alert">${error.message}</p>`}
    <div class="actions"><button type="button" disabled=${!dirty} onClick=${() => (write(file.text || ""), fail(null))}>Undo</button><button type="button" class="primary" disabled=${!dirty} onClick=${save}>Save</button></div></details>`;
}
