// @ts-check
// A WebSocket that comes back by itself, and goes on where it was: nothing missed, nothing twice.

const FIRST_MS = 250;
const LONGEST_MS = 8000;
const PING_MS = 25_000;

export class Live {
  /**
   * @param {() => string} path where to connect now, with how far we are
   * @param {(frame: any) => void} take
   * @param {(state: "connecting"|"open"|"lost"|"closed") => void} told
   */
  constructor(path, take, told) {
    this.path = path;
    this.take = take;
    this.told = told;
    this.wait = FIRST_MS;
    /** @type {WebSocket|null} */
    this.socket = null;
    this.timer = 0;
    this.ping = 0;
    this.ended = false;
    /** @type {Map<string, any>} */
    this.unsent = new Map();
    this.wake = () => this.socket?.readyState === WebSocket.OPEN || this.again(0);
    addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.wake);
    this.connect();
  }

  connect() {
    if (this.ended) return;
    this.told("connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = (this.socket = new WebSocket(`${scheme}//${location.host}${this.path()}`));
    socket.onopen = () => {
      this.wait = FIRST_MS;
      this.told("open");
      for (const frame of this.unsent.values()) socket.send(JSON.stringify(frame));
      this.ping = setInterval(() => socket.send('{"type":"ping"}'), PING_MS);
    };
    socket.onmessage = (message) => {
      if (this.ended) return;
      const frame = JSON.parse(message.data);
      if (frame.id && (frame.type === "accepted" || frame.type === "error")) this.unsent.delete(frame.id);
      if (frame.type !== "pong") this.take(frame);
    };
    socket.onclose = () => {
      clearInterval(this.ping);
      if (this.socket !== socket || this.ended) return;
      this.told("lost");
      this.again(this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST_MS);
    };
  }

  /** @param {number} ms */
  again(ms) {
    if (this.ended || this.socket?.readyState === WebSocket.CONNECTING) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), ms * (0.5 + Math.random()));
  }

  /** Send a frame; one with an id is sent again until the server has said that it has it. @param {any} frame */
  send(frame) {
    if (frame.id) this.unsent.set(frame.id, frame);
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify(frame));
      return true;
    }
    return Boolean(frame.id);
  }

  close() {
    this.ended = true;
    clearTimeout(this.timer);
    clearInterval(this.ping);
    removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.wake);
    const socket = this.socket;
    if (socket?.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket?.close();
    this.told("closed");
  }
}
