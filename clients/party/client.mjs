// One connection to a room: sends messages, stores received ones, and waits for expected ones.

import { webcrypto as crypto } from "node:crypto";
import WebSocket from "ws";

const WAIT_MS = 20_000;

export class Client {
  /** Everything that was received, in order. */
  messages = [];
  /** The last state that was received, in JOIN_OK or STATE_SYNC_RESPONSE. */
  state = null;
  /** The newest sequence that was received. */
  sequence = 0;
  /** How the connection ended. */
  closed = null;
  #waiting = new Set();

  /** A device id is a random secret. A client stores it together with `token`. */
  constructor(server, device = crypto.randomUUID(), token = undefined) {
    this.device = device;
    /** Proves the identity of the device when it joins again. Every JOIN_OK contains it. */
    this.token = token;
    this.socket = new WebSocket(server.replace(/^http/, "ws") + "/ws");
    this.opened = new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("error", reject);
    });
    this.socket.on("message", (data) => this.#receive(JSON.parse(data.toString())));
    this.socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
      this.#wake();
    });
    this.socket.on("error", () => {});
  }

  #receive(message) {
    this.messages.push(message);
    if (message.type === "JOIN_OK") {
      this.token = message.payload.reconnect_token;
      this.#setState(message.payload.state);
    }
    if (message.type === "STATE_SYNC_RESPONSE") this.#setState(message.payload);
    if (message.sequence !== undefined) this.sequence = message.sequence;
    // The server has sent events that did not arrive.
    if (message.type === "PING" && message.payload.sequence > this.sequence) this.send("REQUEST_SYNC");
    this.#wake();
  }

  /** The last state is authoritative, even with a smaller sequence: a failover may have lost events. */
  #setState(state) {
    this.state = state;
    this.sequence = state.sequence;
  }

  #wake() {
    for (const check of [...this.#waiting]) check();
  }

  send(type, payload = {}) {
    this.socket.send(JSON.stringify({ type, payload }));
  }

  /** Waits until `found` returns a value, and returns it. */
  until(what, found) {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = found();
        if (value === undefined || value === null || value === false) return;
        clearTimeout(timer);
        this.#waiting.delete(check);
        resolve(value);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(check);
        const last = JSON.stringify(this.messages.slice(-3));
        reject(new Error(`${this.device} waited for ${what}; the last messages were ${last}, closed: ${JSON.stringify(this.closed)}`));
      }, WAIT_MS);
      this.#waiting.add(check);
      check();
    });
  }

  /** Waits for a message of a type that arrives after this call, or after an index in the messages. */
  next(type, after = this.messages.length) {
    return this.until(type, () => this.messages.slice(after).find((message) => message.type === type));
  }

  /** Waits until the state satisfies a condition. */
  untilState(what, holds) {
    return this.until(what, () => this.state && holds(this.state) && this.state);
  }

  /** Sends, and waits for a message of one of these types. */
  async ask(type, payload, ...answers) {
    const after = this.messages.length;
    this.send(type, payload);
    return this.until(answers.join(" or "), () =>
      this.messages.slice(after).find((message) => answers.includes(message.type)),
    );
  }

  async join(room_code, master_key) {
    await this.opened;
    const payload = { room_code, device_id: this.device, protocol_version: 1 };
    if (master_key) payload.master_key = master_key;
    if (this.token) payload.reconnect_token = this.token;
    return this.ask("JOIN_ROOM", payload, "JOIN_OK", "ERROR");
  }

  end() {
    this.socket.close();
    return this.until("its end", () => this.closed);
  }
}

/** An HTTP request to a server. */
export async function post(server, path, body, headers = {}) {
  const response = await fetch(server + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}
