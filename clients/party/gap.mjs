// Tests how the client handles lost messages: a mock server skips events, and the client must request the state.
//
//   node gap.mjs

import assert from "node:assert/strict";
import { WebSocketServer } from "ws";
import { Client } from "./client.mjs";

const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
const requests = [];
server.on("connection", (socket) => {
  const send = (message) => socket.send(JSON.stringify(message));
  socket.on("message", (data) => {
    const { type } = JSON.parse(data.toString());
    requests.push(type);
    if (type === "JOIN_ROOM") {
      send({ type: "JOIN_OK", payload: { is_master: false, state: { sequence: 3 } } });
      send({ type: "PING", payload: { sequence: 3 } });
      send({ type: "START_VOTE", sequence: 4, payload: {} });
      send({ type: "PING", payload: { sequence: 4 } });
      // An event that the client never receives.
      send({ type: "PING", payload: { sequence: 6 } });
    }
    if (type === "REQUEST_SYNC") {
      send({ type: "STATE_SYNC_RESPONSE", payload: { sequence: 6 } });
      send({ type: "PING", payload: { sequence: 6 } });
      // A failover lost events. The state is authoritative; later sequences are new events.
      send({ type: "STATE_SYNC_RESPONSE", payload: { sequence: 5 } });
      send({ type: "PING", payload: { sequence: 5 } });
      send({ type: "GAME_START", sequence: 6, payload: {} });
    }
  });
});
await new Promise((resolve) => server.once("listening", resolve));

const client = new Client(`http://127.0.0.1:${server.address().port}`, "phone");
await client.join("AB23CD");
await client.until("the last message", () => client.messages.some((message) => message.type === "GAME_START"));
assert.deepEqual(requests, ["JOIN_ROOM", "REQUEST_SYNC"], "it requests the state once, after the gap");
assert.equal(client.sequence, 6);
console.log("held after a gap");
process.exit(0);
