// @ts-check
// The public HTTP interface, and nothing else: what this page can do, every program can.

export class ApiError extends Error {
  /** @param {number} status @param {string} detail @param {string} hint */
  constructor(status, detail, hint) {
    super(hint ? `${detail} ${hint}` : detail);
    this.status = status;
    this.detail = detail;
    this.hint = hint;
  }
}

/** @type {Set<() => void>} */
const shutOut = new Set();

/** Be told when the server no longer knows this browser. @param {() => void} call */
export function onShutOut(call) {
  shutOut.add(call);
  return () => shutOut.delete(call);
}

/**
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {{raw?: boolean, key?: string}} [options]
 * @returns {Promise<any>}
 */
async function request(method, path, body, options = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined && !options.raw) headers["Content-Type"] = "application/json";
  if (options.raw) headers["Content-Type"] = "application/octet-stream";
  if (options.key) headers["Idempotency-Key"] = options.key;
  let response;
  try {
    response = await fetch(path, { method, headers, body: options.raw ? body : body && JSON.stringify(body) });
  } catch {
    throw new ApiError(0, "Operant does not answer.", "Is it running? `operant serve` starts it.");
  }
  if (response.status === 401 && path !== "/api/login") shutOut.forEach((call) => call());
  const kind = response.headers.get("Content-Type") || "";
  const data = kind.includes("json") ? await response.json() : await response.text();
  if (!response.ok) throw new ApiError(response.status, data.detail || `Error ${response.status}.`, data.hint || "");
  return data;
}

export const api = {
  /** @param {string} path */
  get: (path) => request("GET", path),
  /** @param {string} path @param {any} [body] @param {string} [key] */
  post: (path, body = {}, key = "") => request("POST", path, body, { key }),
  /** @param {string} path @param {any} body */
  put: (path, body) => request("PUT", path, body),
  /** @param {string} path @param {any} body */
  patch: (path, body) => request("PATCH", path, body),
  /** @param {string} path */
  remove: (path) => request("DELETE", path),
  /** @param {string} session @param {File|Blob} file @param {string} name */
  upload: (session, file, name) =>
    request("POST", `${sessionPath(session)}/files?name=${encodeURIComponent(name)}`, file, { raw: true }),
};

/** @param {string} session */
export function sessionPath(session) {
  return `/api/sessions/${encodeURIComponent(session)}`;
}

/** @param {string} session @param {{digest: string}} blob */
export function filePath(session, blob) {
  return `${sessionPath(session)}/files/${blob.digest}`;
}

/** Make an id that nobody else makes. */
export function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
