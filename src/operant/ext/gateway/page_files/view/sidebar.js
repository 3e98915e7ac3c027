// @ts-check
import { html, useEffect, useState } from "../vendor/preact.js";
import { api, sessionPath } from "../lib/api.js";
import { moment } from "../lib/format.js";
import { loadMore, loadSessions } from "../lib/load.js";
import { go, path } from "../lib/route.js";
import { attempt, dress, shell, useStore } from "../lib/store.js";
import { Icon } from "./icon.js";
import { Ask, Confirm, Menu } from "./parts.js";

const PLACES = [
  ["activity", "activity", "Activity"], ["usage", "chart-column", "Usage"], ["approvals", "hand", "Approvals"],
  ["agents", "bot", "Agents"], ["skills", "scroll-text", "Skills"], ["services", "layers", "Services"], ["tools", "wrench", "Tools"], ["models", "cpu", "Models"], ["system", "gauge", "System"],
];
const THEMES = [["system", "monitor", "As the system"], ["light", "sun", "Light"], ["dark", "moon", "Dark"]];

/** @param {{route: any}} props */
export function Sidebar({ route }) {
  const state = useStore(shell);
  const [query, search] = useState("");
  const [hits, found] = useState(/** @type {any[]|null} */ (null));
  const [dialog, ask] = useState(/** @type {any} */ (null));
  useEffect(() => {
    if (query.trim().length < 2) return found(null);
    let here = true;
    const due = setTimeout(async () => {
      const result = await attempt(api.get(`/api/sessions/search?q=${encodeURIComponent(query)}&limit=30`));
      if (here && result) found(result);
    }, 200);
    return () => (clearTimeout(due), void (here = false));
  }, [query]);
  const next = THEMES[(THEMES.findIndex(([key]) => key === state.theme) + 1) % THEMES.length];
  const current = THEMES.find(([key]) => key === state.theme) || THEMES[0];
  return html`
    <div class=${`scrim ${state.drawer ? "shown" : ""}`} onClick=${() => shell.set({ drawer: false })}></div>
    <nav class=${`sidebar ${state.drawer ? "open" : ""}`} aria-label="Sessions and places">
      <div class="side-head">
        <a class="brand" href="#/new"><span class="mark" aria-hidden="true"></span>Operant</a>
        <button type="button" class="quiet" title="Commands (Ctrl K)" aria-label="Commands" onClick=${() => shell.set({ palette: true })}><${Icon} name="command" /></button>
        <button type="button" class="quiet" title=${`Theme: ${current[2]}`} aria-label=${`Theme: ${current[2]}. Change to: ${next[2]}`} onClick=${() => dress(next[0])}><${Icon} name=${current[1]} /></button>
      </div>
      <a class="new-chat" href="#/new"><${Icon} name="plus" />New session<kbd>Ctrl ⇧ O</kbd></a>
      <label class="side-search"><${Icon} name="search" /><span class="hidden">Search sessions</span>
        <input type="search" placeholder="Search" value=${query} onInput=${(/** @type {any} */ event) => search(event.target.value)} /></label>
      <div class="side-list">
        ${hits ? html`<${Hits} hits=${hits} />` : html`<${Sessions} state=${state} current=${route.name === "s" ? route.parts[0] : ""} ask=${ask} />`}
      </div>
      <ul class="places">${PLACES.map(([key, icon, text]) => html`<li><a href=${path(key)} aria-current=${route.name === key ? "page" : null}>
        <${Icon} name=${icon} />${text}${key === "approvals" && state.approvals.length > 0 && html`<span class="badge" aria-label=${`${state.approvals.length} waiting`}>${state.approvals.length}</span>`}</a></li>`)}</ul>
    </nav>
    ${dialog}`;
}

