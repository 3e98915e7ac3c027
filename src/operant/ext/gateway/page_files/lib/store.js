// @ts-check
// What the whole page knows, and who wants to be told when it changes.

import { useEffect, useState } from "../vendor/preact.js";

/** @template T */
export class Store {
  /** @param {T} value */
  constructor(value) {
    this.value = value;
    /** @type {Set<() => void>} */
    this.watchers = new Set();
  }

  /** @param {Partial<T>} change */
  set(change) {
    this.value = { ...this.value, ...change };
    this.watchers.forEach((call) => call());
  }
}

/** @template T @param {Store<T>} store @returns {T} */
export function useStore(store) {
  const [, again] = useState(0);
  useEffect(() => {
    const call = () => again((count) => count + 1);
    store.watchers.add(call);
    return () => void store.watchers.delete(call);
  }, [store]);
  return store.value;
}

/**
 * Fetch something when a part of the page appears, and again when it asks for it.
 * @param {() => Promise<any>} load @param {any[]} on
 * @returns {{data: any, error: any, again: () => void}}
 */
export function useLoaded(load, on) {
  const [state, change] = useState(/** @type {{data: any, error: any}} */ ({ data: null, error: null }));
  const [round, again] = useState(0);
  useEffect(() => {
    let here = true;
    load().then((data) => here && change({ data, error: null }), (error) => here && change({ data: null, error }));
    return () => void (here = false);
  }, [...on, round]);
  return { ...state, again: () => again((count) => count + 1) };
}

/**
 * Fetch something, and again a while after each answer as long as the page is looked at.
 * @param {() => Promise<any>} load @param {any[]} on @param {number} ms 0 for not again
 */
export function useFresh(load, on, ms) {
  const state = useLoaded(load, on);
  useEffect(() => {
    if (!ms || (state.data === null && !state.error)) return undefined;
    const next = () => (document.hidden ? document.addEventListener("visibilitychange", next, { once: true }) : state.again());
    const due = setTimeout(next, ms);
    return () => (clearTimeout(due), document.removeEventListener("visibilitychange", next));
  }, [state.data, state.error, ms]);
  return state;
}

const theme = () => localStorage.getItem("operant.theme") || "system";

export const shell = new Store({
  sessions: /** @type {any[]} */ ([]),
  more: 0,
  archived: false,
  me: /** @type {any} */ (null),
  status: /** @type {any} */ (null),
  models: /** @type {any} */ (null),
  agents: /** @type {any[]} */ ([]),
  approvals: /** @type {any[]} */ ([]),
  line: /** @type {"connecting"|"open"|"lost"|"closed"} */ ("connecting"),
  toast: /** @type {{text: string, tone: string}|null} */ (null),
  palette: false,
  drawer: false,
  theme: theme(),
});

let clearing = 0;

/** Say something for a moment. @param {string} text @param {string} tone */
export function say(text, tone = "") {
  clearTimeout(clearing);
  shell.set({ toast: { text, tone } });
  clearing = setTimeout(() => shell.set({ toast: null }), 6000);
}

/** Carry something out, and say what went wrong. @template T @param {Promise<T>} work @returns {Promise<T|undefined>} */
export async function attempt(work) {
  try {
    return await work;
  } catch (error) {
    say(String(/** @type {Error} */ (error).message || error), "bad");
    return undefined;
  }
}

/** @param {string} theme */
export function dress(theme) {
  localStorage.setItem("operant.theme", theme);
  document.documentElement.dataset.theme = theme === "system" ? "" : theme;
  shell.set({ theme });
}
