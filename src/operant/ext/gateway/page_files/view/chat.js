// @ts-check
// One session: what was said and done, what goes on, and a place to say more.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { api, freshId, sessionPath } from "../lib/api.js";
import { Live } from "../lib/live.js";
import { loadSessions } from "../lib/load.js";
import { go, path } from "../lib/route.js";
import { SessionModel } from "../lib/session.js";
import { attempt, say, shell, useStore } from "../lib/store.js";
import { Composer } from "./composer.js";
import { Icon } from "./icon.js";
import { Ask, Confirm, Drawer, Empty, Menu, Problem } from "./parts.js";
import { Tasks } from "./tasks.js";
import { Turn } from "./turn.js";

const FIRST = 400;
/** Events that are fetched when a session is opened; older ones when somebody asks for them. */

/** @param {{route: any}} props */
export function Chat({ route }) {
  const fresh = useMemo(() => `web-${freshId()}`, []);
  const key = route.name === "s" ? route.parts[0] : fresh;
  const [model] = useState(() => new SessionModel(key));
  const [, draw] = useState(0);
  const [problem, fail] = useState(/** @type {any} */ (null));
  const [line, told] = useState("connecting");
  const [begin, from] = useState(0);
  const [dialog, ask] = useState(/** @type {any} */ (null));
  const [deep, dive] = useState(false);
  const live = useRef(/** @type {Live|null} */ (null));
  const frame = useRef(0);
  const redraw = () => {
    if (!frame.current) frame.current = requestAnimationFrame(() => ((frame.current = 0), draw((count) => count + 1)));
  };

  useEffect(() => {
    let here = true;
    open(key, route).then((page) => {
      if (!here) return;
      page.events.forEach((/** @type {any} */ event) => model.apply(event));
      model.last = Math.max(model.last, page.end);
      from(page.events[0]?.seq || 1);
      redraw();
      live.current = new Live(() => `/ws/${encodeURIComponent(key)}?view=events&after=${model.last}`, take, (state) => (told(state), state === "lost" && (model.cut(), redraw())));
    }, (error) => here && fail(error));
    return () => { here = false; live.current?.close(); cancelAnimationFrame(frame.current); };
  }, [key]);

  /** @param {any} received */
  function take(received) {
    if (received.type === "event") {
      model.apply(received.event);
      if (route.name === "new" && received.event.type === "message.received") history.replaceState(null, "", path("s", key)), dispatchEvent(new Event("hashchange"));
    } else if (received.type === "cleared") model.clear();
    else if (received.type === "error") say(received.message, "bad");
    else if (received.turn !== undefined) model.delta(received);
    redraw();
  }

  /** @param {string} text @param {any[]} files */
  const send = (text, files) => live.current?.send({ type: "message", id: freshId(), content: text, attachments: files, mode: deep ? "deep_work" : "bounded" });
  const stop = () => live.current?.send({ type: "stop" });
  const answer = (/** @type {any} */ reply) => attempt(api.post(`/api/approvals/${reply.id}`, { answer: reply.answer, scope: reply.scope || "once", reason: reply.reason || "" }));
  const actions = { ...commands({ key, model, ask, stop, dive: () => dive(!deep), live }), send, stop, answer, deep };
  useCommands(actions);

  const started = model.turns.length > 0;
  useEffect(() => void (document.title = `${model.title || firstWords(model) || "New session"} · Operant`), [model.version]);
  return html`<section class="chat" aria-label="Session">
    <${Head} model=${model} actions=${actions} started=${started} line=${line} route=${route} />
    ${problem ? html`<${Problem} error=${problem} />` : html`
      <${Scroll} version=${model.version} at=${Number(route.query.get("at")) || 0}>
        ${begin > 1 && html`<button type="button" class="quiet wide" onClick=${() => older(model, key, begin, from, redraw)}>Show what came before</button>`}
        ${!started && html`<${Welcome} send=${send} />`}
        ${model.turns.map((turn) => html`<${Turn} key=${turn.id} turn=${turn} version=${turn.version} session=${key} actions=${actions} working=${model.working} />`)}
      <//>
      <${Tasks} model=${model} />
      <${Composer} session=${key} working=${model.working} actions=${actions} line=${line} agent=${model.agent} />`}
    ${dialog}
  </section>`;
}

