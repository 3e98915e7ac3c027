// @ts-check
// Services: programs of skills that hook into Operant. What each asks for, how it stands, and what it wrote.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { exposed, moment } from "../lib/format.js";
import { path } from "../lib/route.js";
import { attempt, say, useFresh } from "../lib/store.js";
import { Icon } from "./icon.js";
import { Confirm, Dialog, Empty, Loaded, Table, Tag, View } from "./parts.js";

const TONES = /** @type {Record<string, string>} */ ({ running: "good", degraded: "warn", waiting: "warn", ungranted: "warn", failed: "bad" });
const WORDS = /** @type {Record<string, string>} */ ({ ungranted: "not allowed" });
const FRESH_MS = 3000;
const LINES = 300;

/** @param {{route: any}} props */
export function Services({ route }) {
  return route.parts[0] ? html`<${One} key=${route.parts[0]} name=${route.parts[0]} />` : html`<${All} />`;
}

/** @param {string} name @param {string} [what] */
function place(name, what = "") {
  return `/api/services/${encodeURIComponent(name)}${what && `/${what}`}`;
}

function All() {
  const state = useFresh(() => api.get("/api/services"), [], FRESH_MS);
  return html`<${View} title="Services" about="Programs of skills that hook into Operant. None runs before you have allowed exactly its content.">
    <${Loaded} state=${state}>${(/** @type {any[]} */ services) => services.length ? html`<${Table} label="All services" right=${[4]} head=${["Service", "State", "Hooks", "Offers", "Restarts"]} rows=${services.map((one) => [
      html`<a href=${path("services", one.name)}>${one.name}</a>`, html`<${State} one=${one} />`, listed(one.hooks, "none yet"), listed([...(one.tools || []), ...(one.commands || [])]), one.restarts || 0])} />`
      : html`<${Empty} icon="layers" title="No services">A skill has one when the metadata of its SKILL.md names a program as <code>operant.service</code>.<//>`}<//><//>`;
}

/** @param {string[]} [words] @param {string} [none] */
function listed(words, none = "none") {
  return exposed((words || []).join(", ")) || none;
}

/** Tell whether the folder has another content than the one that runs. @param {any} one */
function changed(one) {
  return Boolean(one.running && one.digest && one.running !== one.digest);
}

/** How a service stands, in a word. @param {{one: any}} props */
export function State({ one }) {
  return html`<${Tag} tone=${TONES[one.state]}>${WORDS[one.state] || one.state}<//> ${one.reason ? html`<span class="muted">${exposed(one.reason)}</span>` : ""}`;
}

/** @param {{name: string}} props */
function One({ name }) {
  const state = useFresh(() => api.get("/api/services"), [name], FRESH_MS);
  const one = (state.data || []).find((/** @type {any} */ each) => each.name === name);
  return html`<${View} title=${name} actions=${html`<a class="button" href=${path("services")}>All services</a>`}><${Loaded} state=${state}>${() => one
    ? html`<${Detail} one=${one} again=${state.again} />`
    : html`<${Empty} icon="layers" title="Not there">No skill has a service of this name.<//>`}<//><//>`;
}

/** @param {{one: any, again: () => void}} props */
function Detail({ one, again }) {
  return html`
    <${Deeds} one=${one} again=${again} />
    <dl class="facts wide"><div><dt>State</dt><dd><${State} one=${one} /></dd></div>
      <div><dt>Skill</dt><dd><a href=${path("skills", one.skill)}>${one.skill}</a>${one.agent ? ` of ${one.agent}` : ""}</dd></div>
      <div><dt>Since</dt><dd>${one.since ? moment(one.since) : "—"}</dd></div>
      <div><dt>Process</dt><dd>${one.pid || "none"}</dd></div><div><dt>Generation</dt><dd>${one.generation || 0}</dd></div><div><dt>Restarts</dt><dd>${one.restarts || 0}</dd></div></dl>
    ${changed(one) && html`<p class="note warn"><${Icon} name="triangle-alert" size=${14} /> The folder has changed since this was allowed. What runs is the content before.</p>`}
    <h2>What it asks for</h2><${Asked} one=${one} />
    <h2>What it has</h2><dl class="facts wide"><div><dt>Hooks</dt><dd>${listed(one.pid ? one.hooks : [])}</dd></div><div><dt>Calls</dt><dd>${listed(one.granted)}</dd></div>
      <div><dt>Tools</dt><dd>${listed(one.tools)}</dd></div><div><dt>Commands</dt><dd>${listed(one.commands)}</dd></div></dl>
    <${Log} name=${one.name} />`;
}

