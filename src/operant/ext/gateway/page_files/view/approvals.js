// @ts-check
import { html } from "../vendor/preact.js";
import { api } from "../lib/api.js";
import { loadApprovals } from "../lib/load.js";
import { path } from "../lib/route.js";
import { attempt, shell, useStore } from "../lib/store.js";
import { Approval } from "./approval.js";
import { Empty, View } from "./parts.js";

export function Approvals() {
  const state = useStore(shell);
  const answer = async (/** @type {any} */ reply) => {
    await attempt(api.post(`/api/approvals/${reply.id}`, { answer: reply.answer, scope: reply.scope, reason: reply.reason }));
    loadApprovals();
  };
  return html`<${View} title="Approvals" about="Calls that wait for your yes. An answer holds for exactly these arguments.">
    ${state.approvals.length ? state.approvals.map((one) => html`<${Approval} key=${one.approval_id} answer=${answer} where=${html`<a class="muted" href=${path("s", one.session)}>${one.session}</a>`}
        entry=${{ id: one.approval_id, name: one.name, input: one.arguments, question: one.question, expires: one.expires, answer: "" }} />`)
      : html`<${Empty} icon="hand" title="Nothing waits for you">When an agent wants to do what you must decide, it is asked here, in the session and in your terminal.<//>`}<//>`;
}
