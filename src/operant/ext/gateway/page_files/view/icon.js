// @ts-check
import { html } from "../vendor/preact.js";

/** One of the line icons in icons.svg; with a label it is read out. @param {{name: string, label?: string, size?: number}} props */
export function Icon({ name, label, size = 16 }) {
  const said = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return html`<svg class="icon" width=${size} height=${size} ...${said}><use href=${`/page/icons.svg#${name}`} /></svg>`;
}
