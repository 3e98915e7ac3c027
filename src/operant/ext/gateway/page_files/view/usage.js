// @ts-check
// Tokens and money: by day as a chart, by model, agent and session as figures.

import { html, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { money, number, percent, short } from "../lib/format.js";
import { path } from "../lib/route.js";
import { useLoaded } from "../lib/store.js";
import { Choice, Empty, Loaded, Table, View } from "./parts.js";

const RANGES = [["today", "Today"], ["7d", "7 days"], ["30d", "30 days"], ["all", "All"]];
const KINDS = [["tokens", "Tokens"], ["usd", "Cost"], ["cached", "Cached share"]];
const DAYS = /** @type {Record<string, number>} */ ({ today: 1, "7d": 7, "30d": 30 });

export function Usage() {
  const [range, set] = useState("7d");
  const [kind, show] = useState("tokens");
  const state = useLoaded(() => api.get(`/api/usage?range=${range}`), [range]);
  return html`<${View} title="Usage" about="What the models were asked, and what it cost. Days are UTC." actions=${html`<${Choice} label="Range" value=${range} options=${RANGES} change=${set} />`}>
    <${Loaded} state=${state}>${(/** @type {any} */ data) => !data.total.api_calls ? html`<${Empty} icon="chart-column" title="Nothing was used">Figures come with the first answer of a model.<//>` : html`
      <dl class="facts big"><div><dt>Cost</dt><dd>${money(data.total.usd)}</dd></div><div><dt>Input</dt><dd>${short(data.total.prompt_tokens)}</dd></div><div><dt>Output</dt><dd>${short(data.total.completion_tokens)}</dd></div>
        <div><dt>Cached</dt><dd>${percent(data.total.cached_share)}</dd></div><div><dt>Model calls</dt><dd>${number(data.total.api_calls)}</dd></div></dl>
      <${Choice} label="Chart" value=${kind} options=${KINDS} change=${show} />
      <${Chart} days=${filled(data.days, range)} kind=${kind} />
      <${Lines} title="Models" lines=${data.models} /><${Lines} title="Agents" lines=${data.agents} />
      <${Lines} title="Sessions" lines=${data.sessions} link=${true} />`}<//><//>`;
}

/** Days on which nothing happened are days too. @param {any[]} days @param {string} range */
function filled(days, range) {
  const count = DAYS[range];
  if (!count) return days;
  const known = new Map(days.map((day) => [day.name, day]));
  return Array.from({ length: count }, (_, at) => {
    const name = new Date(Date.now() - (count - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    return known.get(name) || { name, prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, usd: 0, cached_share: 0 };
  });
}

/** Bars by day; input and output stand on each other. @param {{days: any[], kind: string}} props */
function Chart({ days, kind }) {
  const parts = (/** @type {any} */ day) => kind === "usd" ? [["usd", day.usd]] : kind === "cached" ? [["cached", day.cached_share]]
    : [["cached", day.cached_tokens], ["input", day.prompt_tokens - day.cached_tokens], ["output", day.completion_tokens]];
  const sum = (/** @type {any} */ day) => parts(day).reduce((total, [, value]) => total + Number(value), 0);
  const most = kind === "cached" ? 1 : Math.max(...days.map(sum), kind === "usd" ? 0.0001 : 1);
  const said = (/** @type {number} */ value) => kind === "usd" ? money(value) : kind === "cached" ? percent(value) : short(value);
  const width = 720;
  const left = 44;
  const each = (width - left) / days.length;
  const bar = Math.min(each * 0.7, 40);
  return html`<figure class="chart"><svg viewBox=${`0 0 ${width} 180`} role="img" aria-label=${`${kind} by day: ${days.map((day) => `${day.name} ${said(sum(day))}`).join(", ")}`}>
    ${[0, 0.5, 1].map((share) => html`<line x1=${left} x2=${width} y1=${150 - share * 140} y2=${150 - share * 140} /><text x=${left - 6} y=${153 - share * 140} class="end">${said(most * share)}</text>`)}
    ${days.map((day, at) => {
      let base = 150;
      return html`<g><title>${`${day.name}: ${said(sum(day))}`}</title>${parts(day).map(([name, value]) => {
        const height = (Number(value) / most) * 140;
        base -= height;
        return html`<rect class=${name} x=${left + at * each + (each - bar) / 2} y=${base} width=${bar} height=${Math.max(0, height)} rx="1" />`;
      })}${(days.length <= 10 || at % 5 === 0) && html`<text x=${left + at * each + each / 2} y="170" class="middle">${day.name.slice(5)}</text>`}</g>`;
    })}</svg>
    ${kind === "tokens" && html`<figcaption><span class="key cached">cached input</span><span class="key input">input</span><span class="key output">output</span></figcaption>`}</figure>`;
}

/** @param {{title: string, lines: any[], link?: boolean}} props */
function Lines({ title, lines, link }) {
  if (!lines.length) return null;
  return html`<h2>${title}</h2><${Table} label=${title} right=${[1, 2, 3, 4, 5]} head=${["", "Calls", "Input", "Output", "Cached", "Cost"]}
    rows=${lines.slice(0, 30).map((line) => [link ? html`<a class="clip" href=${path("s", line.session_id)}>${line.preview || line.session_id}</a>` : line.name, number(line.api_calls), number(line.prompt_tokens), number(line.completion_tokens), percent(line.cached_share), money(line.usd)])} />`;
}
