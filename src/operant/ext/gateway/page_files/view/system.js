// @ts-check
// How it is: what runs, what is wrong and what to do, the log, and who may come in.

import { html, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { clock, moment } from "../lib/format.js";
import { attempt, say, useLoaded } from "../lib/store.js";
import { Copy } from "./code.js";
import { Icon } from "./icon.js";
import { Choice, Confirm, Dialog, Empty, Loaded, Table, View } from "./parts.js";

const TABS = [["state", "State"], ["logs", "Log"], ["access", "Access"]];
const MARKS = /** @type {Record<string, [string, string]>} */ ({ ok: ["circle-check", "well"], warn: ["triangle-alert", "warning"], fail: ["circle-x", "failed"] });

export function System() {
  const [tab, set] = useState("state");
  return html`<${View} title="System" about="How Operant is, and what to do where it is not well." actions=${html`<${Choice} label="Part" value=${tab} options=${TABS} change=${set} />`}>
    ${tab === "state" ? html`<${State} />` : tab === "logs" ? html`<${Logs} />` : html`<${Access} />`}<//>`;
}

function State() {
  const state = useLoaded(() => Promise.all([api.get("/api/status"), api.get("/api/doctor")]), []);
  return html`<${Loaded} state=${state}>${(/** @type {any} */ [status, checks]) => html`
    <dl class="facts"><div><dt>Version</dt><dd>${status.version}</dd></div><div><dt>Since</dt><dd>${moment(status.started)}</dd></div><div><dt>Process</dt><dd>${status.pid}</dd></div>
      <div><dt>Turns at work</dt><dd>${status.turns}</dd></div><div><dt>Sessions</dt><dd>${status.sessions}</dd></div><div><dt>Model</dt><dd>${status.provider}/${status.model}</dd></div></dl>
    <h2>Checks</h2>
    <ul class="checks">${checks.map((/** @type {any} */ one) => html`<li class=${one.state}><${Icon} name=${MARKS[one.state][0]} label=${MARKS[one.state][1]} /><strong>${one.name}</strong><span>${one.text}</span>${one.hint && html`<span class="muted">${one.hint}</span>`}</li>`)}</ul>
    <h2>Extensions</h2><p class="prose">${status.extensions.join(", ")}</p>`}<//>`;
}

function Logs() {
  const state = useLoaded(() => api.get("/api/logs?lines=500"), []);
  const [query, search] = useState("");
  return html`<div class="row"><label class="side-search grow"><${Icon} name="search" /><span class="hidden">Find in the log</span><input type="search" placeholder="Find in the log" value=${query} onInput=${(/** @type {any} */ event) => search(event.target.value)} /></label>
      <button type="button" onClick=${state.again}>Read again</button></div>
    <${Loaded} state=${state}>${(/** @type {any[]} */ lines) => {
      const found = lines.filter((line) => JSON.stringify(line).toLowerCase().includes(query.toLowerCase())).reverse();
      return found.length ? html`<ol class="log">${found.map((line) => html`<li class=${line.level}><time>${line.at ? clock(line.at) : ""}</time><span class="tag">${line.level || ""}</span><span class="muted">${line.part || ""}</span><span>${line.message}${line.traceback && html`<pre>${line.traceback}</pre>`}</span></li>`)}</ol>`
        : html`<${Empty} icon="scroll-text" title="Nothing is there">The log is empty, or nothing in it fits.<//>`;
    }}<//>`;
}

function Access() {
  const state = useLoaded(() => api.get("/api/tokens"), []);
  const [dialog, ask] = useState(/** @type {any} */ (null));
  const close = () => ask(null);
  const revoke = (/** @type {any} */ one) => ask(html`<${Confirm} title=${`Make ${one.name} void?`} words="Whoever uses it is out at once." yes="Revoke" close=${close} done=${async () => { await attempt(api.remove(`/api/tokens/${encodeURIComponent(one.name)}`)); state.again(); }} />`);
  const leave = async () => { await attempt(api.post("/api/logout")); location.reload(); };
  return html`<div class="row"><p class="muted grow">Programs come in with a token, browsers with a link from <code>operant open</code>. Only hashes of them are kept.</p>
      <button type="button" onClick=${() => ask(html`<${Fresh} close=${() => (close(), state.again())} />`)}><${Icon} name="key-round" />New token</button><button type="button" onClick=${leave}><${Icon} name="log-out" />Log out</button></div>
    <${Loaded} state=${state}>${(/** @type {any[]} */ tokens) => tokens.length ? html`<${Table} label="Tokens" head=${["Name", "Kind", "May", "Made", "Last used", "Until", ""]} rows=${tokens.map((one) => [one.name, one.kind || "token", one.scopes.join(", "), moment(one.created), one.used ? moment(one.used) : "never", one.expires ? moment(one.expires) : "for ever",
      html`<button type="button" class="small danger" onClick=${() => revoke(one)}>Revoke</button>`])} />` : html`<${Empty} icon="key-round" title="No tokens">Only you come in, by your own.<//>`}<//>${dialog}`;
}

const SCOPES = [["read", "look at everything"], ["chat", "talk"], ["approve", "answer questions"], ["tools", "run tools"], ["admin", "everything"]];

/** @param {{close: () => void}} props */
function Fresh({ close }) {
  const [name, call] = useState("");
  const [scopes, set] = useState(/** @type {string[]} */ (["chat"]));
  const [days, last] = useState("90");
  const [made, show] = useState(/** @type {any} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const token = await attempt(api.post("/api/tokens", { name, scopes, days: Number(days) }));
    if (token) show(token), say(`${name} may come in.`);
  };
  if (made) return html`<${Dialog} title="The token" close=${close}><p>This is the only time that it is shown.</p><p class="command"><code>${made.token}</code><${Copy} text=${made.token} /></p><div class="actions"><button type="button" class="primary" onClick=${close}>Done</button></div><//>`;
  return html`<${Dialog} title="New token" close=${close}><form class="stack" onSubmit=${submit}>
    <label>Name<input required pattern="[\\w.@\\-]+" autofocus value=${name} onInput=${(/** @type {any} */ event) => call(event.target.value)} /></label>
    <fieldset><legend>May</legend>${SCOPES.map(([key, words]) => html`<label class="check"><input type="checkbox" checked=${scopes.includes(key)} onChange=${(/** @type {any} */ event) => set(event.target.checked ? [...scopes, key] : scopes.filter((one) => one !== key))} /><span>${key} <span class="muted">${words}</span></span></label>`)}</fieldset>
    <label>Days until it is void (0: never)<input type="number" min="0" value=${days} onInput=${(/** @type {any} */ event) => last(event.target.value)} /></label>
    <div class="actions"><button type="button" onClick=${close}>Cancel</button><button class="primary" disabled=${!name || !scopes.length}>Make it</button></div></form><//>`;
}

