// @ts-check
// One tool call, folded: what it was asked, what it puts out while it runs, how it ended.

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { diff, folded } from "../lib/diff.js";
import { brief, duration, filesOf, wordsOf } from "../lib/format.js";
import { Code, Copy, colours } from "./code.js";
import { Icon } from "./icon.js";
import { Files } from "./turn.js";

const ICONS = /** @type {Record<string, string>} */ ({ shell: "terminal", start_process: "terminal", read_file: "file", write_file: "file-diff", edit_file: "file-diff", edit_files: "file-diff",
  apply_patch: "file-diff", web_fetch: "globe", web_search: "search", search_files: "search", list_files: "folder", generate_image: "image", send_file: "upload" });
const OUTCOMES = /** @type {Record<string, [string, string]>} */ ({ ok: ["circle-check", "done"], error: ["circle-x", "failed"], denied: ["hand", "not allowed"], interrupted: ["triangle-alert", "interrupted"],
  cancelled: ["circle-stop", "stopped"], timeout: ["clock", "timed out"] });
const LONG = 20_000;

/** @param {{entry: any, session: string}} props */
export function Tool({ entry, session }) {
  const [icon, said] = OUTCOMES[entry.outcome] || ["loader-circle", "running"];
  const text = wordsOf(entry.parts);
  // What a change puts aside is there to undo it, not to be looked at.
  const kept = ICONS[entry.name] === "file-diff" ? [] : (entry.artifacts || []).filter((/** @type {any} */ one) => one.name);
  const files = [...filesOf(entry.parts), ...kept];
  return html`<details class=${`tool ${entry.outcome || "running"}`} data-seq=${entry.seq} open=${entry.outcome ? undefined : Boolean(entry.live)}>
    <summary><${Icon} name=${ICONS[entry.name] || "wrench"} size=${15} /><span class="tool-name">${entry.name}</span>
      <span class="tool-brief">${brief(entry.input)}</span>
      <span class="tool-time">${entry.outcome ? duration(entry.duration) : ""}</span>
      <span class="tool-state"><${Icon} name=${icon} label=${said} size=${15} /></span></summary>
    <div class="tool-body">
      <${Arguments} name=${entry.name} input=${entry.input} />
      ${!entry.outcome && entry.live && html`<${Output} text=${entry.live} live=${true} />`}
      ${entry.outcome && text && html`<${Output} text=${text} />`}
      ${entry.outcome && !text && !files.length && html`<p class="muted">It gave nothing back.</p>`}
      <${Files} files=${files} session=${session} />
    </div></details>
    ${entry.outcome && html`<${Files} files=${filesOf(entry.parts).filter((/** @type {any} */ one) => (one.media_type || "").startsWith("image/"))} session=${session} />`}`;
}

/** What a call was asked: a change as a difference, a command as a command, everything else by name. @param {{name: string, input: any}} props */
export function Arguments({ name, input }) {
  if (name === "edit_file") return html`<${Change} path=${input.path} before=${input.old} after=${input.new} />`;
  if (name === "edit_files" && Array.isArray(input.edits)) return input.edits.map((/** @type {any} */ one) => html`<${Change} path=${one.path} before=${one.old} after=${one.new} />`);
  if (name === "write_file") return html`<${Change} path=${input.path} before="" after=${input.content} />`;
  if (name === "apply_patch") return html`<${Code} code=${input.patch || ""} language="diff" />`;
  if (name === "shell" && input.command) return html`<${Code} code=${input.command} language="sh" /><${Named} input=${{ ...input, command: null }} />`;
  return html`<${Named} input=${input} />`;
}

/** @param {{input: any}} props */
function Named({ input }) {
  const items = Object.entries(input || {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!items.length) return null;
  return html`<dl class="named">${items.map(([name, value]) => html`<div><dt>${name}</dt><dd><pre>${typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre></dd></div>`)}</dl>`;
}

/** @param {{path: string, before: string, after: string}} props */
function Change({ path, before = "", after = "" }) {
  const lines = before ? folded(diff(before, after)) : after.split("\n").map((text) => ({ sign: "+", text }));
  return html`<figure class="code diff"><figcaption><span>${path}</span><${Copy} text=${after} /></figcaption>
    <pre tabindex="0">${lines.slice(0, 600).map((line) => html`<span class=${`line line-${NAMES[line.sign]}`}>${line.sign === "=" ? " " : line.sign} ${line.text}\n</span>`)}</pre></figure>`;
}

const NAMES = /** @type {Record<string, string>} */ ({ "+": "plus", "-": "minus", "=": "same", "@": "skip" });

/** What it put out; while it runs, the end of it. @param {{text: string, live?: boolean}} props */
function Output({ text, live = false }) {
  const box = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => { if (live && box.current) box.current.scrollTop = box.current.scrollHeight; }, [text]);
  const shown = text.length > LONG ? `${text.slice(0, LONG)}\n… ${text.length - LONG} more characters` : text;
  return html`<figure class=${`code output ${live ? "live" : ""}`}><figcaption><span>${live ? "output so far" : "result"}</span><${Copy} text=${text} /></figcaption>
    <pre ref=${box} tabindex="0">${live ? shown : colours(shown, looksLikeDiff(shown) ? "diff" : "")}</pre></figure>`;
}

/** @param {string} text */
function looksLikeDiff(text) {
  return /^(--- |\+\+\+ |@@ )/m.test(text.slice(0, 2000));
}
