// @ts-check
// Skills: what an agent reads when a task needs it, where each is from, and what it lacks.

import { html } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { markdown } from "../lib/markdown.js";
import { path } from "../lib/route.js";
import { useLoaded } from "../lib/store.js";
import { Empty, Loaded, Table, Tag, View } from "./parts.js";
import { State as Standing } from "./services.js";

const TONES = /** @type {Record<string, string>} */ ({ ready: "good", missing: "warn", broken: "bad", hidden: "" });

/** @param {{route: any}} props */
export function Skills({ route }) {
  return route.parts[0] ? html`<${One} key=${route.parts[0]} name=${route.parts[0]} />` : html`<${All} />`;
}

function All() {
  const state = useLoaded(() => api.get("/api/skills"), []);
  return html`<${View} title="Skills" about="Instructions for kinds of tasks: an agent is told their names, and reads one when it begins such a task.">
    <${Loaded} state=${state}>${(/** @type {any[]} */ skills) => skills.length ? html`<${Table} label="All skills" head=${["Skill", "From", "State", "For"]} rows=${skills.map((one) => [
      one.state === "hidden" || one.state === "broken" ? one.name : html`<a href=${path("skills", one.name)}>${one.name}</a>`, one.source, html`<${State} one=${one} />`, one.description])} />`
      : html`<${Empty} icon="scroll-text" title="No skills">Put a folder with a SKILL.md into the home's skills/, or ask the agent to write one.<//>`}<//><//>`;
}

/** @param {{one: any}} props */
function State({ one }) {
  const state = one.state || "ready";
  return html`<${Tag} tone=${TONES[state]}>${state}<//> ${one.lacks?.length ? html`<span class="muted">${one.lacks.join(", ")}</span>` : ""}`;
}

/** @param {{name: string}} props */
function One({ name }) {
  const state = useLoaded(() => Promise.all([api.get(`/api/skills/${encodeURIComponent(name)}`), api.get("/api/services")]), [name]);
  return html`<${View} title=${name} actions=${html`<a class="button" href=${path("skills")}>All skills</a>`}><${Loaded} state=${state}>${(/** @type {any} */ [skill, services]) => html`
    <p class="prose">${skill.info.description}</p>
    <dl class="facts wide"><div><dt>State</dt><dd><${State} one=${skill.info} /></dd></div><div><dt>From</dt><dd>${skill.info.source}</dd></div><div><dt>Folder</dt><dd><code>${skill.info.path}</code></dd></div>
      ${services.filter((/** @type {any} */ one) => one.skill === name).map((/** @type {any} */ one) => html`<div><dt>Service</dt><dd><a href=${path("services", one.name)}>${one.name}</a> <${Standing} one=${one} /></dd></div>`)}</dl>
    ${(skill.info.warnings || []).map((/** @type {string} */ one) => html`<p class="muted">Not by the standard: ${one}</p>`)}
    <h2>Files</h2><p class="prose">${(skill.files || []).join("\n")}</p>
    <h2>Instructions</h2><div class="md prose-md">${markdown(skill.body)}</div>`}<//><//>`;
}