/** Everything that an owner says yes to, with what cannot be seen written out. @param {{one: any}} props */
function Asked({ one }) {
  const rows = [
    ["Runs", exposed(one.command || "")],
    ["Where", one.sandbox === false ? "outside of the sandbox, with all that you may do" : "in the sandbox"],
    ["Files", exposed(one.path || "")], ["Content", one.digest || "not taken: it could not run"], ["Hooks", listed(one.declares, "anywhere that it asks for")],
    ["Calls", listed(one.wants)], ["Network", listed(one.network)], ["Secrets", listed(one.secrets)],
  ];
  return html`<dl class="named whole">${rows.map(([name, words]) => html`<div><dt>${name}</dt><dd class=${name === "Where" && one.sandbox === false ? "bad" : ""}>${words}</dd></div>`)}</dl>`;
}

/** @param {{one: any, again: () => void}} props */
function Deeds({ one, again }) {
  const [dialog, ask] = useState(/** @type {any} */ (null));
  const [busy, wait] = useState(false);
  const close = () => ask(null);
  const carry = async (/** @type {string} */ deed, /** @type {any} */ body = {}) => {
    wait(true);
    if (await attempt(api.post(place(one.name, deed), body))) say(DONE[deed](one.name));
    wait(false);
    again();
  };
  const open = one.state === "ungranted" || changed(one);
  const works = ["running", "degraded", "starting", "waiting"].includes(one.state);
  const button = (/** @type {string} */ text, /** @type {() => void} */ run, tone = "") => html`<button type="button" class=${tone} disabled=${busy} onClick=${run}>${text}</button>`;
  return html`<div class="actions">
    ${open && one.digest && button("Allow…", () => ask(html`<${Allow} one=${one} close=${close} done=${() => carry("grant", { digest: one.digest })} />`), "primary")}
    ${["stopped", "failed"].includes(one.state) && button("Start", () => carry("start"))}
    ${works && button("Restart", () => carry("restart"))}
    ${works && button("Stop", () => ask(html`<${Confirm} title=${`Stop ${one.name}?`} words="It stays stopped until you start it. A guard that is stopped guards nothing." yes="Stop" close=${close} done=${() => carry("stop")} />`))}
    ${one.state !== "ungranted" && button("Take back", () => ask(html`<${Confirm} title=${`Take back what ${one.name} may do?`} words="It ends at once, and runs again only when you allow it again." yes="Take back" close=${close} done=${() => carry("revoke")} />`), "danger")}
    ${dialog}</div>`;
}

const DONE = /** @type {Record<string, (name: string) => string>} */ ({
  grant: (name) => `${name} may run.`, revoke: (name) => `${name} may no longer run.`, start: (name) => `${name} starts.`,
  stop: (name) => `${name} is stopped.`, restart: (name) => `${name} starts anew.`,
});

/** The question before a program runs: exactly this content, and nothing that is not shown. @param {{one: any, close: () => void, done: () => void}} props */
function Allow({ one, close, done }) {
  return html`<${Dialog} title=${`Let ${one.name} run?`} close=${close}>
    <p>This is a program that others may have written. It may run as long as its folder has exactly this content; a change asks again.</p>
    ${one.sandbox === false && html`<p class="problem" role="alert"><${Icon} name="triangle-alert" /><strong>It runs outside of the sandbox: it can do all that you can do.</strong></p>`}
    <${Asked} one=${one} />
    <div class="actions"><button type="button" autofocus onClick=${close}>Cancel</button><button type="button" class="primary" onClick=${() => (close(), done())}>Allow</button></div><//>`;
}

/** @param {{name: string}} props */
function Log({ name }) {
  const [live, follow] = useState(true);
  const state = useFresh(() => api.get(`${place(name, "logs")}?lines=${LINES}`), [name], live ? FRESH_MS : 0);
  const box = useRef(/** @type {any} */ (null));
  const low = useRef(true);
  useEffect(() => {
    if (box.current && low.current) box.current.scrollTop = box.current.scrollHeight;
  }, [state.data]);
  const moved = () => void (low.current = box.current.scrollTop + box.current.clientHeight >= box.current.scrollHeight - 8);
  return html`<h2>Log</h2><div class="row"><label class="check grow"><input type="checkbox" checked=${live} onChange=${(/** @type {any} */ event) => follow(event.target.checked)} /><span>Follow</span></label>
      <button type="button" onClick=${state.again}><${Icon} name="refresh-cw" />Read again</button></div>
    <${Loaded} state=${state}>${(/** @type {string[]} */ lines) => lines.length
      ? html`<pre class="plain tail" tabindex="0" role="log" aria-label="Log of the service" ref=${box} onScroll=${moved}>${lines.map(exposed).join("\n")}</pre>`
      : html`<p class="muted">It has written nothing yet.</p>`}<//>`;
}