/** @param {string} key @param {any} route */
async function open(key, route) {
  if (route.name === "new") return { events: [], end: 0 };
  const at = Number(route.query.get("at")) || 0;
  const page = await api.get(`${sessionPath(key)}/events?last=${FIRST}`);
  if (at && page.events[0]?.seq > at) return api.get(`${sessionPath(key)}/events?after=${Math.max(0, at - 20)}`);
  return page;
}

/** Put older events before those that are shown. @param {SessionModel} model @param {string} key @param {number} begin @param {(seq: number) => void} from @param {() => void} redraw */
async function older(model, key, begin, from, redraw) {
  const after = Math.max(0, begin - 1 - FIRST);
  const page = await attempt(api.get(`${sessionPath(key)}/events?after=${after}`));
  if (!page) return;
  model.clear();
  page.events.forEach((/** @type {any} */ event) => model.apply(event));
  from(after + 1);
  redraw();
}

/** @param {SessionModel} model */
function firstWords(model) {
  const first = model.turns[0]?.entries.find((entry) => entry.kind === "user");
  return (first?.text || "").replace(/\s+/g, " ").slice(0, 80);
}

/** @param {any} props */
function Head({ model, actions, started, line, route }) {
  const state = useStore(shell);
  const chain = state.models?.pinned || [];
  const agents = state.agents;
  const title = model.title || firstWords(model) || "New session";
  const items = [
    { icon: "pencil", text: "Rename", run: actions.rename },
    { icon: "list-tree", text: "Trace", run: () => go("trace", model.key) },
    { icon: "git-fork", text: "Copy", run: actions.fork },
    { icon: "download", text: "Export", run: actions.export },
    { icon: "archive", text: "Archive", run: actions.archive },
    { icon: "rotate-ccw", text: "Begin anew", run: actions.clear, tone: "bad" },
  ];
  return html`<header class="chat-head"><${Drawer} />
    <h1 title=${title}>${title}</h1>
    ${line === "lost" && html`<span class="tag warn" role="status">reconnecting</span>`}
    <label class="hidden" for="model">Model</label>
    <select id="model" value=${model.model || chain[0]?.model || ""} onChange=${(/** @type {any} */ event) => actions.use(event.target.value)}>
      ${model.model && !chain.some((/** @type {any} */ one) => one.model === model.model) && html`<option value=${model.model}>${model.model}</option>`}
      ${chain.map((/** @type {any} */ one) => html`<option value=${one.model} disabled=${one.ready === false}>${one.model}</option>`)}
    </select>
    ${agents.length > 1 && model.agent && html`<span class="tag">${model.agent}</span>`}
    ${started && html`<${Menu} label="More for this session" items=${items} />`}
  </header>`;
}

/** Hold to the end while the person is at the end; leave them where they are when they are not. @param {any} props */
function Scroll({ version, at, children }) {
  const box = useRef(/** @type {any} */ (null));
  const near = useRef(true);
  const [far, set] = useState(false);
  const scrolled = () => {
    const there = box.current;
    near.current = there.scrollHeight - there.scrollTop - there.clientHeight < 80;
    if (far === near.current) set(!near.current);
  };
  useLayoutEffect(() => { if (near.current && !at) box.current.scrollTop = box.current.scrollHeight; }, [version]);
  useEffect(() => {
    const there = at && document.querySelector(`[data-seq="${at}"]`);
    if (there) there.scrollIntoView({ block: "center" }), there.classList.add("found");
  }, [at, Boolean(version)]);
  const down = () => ((near.current = true), (box.current.scrollTop = box.current.scrollHeight));
  return html`<div class="scroll" ref=${box} onScroll=${scrolled} tabindex="0" role="region" aria-label="Conversation"><div class="column">${children}</div></div>
    ${far && html`<button type="button" class="to-end" aria-label="Go to the end" onClick=${down}><${Icon} name="chevron-down" /></button>`}`;
}

const EXAMPLES = ["list files", "read AGENTS.md", 'run "uname -a"', "What can you do?"];

