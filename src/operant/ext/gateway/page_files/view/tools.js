// @ts-check
// Tools: what there is, and a form to try one. A trial passes the same gate as an agent's call, and is on record.

import { html, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { duration, wordsOf } from "../lib/format.js";
import { path } from "../lib/route.js";
import { useLoaded } from "../lib/store.js";
import { Code } from "./code.js";
import { Loaded, Problem, Tag, View } from "./parts.js";

const EFFECTS = /** @type {Record<string, [string, string]>} */ ({ read: ["good", "only reads"], idempotent: ["", "may be repeated"], external: ["warn", "changes things"] });

/** @param {{route: any}} props */
export function Tools({ route }) {
  const state = useLoaded(() => api.get("/api/tools"), []);
  const [query, search] = useState("");
  return html`<${View} title="Tools" about="What agents can do. Try one by hand: it passes the same gate, and is on record in the session tools/…">
    <${Loaded} state=${state}>${(/** @type {any[]} */ tools) => {
      const found = tools.filter((tool) => `${tool.name} ${tool.description}`.toLowerCase().includes(query.toLowerCase()));
      const chosen = tools.find((tool) => tool.name === route.parts[0]);
      return html`<div class="two"><div>
        <label class="side-search"><span class="hidden">Find a tool</span><input type="search" placeholder=${`Find one of ${tools.length}`} value=${query} onInput=${(/** @type {any} */ event) => search(event.target.value)} /></label>
        <ul class="tool-list">${found.map((tool) => html`<li><a href=${path("tools", tool.name)} aria-current=${tool === chosen ? "true" : null}><strong>${tool.name}</strong><span class="muted">${tool.description.split("\n")[0]}</span></a></li>`)}</ul></div>
        <div>${chosen ? html`<${Trial} key=${chosen.name} tool=${chosen} />` : html`<p class="muted pad">Choose one to see what it takes and to try it.</p>`}</div></div>`;
    }}<//><//>`;
}

/** @param {{tool: any}} props */
function Trial({ tool }) {
  const properties = Object.entries(tool.schema?.properties || {});
  const required = new Set(tool.schema?.required || []);
  const [values, set] = useState(/** @type {Record<string, any>} */ ({}));
  const [result, show] = useState(/** @type {any} */ (null));
  const [error, fail] = useState(/** @type {any} */ (null));
  const [busy, work] = useState(false);
  const effect = EFFECTS[tool.effect || "external"];
  const run = async (/** @type {Event} */ event) => {
    event.preventDefault();
    work(true);
    const began = performance.now();
    try {
      show({ ...(await api.post(`/api/tools/${encodeURIComponent(tool.name)}`, { arguments: given(properties, values) })), ms: performance.now() - began });
      fail(null);
    } catch (caught) {
      fail(caught);
    }
    work(false);
  };
  return html`<section aria-label=${tool.name}><h2>${tool.name} <${Tag} tone=${effect[0]}>${effect[1]}<//>${tool.deferred && html`<${Tag}>found by search<//>`}</h2>
    <p class="prose">${tool.description}</p>
    <form class="stack" onSubmit=${run}>
      ${properties.map(([name, schema]) => html`<${Field} key=${name} name=${name} schema=${schema} required=${required.has(name)} value=${values[name]} change=${(/** @type {any} */ value) => set({ ...values, [name]: value })} />`)}
      ${!properties.length && html`<p class="muted">It takes nothing.</p>`}
      <div class="actions"><button class="primary" disabled=${busy}>${busy ? "Running" : "Run"}</button></div></form>
    ${error && html`<${Problem} error=${error} />`}
    ${result && html`<p><${Tag} tone=${(result.outcome || "ok") === "ok" ? "good" : "bad"}>${result.outcome || "ok"}<//> <span class="muted">${duration(result.ms)}</span></p><${Code} code=${wordsOf(result.parts)} />`}</section>`;
}

/** @param {any} props */
function Field({ name, schema, required, value, change }) {
  const kind = Array.isArray(schema.type) ? schema.type[0] : schema.type || schema.anyOf?.[0]?.type || "string";
  const label = html`<span>${name}${required ? "" : html` <span class="muted">may be left out</span>`}</span>${schema.description && html`<span class="muted">${schema.description}</span>`}`;
  const input = (/** @type {any} */ event) => change(event.target.value);
  if (schema.enum) return html`<label>${label}<select value=${value ?? schema.default ?? ""} onChange=${input}><option value="">—</option>${schema.enum.map((/** @type {any} */ one) => html`<option>${one}</option>`)}</select></label>`;
  if (kind === "boolean") return html`<label class="check"><input type="checkbox" checked=${value ?? schema.default ?? false} onChange=${(/** @type {any} */ event) => change(event.target.checked)} /><span>${label}</span></label>`;
  if (kind === "integer" || kind === "number") return html`<label>${label}<input type="number" step=${kind === "integer" ? 1 : "any"} required=${required} placeholder=${schema.default ?? ""} value=${value ?? ""} onInput=${input} /></label>`;
  const long = ["object", "array"].includes(kind) || /content|patch|command|text|new|old/.test(name);
  return html`<label>${label}${long ? html`<textarea class="mono" rows="4" required=${required} placeholder=${["object", "array"].includes(kind) ? "JSON" : ""} value=${value ?? ""} onInput=${input}></textarea>`
    : html`<input required=${required} placeholder=${schema.default ?? ""} value=${value ?? ""} onInput=${input} />`}</label>`;
}

/** Make arguments of what was typed. @param {[string, any][]} properties @param {Record<string, any>} values */
function given(properties, values) {
  /** @type {Record<string, any>} */
  const made = {};
  for (const [name, schema] of properties) {
    const value = values[name];
    if (value === undefined || value === "") continue;
    const kind = Array.isArray(schema.type) ? schema.type[0] : schema.type || "";
    made[name] = ["integer", "number"].includes(kind) ? Number(value) : ["object", "array"].includes(kind) ? JSON.parse(value) : value;
  }
  return made;
}

