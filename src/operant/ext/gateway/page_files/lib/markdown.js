// @ts-check
// Markdown as elements. No HTML is ever made of it: what a model writes is text, whatever it looks like.

import { html } from "../vendor/preact.js";
import { marked } from "../vendor/marked.js";
import { Code } from "../view/code.js";

const SAFE = /^(https?:|mailto:)/i;

/** @param {string} text */
export function markdown(text) {
  return blocks(marked.lexer(text, { gfm: true, breaks: false }));
}

/** @param {any[]} tokens @returns {any} */
function blocks(tokens) {
  return tokens.map(block);
}

/** @param {any} token @returns {any} */
function block(token) {
  switch (token.type) {
    case "space": case "def": return null;
    case "heading": return html`<${`h${Math.min(6, token.depth + 2)}`} class="md-h${token.depth}">${inline(token.tokens)}<//>`;
    case "paragraph": return html`<p>${inline(token.tokens)}</p>`;
    case "text": return token.tokens ? html`<p>${inline(token.tokens)}</p>` : html`<p>${unescaped(token.text)}</p>`;
    case "code": return html`<${Code} code=${token.text} language=${(token.lang || "").split(/\s/)[0]} />`;
    case "blockquote": return html`<blockquote>${blocks(token.tokens)}</blockquote>`;
    case "hr": return html`<hr />`;
    case "list": return list(token);
    case "table": return table(token);
    default: return html`<p class="raw">${token.raw}</p>`;
  }
}

/** @param {any} token */
function list(token) {
  const items = token.items.map((/** @type {any} */ item) => html`<li class=${item.task ? "task" : ""}>
    ${item.task && html`<input type="checkbox" checked=${item.checked} disabled aria-label=${item.checked ? "done" : "open"} />`}
    ${token.loose ? blocks(item.tokens.filter(shown)) : tight(item.tokens.filter(shown))}</li>`);
  return token.ordered ? html`<ol start=${token.start || 1}>${items}</ol>` : html`<ul>${items}</ul>`;
}

/** marked says the box of a task as a token of its own; ours is an element already. @param {any} token */
const shown = (token) => token.type !== "checkbox";

/** @param {any[]} tokens */
function tight(tokens) {
  return tokens.map((token) => (token.type === "text" ? (token.tokens ? inline(token.tokens.filter(shown)) : unescaped(token.text)) : block(token)));
}

/** @param {any} token */
function table(token) {
  const align = (/** @type {number} */ at) => token.align[at] ? `align-${token.align[at]}` : "";
  return html`<div class="md-table" tabindex="0"><table>
    <thead><tr>${token.header.map((/** @type {any} */ cell, /** @type {number} */ at) => html`<th class=${align(at)}>${inline(cell.tokens)}</th>`)}</tr></thead>
    <tbody>${token.rows.map((/** @type {any} */ row) => html`<tr>${row.map((/** @type {any} */ cell, /** @type {number} */ at) => html`<td class=${align(at)}>${inline(cell.tokens)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** @param {any[]} tokens @returns {any} */
function inline(tokens) {
  return (tokens || []).map(span);
}

/** @param {any} token @returns {any} */
function span(token) {
  switch (token.type) {
    case "strong": return html`<strong>${inline(token.tokens)}</strong>`;
    case "em": return html`<em>${inline(token.tokens)}</em>`;
    case "del": return html`<del>${inline(token.tokens)}</del>`;
    case "codespan": return html`<code>${token.text}</code>`;
    case "br": return html`<br />`;
    case "link": return link(token);
    case "image": return html`<span class="image-text" title="Images from elsewhere are not loaded.">[image: ${unescaped(token.text) || "no words"} — ${token.href}]</span>`;
    case "escape": return token.text;
    case "text": return token.tokens ? inline(token.tokens) : unescaped(token.text);
    default: return token.raw;
  }
}

/** A link is followed only where the person can see that it leads elsewhere. @param {any} token */
function link(token) {
  if (!SAFE.test(token.href)) return html`<span class="dead-link" title="This address is not followed.">${inline(token.tokens)} (${token.href})</span>`;
  return html`<a href=${token.href} target="_blank" rel="noopener noreferrer" title=${token.href}>${inline(token.tokens)}</a>`;
}

const NAMED = /** @type {Record<string, string>} */ ({ "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" });

/** The lexer writes some letters as HTML would; here they are only letters. @param {string} text */
function unescaped(text) {
  return (text || "").replace(/&(?:amp|lt|gt|quot|#39);/g, (name) => NAMED[name]);
}
