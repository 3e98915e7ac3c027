// @ts-check
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { loadModels } from "../lib/load.js";
import { go } from "../lib/route.js";
import { attempt, dress, say, shell, useStore } from "../lib/store.js";
import { Icon } from "./icon.js";

/** Every place and command, found by a few letters. @param {{route: any, close: () => void}} props */
export function Palette({ route, close }) {
  const state = useStore(shell);
  const [query, set] = useState("");
  const [at, point] = useState(0);
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const before = /** @type {any} */ (document.activeElement);
    box.current?.showModal();
    return () => before?.focus?.();
  }, []);
  const all = useMemo(() => entries(state, route), [state.sessions, state.models, route.key]);
  const found = useMemo(() => matching(all, query).slice(0, 12), [all, query]);
  const run = (/** @type {any} */ entry) => (close(), entry?.run());
  const key = (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) event.preventDefault(), point((at + step + found.length) % Math.max(1, found.length));
    if (event.key === "Enter") event.preventDefault(), run(found[at]);
  };
  return html`<dialog class="palette" ref=${box} aria-label="Commands" onCancel=${close} onClick=${(/** @type {any} */ event) => event.target === box.current && close()}>
    <div class="dialog">
      <label class="side-search"><${Icon} name="search" /><span class="hidden">Find a command, a session or a model</span>
        <input role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${found.length ? `palette-${at}` : null} autofocus
          placeholder="Find a command, a session or a model" value=${query} onKeyDown=${key}
          onInput=${(/** @type {any} */ event) => (set(event.target.value), point(0))} /></label>
      <ul id="palette-list" role="listbox" aria-label="Commands">${found.map((entry, index) => html`<li id=${`palette-${index}`} role="option" aria-selected=${index === at}
        onPointerEnter=${() => point(index)} onClick=${() => run(entry)}><${Icon} name=${entry.icon} /><span>${entry.text}</span><span class="muted">${entry.kind}</span></li>`)}</ul>
      ${!found.length && html`<p class="muted pad">Nothing is called so.</p>`}
    </div></dialog>`;
}

/** @param {any} state @param {any} route */
function entries(state, route) {
  const here = (/** @type {string} */ command) => () => dispatchEvent(new CustomEvent("operant:command", { detail: command }));
  const places = [["new", "plus", "New session"], ["activity", "activity", "Activity"], ["usage", "chart-column", "Usage"], ["approvals", "hand", "Approvals"],
    ["agents", "bot", "Agents"], ["skills", "scroll-text", "Skills"], ["services", "layers", "Services"], ["tools", "wrench", "Tools"], ["models", "cpu", "Models"], ["system", "gauge", "System"]];
  const chat = route.name !== "s" ? [] : [["stop", "circle-stop", "Stop the turn"], ["rename", "pencil", "Rename this session"], ["archive", "archive", "Archive this session"],
    ["export", "download", "Export this session"], ["fork", "git-fork", "Copy this session"], ["clear", "rotate-ccw", "Begin this session anew"], ["deep", "layers", "Switch deep work on or off"]];
  const themes = [["system", "monitor"], ["light", "sun"], ["dark", "moon"]];
  const models = (state.models?.pinned || []).map((/** @type {any} */ one) => ({ icon: "cpu", kind: "model", text: `Use ${one.model}`,
    run: async () => { if (await attempt(api.post("/api/models/select", { provider: one.provider, model_id: one.id }))) say(`${one.model} answers from now on.`), loadModels(); } }));
  return [
    ...chat.map(([command, icon, text]) => ({ icon, text, kind: "here", run: here(command) })),
    ...places.map(([key, icon, text]) => ({ icon, text, kind: "go to", run: () => go(key) })),
    ...themes.map(([key, icon]) => ({ icon, text: `Theme: ${key}`, kind: "look", run: () => dress(key) })),
    ...models,
    ...state.sessions.map((/** @type {any} */ one) => ({ icon: "message-square", kind: "session", text: one.title || one.preview || one.session_id, run: () => go("s", one.session_id) })),
  ];
}

/** Keep what has all letters in their order, the closest together first. @param {any[]} all @param {string} query */
function matching(all, query) {
  const wanted = query.toLowerCase().replace(/\s+/g, "");
  if (!wanted) return all;
  /** @type {[number, any][]} */
  const scored = [];
  for (const entry of all) {
    const text = entry.text.toLowerCase();
    let place = -1;
    let gaps = 0;
    for (const letter of wanted) {
      const next = text.indexOf(letter, place + 1);
      if (next < 0) { gaps = -1; break; }
      gaps += next - place - 1;
      place = next;
    }
    if (gaps >= 0) scored.push([gaps, entry]);
  }
  return scored.sort((one, two) => one[0] - two[0]).map(([, entry]) => entry);
}
