// @ts-check
// Models: which answers, which there are, which keys are there or missing (never shown), and a trial.

import { html, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { duration, money, short } from "../lib/format.js";
import { loadModels } from "../lib/load.js";
import { attempt, say, useLoaded } from "../lib/store.js";
import { Icon } from "./icon.js";
import { Loaded, Table, Tag, View } from "./parts.js";

export function Models() {
  const state = useLoaded(() => api.get("/api/models"), []);
  const [query, search] = useState("");
  const [found, show] = useState(/** @type {any} */ (null));
  const use = async (/** @type {any} */ one) => {
    const done = await attempt(api.post("/api/models/select", { provider: one?.provider || "", model_id: one?.id || "" }));
    if (done) say(one ? `${one.model} answers from now on.` : "The choice is given back."), loadModels(), state.again();
  };
  const look = async (/** @type {Event} */ event) => {
    event.preventDefault();
    show(await attempt(api.get(`/api/models/search?q=${encodeURIComponent(query)}`)));
  };
  return html`<${View} title="Models" about="What thinks. Keys are told as there or missing; nobody is ever shown one." actions=${html`<button type="button" onClick=${() => use(null)}>Give the choice back</button>`}>
    <${Loaded} state=${state}>${(/** @type {any} */ data) => html`
      <h2>In use</h2><p class="muted">${data.pinned[0]?.why || ""}</p><${Rows} label="Models in use" models=${data.pinned} use=${use} current=${data.current} />
      <h2>Find another</h2>
      <form class="row" onSubmit=${look}><label class="side-search grow"><${Icon} name="search" /><span class="hidden">Words of a name</span><input type="search" placeholder="Words of a name, such as sonnet" value=${query} onInput=${(/** @type {any} */ event) => search(event.target.value)} /></label><button>Search</button></form>
      ${found && (found.models.length ? html`<${Rows} label="Models found" models=${found.models} use=${use} current=${data.current} />` : html`<p class="muted">No model is called so.</p>`)}
      <h2>Providers</h2>
      <${Table} label="All providers" head=${["Provider", "Key", "Protocol", "Address", "Note"]} rows=${Object.values(data.providers).map((/** @type {any} */ one) => [one.name, one.reachable ? html`<${Tag} tone="good">ready<//>` : html`<${Tag}>missing<//>`, one.protocol, html`<span class="clip">${one.base_url}</span>`, one.note || ""])} />`}<//><//>`;
}

/** @param {{label: string, models: any[], use: (one: any) => void, current: any}} props */
function Rows({ label, models, use, current }) {
  const [trials, set] = useState(/** @type {Record<string, any>} */ ({}));
  const test = async (/** @type {any} */ one) => {
    set({ ...trials, [one.model]: "busy" });
    const result = await attempt(api.post("/api/models/test", { model: one.model }));
    set({ ...trials, [one.model]: result });
  };
  return html`<${Table} label=${label} right=${[1, 2]} head=${["Model", "Window", "Price in / out per million", "Can", "", ""]} rows=${models.map((one) => [
    html`<span>${one.model} ${one.provider === current.provider && one.id === current.model_id ? html`<${Tag} tone="good">answers<//>` : ""}${one.ready === false ? html`<${Tag}>no key<//>` : ""}</span><${Trials} trials=${trials[one.model]} />`,
    one.window ? short(one.window) : "", one.price ? `${money(one.price.input)} / ${money(one.price.output)}` : "", (one.can || []).join(", "),
    html`<button type="button" class="small" disabled=${one.ready === false || trials[one.model] === "busy"} onClick=${() => test(one)}>${trials[one.model] === "busy" ? "Testing" : "Test"}</button>`,
    html`<button type="button" class="small" disabled=${one.ready === false} onClick=${() => use(one)}>Use</button>`])} />`;
}

/** @param {{trials: any}} props */
function Trials({ trials }) {
  if (!Array.isArray(trials)) return null;
  return html`<ul class="trials">${trials.map((one) => html`<li><${Icon} name=${one.ok === null || one.ok === undefined ? "circle" : one.ok ? "circle-check" : "circle-x"} size=${14} label=${one.ok ? "works" : one.ok === false ? "failed" : "not tried"} />${one.name} <span class="muted">${one.words || ""} ${one.ms ? duration(one.ms) : ""}</span></li>`)}</ul>`;
}
