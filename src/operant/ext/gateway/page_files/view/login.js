// @ts-check
import { html, useState } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { Copy } from "./code.js";

/** What somebody sees whom the server does not know. @param {{done: () => void}} props */
export function Login({ done }) {
  const [token, set] = useState("");
  const [error, say] = useState(/** @type {any} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await api.post("/api/login", token.startsWith("opr_") ? { token: token.trim() } : { code: token.trim().replace(/^.*login=/, "") });
      done();
    } catch (caught) {
      say(caught);
    }
  };
  return html`<main class="login" id="main">
    <h1>Operant</h1>
    <p>This browser is not logged in. On the machine where Operant runs, type</p>
    <p class="command"><code>operant open</code><${Copy} text="operant open" /></p>
    <p>and open the link that it prints. It works once.</p>
    <form onSubmit=${submit} class="stack">
      <label>Or paste a link, or an admin token
        <input type="password" autocomplete="off" value=${token} onInput=${(/** @type {any} */ event) => set(event.target.value)} /></label>
      ${error && html`<p class="bad" role="alert">${error.message}</p>`}
      <button class="primary" disabled=${!token.trim()}>Log in</button>
    </form>
  </main>`;
}
