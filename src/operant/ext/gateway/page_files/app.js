// @ts-check
// Where the page begins: who is here, what is looked at, and the keys that work everywhere.

import { html, render, useEffect, useState } from "./vendor/preact.js";
import { api, onShutOut } from "./lib/api.js";
import { Live } from "./lib/live.js";
import { attempt, dress, shell, useStore } from "./lib/store.js";
import { go, parse } from "./lib/route.js";
import { loadApprovals, loadSessions, loadShell } from "./lib/load.js";
import { Activity } from "./view/activity.js";
import { Agents } from "./view/agents.js";
import { Approvals } from "./view/approvals.js";
import { Chat } from "./view/chat.js";
import { Login } from "./view/login.js";
import { Models } from "./view/models.js";
import { Palette } from "./view/palette.js";
import { Services } from "./view/services.js";
import { Sidebar } from "./view/sidebar.js";
import { Skills } from "./view/skills.js";
import { System } from "./view/system.js";
import { Tools } from "./view/tools.js";
import { Trace } from "./view/trace.js";
import { Usage } from "./view/usage.js";

const VIEWS = /** @type {Record<string, any>} */ ({
  s: Chat, new: Chat, trace: Trace, activity: Activity, usage: Usage, approvals: Approvals, agents: Agents, skills: Skills, services: Services,
  tools: Tools, models: Models, system: System,
});

function App() {
  const [route, change] = useState(parse());
  const [out, shut] = useState(false);
  const state = useStore(shell);
  useEffect(() => {
    const moved = () => (change(parse()), shell.set({ drawer: false }));
    addEventListener("hashchange", moved);
    const off = onShutOut(() => shut(true));
    return () => (removeEventListener("hashchange", moved), void off());
  }, []);
  useEffect(() => void (out || loadShell()), [out]);
  useEffect(() => (out || !state.me ? undefined : watch()), [out, Boolean(state.me)]);
  useEffect(() => keys(), []);
  if (out) return html`<${Login} done=${() => shut(false)} />`;
  if (!state.me) return html`<div class="boot"><span class="mark" aria-hidden="true"></span><p role="status">Operant</p></div>`;
  const Shown = VIEWS[route.name] || Chat;
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {any} */ event) => (event.preventDefault(), document.getElementById("main")?.focus())}>Go to the content</a>
    <${Sidebar} route=${route} />
    <main id="main" tabindex="-1">
      ${state.line === "lost" && html`<p class="offline" role="status">The connection is lost. Trying again; what you send is kept until then.</p>`}
      <${Shown} key=${route.key} route=${route} />
    </main>
    ${state.palette && html`<${Palette} route=${route} close=${() => shell.set({ palette: false })} />`}
    <div class="toasts" aria-live="polite">${state.toast && html`<p class=${`toast ${state.toast.tone}`} role=${state.toast.tone === "bad" ? "alert" : "status"}>${state.toast.text}</p>`}</div>`;
}

/** Follow everything that goes on, so that lists are as they are now. */
function watch() {
  let since = 0;
  let due = 0;
  const soon = () => {
    clearTimeout(due);
    due = setTimeout(loadSessions, 150);
  };
  const live = new Live(
    () => `/ws/activity${since ? `?since=${since}` : ""}`,
    (frame) => {
      since = frame.at || since;
      if (frame.type.startsWith("approval")) loadApprovals();
      if (["turn_started", "turn_ended", "message"].includes(frame.type)) soon();
      dispatchEvent(new CustomEvent("operant:activity", { detail: frame }));
    },
    (line) => {
      if (line === "open" && shell.value.line === "lost") loadShell();
      shell.set({ line });
    },
  );
  return () => (clearTimeout(due), live.close());
}

/** The keys that work everywhere. */
function keys() {
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const command = event.metaKey || event.ctrlKey;
    if (command && event.key.toLowerCase() === "k") {
      event.preventDefault();
      shell.set({ palette: !shell.value.palette });
    } else if (command && event.shiftKey && event.key.toLowerCase() === "o") {
      event.preventDefault();
      go("new");
    } else if (event.key === "/" && !typing(event)) {
      event.preventDefault();
      dispatchEvent(new CustomEvent("operant:slash"));
    }
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

/** @param {KeyboardEvent} event */
function typing(event) {
  const there = /** @type {HTMLElement} */ (event.target);
  return there.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(there.tagName);
}

/** A login link brings its code behind the #, where no server and no log sees it. */
async function enter() {
  const code = location.hash.match(/^#login=([\w-]+)$/)?.[1];
  if (code) {
    history.replaceState(null, "", "/");
    await attempt(api.post("/api/login", { code }));
  }
  const place = document.getElementById("app");
  if (!place) return;
  place.textContent = "";
  render(html`<${App} />`, place);
}

dress(shell.value.theme);
enter();
