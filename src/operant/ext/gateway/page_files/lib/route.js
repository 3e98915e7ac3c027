// @ts-check
// Where we are: everything after the #, so that a link can be kept and the server need not know.

/** @typedef {{name: string, parts: string[], query: URLSearchParams, key: string}} Route */

/** @returns {Route} */
export function parse() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  const name = parts[0] || "new";
  return { name, parts: parts.slice(1), query: new URLSearchParams(query), key: name === "s" ? `s/${parts[1]}` : parts.join("/") || "new" };
}

/** @param {string[]} parts */
export function path(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** @param {string[]} parts */
export function go(...parts) {
  location.hash = path(...parts);
}
