// @ts-check
// The place to say something: words, files, commands.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { size } from "../lib/format.js";
import { go } from "../lib/route.js";
import { attempt, shell, useStore } from "../lib/store.js";
import { Icon } from "./icon.js";

const COMMANDS = [
  ["stop", "Stop the turn"], ["new", "New session"], ["deep", "Switch deep work on or off"], ["model", "Choose the model, as provider/model"], ["rename", "Rename this session"],
  ["fork", "Copy this session"], ["archive", "Archive this session"], ["export", "Export this session"], ["clear", "Begin this session anew"], ["help", "Show the commands"],
];
const WAITING = /** @type {Record<string, string>} */ ({ steer: "joins the work at its next step", queue: "is answered after this", interrupt: "ends this turn and begins its own" });

/** @param {{session: string, working: boolean, actions: any, line: string, agent: string}} props */
export function Composer({ session, working, actions, line, agent }) {
  const kept = `operant.draft.${session.startsWith("web-") ? "new" : session}`;
  const [text, write] = useState(() => sessionStorage.getItem(kept) || "");
  const [files, attach] = useState(/** @type {any[]} */ ([]));
  const [later, queue] = useState(/** @type {() => {text: string, files: any[]}[]} */ (() => JSON.parse(localStorage.getItem(`${kept}.later`) || "[]")));
  const [over, hover] = useState(false);
  const [at, point] = useState(0);
  const state = useStore(shell);
  const box = useRef(/** @type {any} */ (null));
  const chooser = useRef(/** @type {any} */ (null));
  const arrival = state.agents.find((one) => one.name === (agent || state.status?.agent))?.arrival || "steer";
  const found = text.startsWith("/") && !text.includes(" ") && !text.includes("\n") ? COMMANDS.filter(([name]) => name.startsWith(text.slice(1))) : [];

  useEffect(() => sessionStorage.setItem(kept, text), [text]);
  useEffect(() => (later.length ? localStorage.setItem(`${kept}.later`, JSON.stringify(later)) : localStorage.removeItem(`${kept}.later`)), [later]);
  useLayoutEffect(() => {
    const area = box.current;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
  }, [text]);
  useEffect(() => {
    const slash = () => { write((before) => before || "/"); box.current?.focus(); };
    addEventListener("operant:slash", slash);
    if (matchMedia("(pointer: fine)").matches) box.current?.focus();
    return () => removeEventListener("operant:slash", slash);
  }, []);
  useEffect(() => {
    if (working || !later.length) return;
    const [first, ...rest] = later;
    queue(rest);
    actions.send(first.text, first.files);
  }, [working, later.length]);

  /** @param {Iterable<File>} chosen */
  const add = async (chosen) => {
    for (const file of chosen) {
      const mark = { name: file.name || "pasted.png", size: file.size, state: "sending" };
      attach((before) => [...before, mark]);
      const blob = await attempt(api.upload(session, file, mark.name));
      attach((before) => before.flatMap((one) => (one !== mark ? [one] : blob ? [blob] : [])));
    }
  };
  const send = (/** @type {boolean} */ wait) => {
    const words = text.trim();
    if (words.startsWith("/") && command(words)) return;
    const ready = files.filter((one) => one.digest);
    if ((!words && !ready.length) || files.some((one) => !one.digest)) return;
    if (wait && working) queue([...later, { text: words, files: ready }]);
    else actions.send(words, ready);
    write("");
    attach([]);
  };
  /** @param {string} words */
  const command = (words) => {
    const [name, ...rest] = words.slice(1).split(/\s+/);
    /** @type {Record<string, () => void>} */
    const table = { stop: actions.stop, new: () => go("new"), deep: actions.deepen, rename: actions.rename, fork: actions.fork, archive: actions.archive, export: actions.export,
      clear: actions.clear, help: () => shell.set({ palette: true }), model: () => (rest[0] ? actions.use(rest[0]) : document.getElementById("model")?.focus()) };
    if (!table[name]) return false;
    table[name]();
    write("");
    return true;
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (found.length && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      point((at + (event.key === "ArrowDown" ? 1 : -1) + found.length) % found.length);
    } else if (found.length && (event.key === "Tab" || event.key === "Enter")) {
      event.preventDefault();
      const name = found[Math.min(at, found.length - 1)][0];
      name === "model" ? write("/model ") : command(`/${name}`);
    } else if (event.key === "Escape" && text.startsWith("/")) {
      event.preventDefault();
      write("");
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send(event.altKey);
    }
  };
  const paste = (/** @type {ClipboardEvent} */ event) => {
    const pasted = [...(event.clipboardData?.files || [])];
    if (pasted.length) event.preventDefault(), add(pasted);
  };
  const drop = (/** @type {DragEvent} */ event) => { event.preventDefault(); hover(false); add([...(event.dataTransfer?.files || [])]); };
  return html`<form class=${`composer ${over ? "over" : ""}`} onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), send(false))}
      onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), hover(true))} onDragLeave=${() => hover(false)} onDrop=${drop}>
    ${found.length > 0 && html`<ul class="commands" role="listbox" aria-label="Commands">${found.map(([name, words], index) => html`<li role="option" aria-selected=${index === at} onClick=${() => (name === "model" ? write("/model ") : command(`/${name}`))}><code>/${name}</code><span class="muted">${words}</span></li>`)}</ul>`}
    ${later.map((one, index) => html`<p class="later"><${Icon} name="clock" size=${14} /><span>${one.text}</span><button type="button" class="quiet small" aria-label="Do not send it" onClick=${() => queue(later.filter((_, place) => place !== index))}><${Icon} name="x" size=${14} /></button></p>`)}
    ${files.length > 0 && html`<ul class="chips" aria-label="Attached">${files.map((file) => html`<li><${Icon} name=${(file.media_type || "").startsWith("image/") ? "image" : "file"} size=${14} />${file.name}<span class="muted">${file.digest ? size(file.size) : "sending"}</span>
      <button type="button" class="quiet small" aria-label=${`Remove ${file.name}`} onClick=${() => attach(files.filter((one) => one !== file))}><${Icon} name="x" size=${14} /></button></li>`)}</ul>`}
    <div class="composer-row">
      <input type="file" multiple hidden ref=${chooser} onChange=${(/** @type {any} */ event) => (add([...event.target.files]), (event.target.value = ""))} />
      <button type="button" class="quiet" aria-label="Attach files" title="Attach files (or drop, or paste them)" onClick=${() => chooser.current.click()}><${Icon} name="paperclip" size=${18} /></button>
      <label class="hidden" for="message">Message</label>
      <textarea id="message" ref=${box} rows="1" placeholder=${working ? `What you say now ${WAITING[arrival]}` : innerWidth < 500 ? "Say something" : "Say something, or / for commands"} value=${text} onKeyDown=${key} onPaste=${paste}
        onInput=${(/** @type {any} */ event) => (write(event.target.value), point(0))}></textarea>
      <button type="button" class=${`quiet ${actions.deep ? "on" : ""}`} aria-pressed=${actions.deep ? "true" : "false"} aria-label="Deep work" title="Deep work: long tasks on its own" onClick=${actions.deepen}><${Icon} name="layers" size=${18} /></button>
      ${working && text.trim() && arrival !== "queue" && html`<button type="button" class="quiet" title="Send it after this turn (Alt Enter)" aria-label="Send after this turn" onClick=${() => send(true)}><${Icon} name="clock" size=${18} /></button>`}
      ${working && !text.trim() && !files.length
        ? html`<button type="button" class="send stop" aria-label="Stop" title="Stop (Esc)" onClick=${actions.stop}><${Icon} name="square" size=${16} /></button>`
        : html`<button class="send" aria-label="Send" title="Send (Enter)" disabled=${!text.trim() && !files.length}><${Icon} name="arrow-up" size=${18} /></button>`}
    </div>
    ${line === "lost" && html`<p class="muted small" role="status">Not connected; what you send goes out when it is.</p>`}
  </form>`;
}