/** @param {{send: (text: string, files: any[]) => void}} props */
function Welcome({ send }) {
  const state = useStore(shell);
  const offline = state.models?.current?.provider === "offline";
  return html`<${Empty} icon="message-square" title="What shall be done?">
    <p>Say it in your words. The agent works on this computer with its tools; what needs your yes comes as a question.</p>
    ${offline && html`<p>No model is set up, so a small interpreter of commands answers: <a href="#/models">set one up</a>, or try these:</p>`}
    <div class="examples">${EXAMPLES.map((text) => html`<button type="button" onClick=${() => send(text, [])}>${text}</button>`)}</div>
    <p class="keys"><kbd>/</kbd> commands <kbd>Ctrl K</kbd> everything else <kbd>Esc</kbd> stops</p>
  <//>`;
}

/** What can be done with a session, from its menu, the palette and the keyboard. @param {any} given */
function commands({ key, model, ask, stop, dive, live }) {
  const close = () => ask(null);
  const change = async (/** @type {any} */ what) => {
    await attempt(api.patch(sessionPath(key), what));
    loadSessions();
  };
  const resend = async (/** @type {number} */ upto, /** @type {string} */ text, /** @type {any[]} */ files) => {
    const copy = await attempt(api.post(`${sessionPath(key)}/fork`, { upto, title: model.title || firstWords(model) }));
    if (!copy) return;
    const body = { message: text, attachments: files };
    const response = await attempt(fetchAsync(copy.session_id, body));
    if (response) go("s", copy.session_id), loadSessions();
  };
  return {
    rename: () => ask(html`<${Ask} title="Rename the session" label="Title" value=${model.title || firstWords(model)} close=${close} done=${(/** @type {string} */ title) => change({ title })} />`),
    archive: async () => { await change({ archived: true }); say("Archived."); go("new"); },
    export: () => void (location.href = `${sessionPath(key)}/export`),
    fork: async () => { const made = await attempt(api.post(`${sessionPath(key)}/fork`)); if (made) go("s", made.session_id), loadSessions(); },
    clear: () => ask(html`<${Confirm} title="Begin this session anew?" words="A copy of what was said goes to the archive." yes="Begin anew" close=${close} done=${() => live.current?.send({ type: "clear" })} />`),
    use: async (/** @type {string} */ name) => {
      if (!model.last) return void (await attempt(api.post("/api/models/select", { provider: name.split("/")[0], model_id: name.split("/").slice(1).join("/") })));
      await change({ model: name });
      say(`${name} answers this session from now on.`);
    },
    deepen: dive,
    halt: stop,
    edit: (/** @type {any} */ entry, /** @type {string} */ text) => resend(entry.seq - 1, text, entry.files || []),
    regenerate: (/** @type {any} */ turn) => {
      const said = turn.entries.filter((/** @type {any} */ entry) => entry.kind === "user");
      if (said.length) resend(said[0].seq - 1, said.map((/** @type {any} */ one) => one.text).join("\n\n"), said.flatMap((/** @type {any} */ one) => one.files || []));
    },
  };
}

/** Send a message without waiting for the answer. @param {string} session @param {any} body */
async function fetchAsync(session, body) {
  const headers = { "Content-Type": "application/json", Prefer: "respond-async", "Idempotency-Key": freshId() };
  const response = await fetch(`/api/chat/${encodeURIComponent(session)}`, { method: "POST", headers, body: JSON.stringify(body) });
  const data = await response.json();
  if (!response.ok) throw new Error(`${data.detail} ${data.hint || ""}`);
  return data;
}

/** Let the palette and the keyboard reach this session. @param {any} actions */
function useCommands(actions) {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const run = (/** @type {any} */ event) => {
      const call = /** @type {any} */ ({ stop: "halt", deep: "deepen" })[event.detail] || event.detail;
      latest.current[call]?.();
    };
    const escape = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]")) latest.current.halt();
    };
    addEventListener("operant:command", run);
    addEventListener("keydown", escape);
    return () => (removeEventListener("operant:command", run), removeEventListener("keydown", escape));
  }, []);
}
