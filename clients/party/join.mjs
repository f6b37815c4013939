// Joins a room and prints every message. Each typed line is sent as a message.
//
//   node join.mjs URL CODE [DEVICE] [MASTER_KEY]
//
// DEVICE is the id of a device that joined before; without one (or with "") a random id is generated and printed. The id is a secret.
//
//   TAKE_PLAYER {"player_id": "p1"}

import { createInterface } from "node:readline";
import { Client } from "./client.mjs";

const [url, code, device, key] = process.argv.slice(2);
if (!code) {
  console.error("usage: node join.mjs URL CODE [DEVICE] [MASTER_KEY]");
  process.exit(2);
}

const client = new Client(url, device || undefined);
if (!device) console.log(`this device is ${client.device}`);
client.socket.on("message", (data) => console.log(`<- ${data}`));
client.socket.on("close", (code, reason) => {
  console.log(`closed ${code} ${reason}`);
  process.exit(0);
});
await client.join(code, key);

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const [type, ...rest] = line.trim().split(" ");
  const payload = rest.join(" ") || "{}";
  if (type) client.socket.send(`{"type":${JSON.stringify(type)},"payload":${payload}}`);
});
lines.on("close", () => setTimeout(() => client.socket.close(1000), 200));
