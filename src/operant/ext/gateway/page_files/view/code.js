// @ts-check
import { html, useState } from "../vendor/preact.js";
import { highlight } from "../lib/highlight.js";
import { Icon } from "./icon.js";

/** A block of code with its colours and a way to copy it. @param {{code: string, language?: string}} props */
export function Code({ code, language = "" }) {
  return html`<figure class="code">
    <figcaption><span>${language || "text"}</span><${Copy} text=${code} /></figcaption>
    <pre tabindex="0"><code>${colours(code, language)}</code></pre>
  </figure>`;
}

/** @param {string} code @param {string} language */
export function colours(code, language) {
  return highlight(code, language).map(([kind, text]) => (kind ? html`<span class=${`hl-${kind}`}>${text}</span>` : text));
}

/** @param {{text: string, label?: string}} props */
export function Copy({ text, label = "Copy" }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<button type="button" class="quiet small" onClick=${copy} title=${label} aria-label=${done ? "Copied" : label}>
    <${Icon} name=${done ? "check" : "copy"} size=${14} /></button>`;
}
