// @ts-check
// What the frame of the page shows, fetched.

import { api } from "./api.js";
import { attempt, shell } from "./store.js";

const PAGE = 60;

/** Fetch everything that the frame shows. */
export async function loadShell() {
  const me = await attempt(api.get("/api/me"));
  if (!me) return;
  shell.set({ me });
  await Promise.all([loadSessions(), loadApprovals(), loadModels(), loadAgents(), loadStatus()]);
}

export async function loadSessions() {
  const archived = shell.value.archived;
  const count = Math.max(PAGE, Math.min(500, shell.value.sessions.length));
  const page = await attempt(api.get(`/api/sessions?limit=${count}&archived=${archived}`));
  if (page && archived === shell.value.archived) shell.set({ sessions: page.sessions, more: page.next || 0 });
}

/** Fetch older sessions too. */
export async function loadMore() {
  const { more, archived, sessions } = shell.value;
  const page = await attempt(api.get(`/api/sessions?limit=${PAGE}&before=${more}&archived=${archived}`));
  if (page) shell.set({ sessions: [...sessions, ...page.sessions], more: page.next || 0 });
}

export async function loadApprovals() {
  const approvals = await attempt(api.get("/api/approvals"));
  if (approvals) shell.set({ approvals });
}

export async function loadModels() {
  const models = await attempt(api.get("/api/models"));
  if (models) shell.set({ models });
}

export async function loadAgents() {
  const agents = await attempt(api.get("/api/agents"));
  if (agents) shell.set({ agents });
}

export async function loadStatus() {
  const status = await attempt(api.get("/api/status"));
  if (status) shell.set({ status });
}
