// One connection to a room: sends messages, remembers what came, waits for what should come.

import { webcrypto as crypto } from "node:crypto";
import WebSocket from "ws";

const WAIT_MS = 20_000;

export class Client {
  /** Everything that was received, in order. */
  messages = [];
  /** The last state that was received, in JOIN_OK or STATE_SYNC_RESPONSE. */
  state = null;
  /** The newest sequence that is known of. */
  sequence = 0;
  /** How the connection ended. */
  closed = null;
  #waiting = new Set();

  /** The id of a device is a secret of the device: a random one, which a client stores together with `token`. */
  constructor(server, device = crypto.randomUUID(), token = undefined) {
    this.device = device;
    /** With it the device proves itself when it comes back. Every JOIN_OK brings it. */
    this.token = token;
    this.socket = new WebSocket(server.replace(/^http/, "ws") + "/ws");
    this.opened = new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("error", reject);
    });
    this.socket.on("message", (data) => this.#heard(JSON.parse(data.toString())));
    this.socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
      this.#wake();
    });
    this.socket.on("error", () => {});
  }

  #heard(message) {
    this.messages.push(message);
    if (message.type === "JOIN_OK") {
      this.token = message.payload.reconnect_token;
      this.#shown(message.payload.state);
    }
    if (message.type === "STATE_SYNC_RESPONSE") this.#shown(message.payload);
    if (message.sequence !== undefined) this.sequence = message.sequence;
    // It was sent more than it knows of.
    if (message.type === "PING" && message.payload.sequence > this.sequence) this.send("REQUEST_SYNC");
    this.#wake();
  }

  /** The last state counts, also where its sequence is smaller: then the room has less than it had. */
  #shown(state) {
    this.state = state;
    this.sequence = state.sequence;
  }

  #wake() {
    for (const look of [...this.#waiting]) look();
  }

  send(type, payload = {}) {
    this.socket.send(JSON.stringify({ type, payload }));
  }

  /** Waits until `found` gives something, and gives it. */
  until(what, found) {
    return new Promise((resolve, reject) => {
      const look = () => {
        const value = found();
        if (value === undefined || value === null || value === false) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(value);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        const last = JSON.stringify(this.messages.slice(-3));
        reject(new Error(`${this.device} waited for ${what}; the last messages were ${last}, closed: ${JSON.stringify(this.closed)}`));
      }, WAIT_MS);
      this.#waiting.add(look);
      look();
    });
  }

  /** Waits for a message of a type that comes after this call, or after a place in the messages. */
  next(type, after = this.messages.length) {
    return this.until(type, () => this.messages.slice(after).find((message) => message.type === type));
  }

  /** Waits until the state is as described. */
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

/** A request to a server's HTTP side. */
export async function post(server, path, body, headers = {}) {
  const response = await fetch(server + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}