/** @param {{state: any, current: string, ask: (dialog: any) => void}} props */
function Sessions({ state, current, ask }) {
  const show = (/** @type {boolean} */ archived) => (shell.set({ archived, sessions: [] }), loadSessions());
  return html`
    <ul class="sessions" aria-label=${state.archived ? "Archived sessions" : "Sessions"}>
      ${arranged(state.sessions, current).map((/** @type {any} */ one) => html`<${Session} key=${one.session_id} one=${one} current=${current === one.session_id} ask=${ask} />`)}
    </ul>
    ${!state.sessions.length && html`<p class="side-empty muted">${state.archived ? "Nothing is archived." : "No sessions yet. Say something to begin one."}</p>`}
    ${state.more > 0 && html`<button type="button" class="quiet wide" onClick=${loadMore}>Show older ones</button>`}
    <button type="button" class="quiet wide" onClick=${() => show(!state.archived)}><${Icon} name=${state.archived ? "message-square" : "archive"} />${state.archived ? "Back to sessions" : "Archive"}</button>`;
}

/** Sub-agents stand below those that they work for, while one of both is looked at, or they work.
 * @param {any[]} sessions @param {string} current @returns {any[]} */
function arranged(sessions, current) {
  const listed = new Set(sessions.map((one) => one.session_id));
  const isBelow = (/** @type {any} */ one) => one.session_id.startsWith("agents/") && one.agent.includes("/");
  const shown = sessions.filter((one) => isBelow(one) && (one.state === "open" || [one.session_id, one.parent].includes(current)));
  /** @param {any} one @returns {any[]} */
  const whole = (one) => [one, ...shown.filter((child) => child !== one && child.parent === one.session_id).reverse().flatMap(whole)];
  return sessions.filter((one) => !isBelow(one) || (shown.includes(one) && !listed.has(one.parent))).flatMap(whole);
}

/** @param {{one: any, current: boolean, ask: (dialog: any) => void}} props */
function Session({ one, current, ask }) {
  const key = one.session_id;
  const close = () => ask(null);
  const change = (/** @type {any} */ what) => attempt(api.patch(sessionPath(key), what)).then(loadSessions);
  const archived = one.state === "archived";
  const items = [
    { icon: "pencil", text: "Rename", run: () => ask(html`<${Ask} title="Rename the session" label="Title" value=${one.title} close=${close} done=${(/** @type {string} */ title) => change({ title })} />`) },
    { icon: archived ? "archive-restore" : "archive", text: archived ? "Take out of the archive" : "Archive", run: () => change({ archived: !archived }) },
    { icon: "download", text: "Export", run: () => void (location.href = `${sessionPath(key)}/export`) },
    { icon: "git-fork", text: "Copy", run: async () => { const made = await attempt(api.post(`${sessionPath(key)}/fork`)); if (made) go("s", made.session_id); loadSessions(); } },
    { icon: "trash-2", text: "Delete", tone: "bad", run: () => ask(html`<${Confirm} title="Delete the session?" words=${`“${one.title || key}” and all that is on record of it will be gone for ever.`} yes="Delete"
      close=${close} done=${async () => { await attempt(api.remove(sessionPath(key))); if (current) go("new"); loadSessions(); }} />`) },
  ];
  const title = one.title || one.preview || key;
  return html`<li class=${`${current ? "current" : ""} ${key.startsWith("agents/") ? "below" : ""}`}>
    <a href=${path("s", key)} aria-current=${current ? "page" : null} title=${title}>
      ${one.state === "open" && html`<span class="pulse" role="img" aria-label="working"></span>`}
      <span class="name">${title}</span><time>${moment(one.updated)}</time></a>
    <${Menu} label=${`More for ${title}`} items=${items} /></li>`;
}

/** @param {{hits: any[]}} props */
function Hits({ hits }) {
  if (!hits.length) return html`<p class="side-empty muted" role="status">Nothing was found.</p>`;
  return html`<ul class="hits" aria-label="Found">${hits.map((hit) => html`<li><a href=${`${path("s", hit.session)}?at=${hit.seq}`}>
    <span class="words">${hit.text.slice(0, 160)}</span><span class="muted">${hit.session} · ${moment(hit.at)}</span></a></li>`)}</ul>`;
}
