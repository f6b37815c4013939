// What a client does when something got lost on its way: a server that plays dumb, and the client that asks again.
//
//   node gap.mjs

import assert from "node:assert/strict";
import { WebSocketServer } from "ws";
import { Client } from "./client.mjs";

const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
const asked = [];
server.on("connection", (socket) => {
  const say = (message) => socket.send(JSON.stringify(message));
  socket.on("message", (data) => {
    const { type } = JSON.parse(data.toString());
    asked.push(type);
    if (type === "JOIN_ROOM") {
      say({ type: "JOIN_OK", payload: { is_master: false, state: { sequence: 3 } } });
      say({ type: "PING", payload: { sequence: 3 } });
      say({ type: "START_VOTE", sequence: 4, payload: {} });
      say({ type: "PING", payload: { sequence: 4 } });
      // An event of which the client never hears.
      say({ type: "PING", payload: { sequence: 6 } });
    }
    if (type === "REQUEST_SYNC") {
      say({ type: "STATE_SYNC_RESPONSE", payload: { sequence: 6 } });
      say({ type: "PING", payload: { sequence: 6 } });
      // A failover lost events: the state counts, and what follows is new.
      say({ type: "STATE_SYNC_RESPONSE", payload: { sequence: 5 } });
      say({ type: "PING", payload: { sequence: 5 } });
      say({ type: "GAME_START", sequence: 6, payload: {} });
    }
  });
});
await new Promise((resolve) => server.once("listening", resolve));

const client = new Client(`http://127.0.0.1:${server.address().port}`, "phone");
await client.join("AB23CD");
await client.until("the last message", () => client.messages.some((message) => message.type === "GAME_START"));
assert.deepEqual(asked, ["JOIN_ROOM", "REQUEST_SYNC"], "it asks once, and only after the gap");
assert.equal(client.sequence, 6);
console.log("held after a gap");
process.exit(0);
