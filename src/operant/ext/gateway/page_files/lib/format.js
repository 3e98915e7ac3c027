// @ts-check
// Numbers, times and sizes as people read them.

/** @param {number} count */
export function number(count) {
  return Math.round(count).toLocaleString("en-US").replace(/,/g, "\u202f");
}

/** Say tokens in a few characters. @param {number} count */
export function short(count) {
  if (count < 1000) return String(Math.round(count));
  if (count < 1e6) return `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(count < 1e7 ? 2 : 1)}M`;
}

/** @param {number} usd */
export function money(usd) {
  if (!usd) return "$0";
  if (usd < 0.0001) return "<$0.0001";
  return usd < 0.1 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

/** @param {number} share */
export function percent(share) {
  return `${Math.round(share * 100)}%`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Say when something was, from microseconds. @param {number} at */
export function moment(at) {
  const date = new Date(at / 1000);
  const today = new Date();
  const clock = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  if (date.toDateString() === today.toDateString()) return clock;
  const day = date.toLocaleDateString([], { day: "numeric", month: "short" });
  return date.getFullYear() === today.getFullYear() ? `${day} ${clock}` : `${day} ${date.getFullYear()}`;
}

/** @param {number} at microseconds */
export function clock(at) {
  return new Date(at / 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

/** Say what a call is about in one line: its first argument, then the others by name. @param {any} input */
export function brief(input) {
  const items = Object.entries(input || {}).filter(([, value]) => value !== null && value !== "" && value !== false);
  if (!items.length) return "";
  const words = items.map(([name, value], at) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return at ? `${name}=${text}` : text;
  });
  return words.join(" ").replace(/\s+/g, " ").slice(0, 160);
}

/** @param {any[]} parts */
export function wordsOf(parts) {
  return (parts || []).filter((part) => part.type === "text").map((part) => part.text).join("");
}

/** @param {any[]} parts */
export function filesOf(parts) {
  return (parts || []).filter((part) => part.type === "blob");
}

/** Write out what cannot be seen, so that nothing hides in what a person is to decide about. @param {string} text */
export function exposed(text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu,
    (letter) => `\\u{${/** @type {number} */ (letter.codePointAt(0)).toString(16)}}`);
}
