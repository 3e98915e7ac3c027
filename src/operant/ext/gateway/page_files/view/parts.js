// @ts-check
// Pieces that every view is made of.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { shell } from "../lib/store.js";
import { Icon } from "./icon.js";

/** A view with its title, what can be done on it, and a sentence about it. @param {any} props */
export function View({ title, about, actions, children, wide }) {
  useEffect(() => void (document.title = `${title} · Operant`), [title]);
  return html`<section class=${`view ${wide ? "wide" : ""}`} aria-labelledby="view-title">
    <header class="view-head">
      <${Drawer} />
      <div><h1 id="view-title">${title}</h1>${about && html`<p class="muted">${about}</p>`}</div>
      <div class="actions">${actions}</div>
    </header>
    <div class="view-body">${children}</div>
  </section>`;
}

/** The button that opens the list of sessions on a narrow screen. */
export function Drawer() {
  return html`<button type="button" class="quiet drawer-button" aria-label="Open the menu" onClick=${() => shell.set({ drawer: true })}>
    <${Icon} name="menu" size=${18} /></button>`;
}

/** What came, or why it did not. @param {{state: {data: any, error: any, again: () => void}, children: (data: any) => any}} props */
export function Loaded({ state, children }) {
  if (state.error) return html`<${Problem} error=${state.error} again=${state.again} />`;
  if (state.data === null) return html`<p class="loading" role="status"><${Icon} name="loader-circle" /> Loading</p>`;
  return children(state.data);
}

/** @param {{error: any, again?: () => void}} props */
export function Problem({ error, again }) {
  return html`<div class="problem" role="alert"><${Icon} name="triangle-alert" />
    <div><strong>${error.detail || error.message || String(error)}</strong>${error.hint && html`<p>${error.hint}</p>`}</div>
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}</div>`;
}

/** Where nothing is yet: what it would be, and how to get it. @param {any} props */
export function Empty({ icon, title, children }) {
  return html`<div class="empty"><${Icon} name=${icon} size=${28} /><h2>${title}</h2><div class="muted">${children}</div></div>`;
}

/**
 * Things in rows; the cells of a column named in `right` stand under each other by their last digit. On a narrow screen a row is a
 * block with a line a cell, but for tables that are mostly figures. The roles are what tables have, which other layouts take away.
 * @param {any} props
 */
export function Table({ head, rows, right = [], label }) {
  const side = (/** @type {number} */ at) => (right.includes(at) ? "right" : "");
  return html`<div class=${right.length > 2 ? "table" : "table blocks"} tabindex="0" role="region" aria-label=${label}><table role="table">
    <thead role="rowgroup"><tr role="row">${head.map((/** @type {any} */ cell, /** @type {number} */ at) => html`<th class=${side(at)} scope="col" role="columnheader">${cell}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map((/** @type {any[]} */ row) => html`<tr role="row">${row.map((cell, at) => html`<td class=${side(at)} role="cell" data-head=${head[at]}>${cell}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** A dialog over the page; Escape and a click beside it close it. @param {any} props */
export function Dialog({ title, close, children }) {
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const before = /** @type {any} */ (document.activeElement);
    box.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${box} aria-label=${title} onCancel=${close} onClick=${(/** @type {any} */ event) => event.target === box.current && close()}>
    <div class="dialog"><header><h2>${title}</h2><button type="button" class="quiet" aria-label="Close" onClick=${close}><${Icon} name="x" /></button></header>${children}</div>
  </dialog>`;
}

/** Ask for one line. @param {{title: string, label: string, value?: string, done: (value: string) => void, close: () => void}} props */
export function Ask({ title, label, value = "", done, close }) {
  const [text, set] = useState(value);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    close();
    done(text.trim());
  };
  return html`<${Dialog} title=${title} close=${close}><form onSubmit=${submit} class="stack">
    <label>${label}<input value=${text} autofocus onInput=${(/** @type {any} */ event) => set(event.target.value)} /></label>
    <div class="actions"><button type="button" onClick=${close}>Cancel</button><button class="primary" disabled=${!text.trim()}>OK</button></div>
  </form><//>`;
}

/** Ask for a yes before something that cannot be undone. @param {any} props */
export function Confirm({ title, words, yes, done, close }) {
  return html`<${Dialog} title=${title} close=${close}><p>${words}</p>
    <div class="actions"><button type="button" onClick=${close}>Cancel</button>
    <button type="button" class="danger" autofocus onClick=${() => (close(), done())}>${yes}</button></div><//>`;
}

/** A few things to do, behind one button. @param {{label: string, items: ({icon: string, text: string, run: () => void, tone?: string}|null)[]}} props */
export function Menu({ label, items }) {
  const [open, set] = useState(false);
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    if (!open) return;
    const away = (/** @type {any} */ event) => box.current?.contains(event.target) || set(false);
    const escape = (/** @type {any} */ event) => event.key === "Escape" && (event.stopPropagation(), set(false));
    addEventListener("pointerdown", away);
    addEventListener("keydown", escape, true);
    box.current?.querySelector('[role="menuitem"]')?.focus();
    return () => (removeEventListener("pointerdown", away), removeEventListener("keydown", escape, true));
  }, [open]);
  const move = (/** @type {any} */ event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const all = [...box.current.querySelectorAll('[role="menuitem"]')];
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length]?.focus();
  };
  return html`<div class="menu" ref=${box}>
    <button type="button" class="quiet" aria-haspopup="menu" aria-expanded=${open} aria-label=${label} title=${label} onClick=${() => set(!open)}><${Icon} name="ellipsis" /></button>
    ${open && html`<div role="menu" aria-label=${label} onKeyDown=${move}>${items.map((item) => item && html`<button type="button" role="menuitem" class=${item.tone || ""}
      onClick=${() => (set(false), item.run())}><${Icon} name=${item.icon} />${item.text}</button>`)}</div>`}
  </div>`;
}

/** One of a few, side by side. @param {any} props */
export function Choice({ label, value, options, change }) {
  return html`<div class="choice" role="radiogroup" aria-label=${label}>${options.map((/** @type {[string, string]} */ [key, text]) => html`<button type="button"
    role="radio" aria-checked=${key === value} onClick=${() => change(key)}>${text}</button>`)}</div>`;
}

/** A word about how something stands. @param {{tone?: string, children: any}} props */
export function Tag({ tone = "", children }) {
  return html`<span class=${`tag ${tone}`}>${children}</span>`;
}
