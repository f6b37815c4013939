// A complete game: a room is created, set up, joined from four devices, played for two rounds and closed.
//
//   node play.mjs http://127.0.0.1:7777                              one server
//   node play.mjs http://127.0.0.1:7777 http://127.0.0.1:7778        two servers on one store
//
// Exits with 0 if every message matches the protocol. Otherwise prints the first that does not.

import assert from "node:assert/strict";
import { Client, post } from "./client.mjs";

const servers = process.argv.slice(2).map((url) => url.replace(/\/$/, ""));
if (servers.length === 0) {
  console.error("usage: node play.mjs URL [URL…]");
  process.exit(2);
}
const server = (number) => servers[number % servers.length];

const SETUP = {
  senders: ["s1", "s2", "s3"].map((sender_id) => ({ sender_id, name: `Sender ${sender_id}`, reels_count: 2 })),
  players: ["p1", "p2", "p3", "p4"].map((player_id) => ({ player_id, name: `Player ${player_id}` })),
  rounds: [
    {
      round_id: "r1",
      items: [
        { item_id: "i1", reel_url: "https://reels.example/1", k: 1, true_sender_ids: ["s1"] },
        { item_id: "i2", reel_url: "https://reels.example/2", k: 2, true_sender_ids: ["s2", "s3"] },
      ],
    },
    { round_id: "r2", items: [{ item_id: "i1", reel_url: "https://reels.example/3", k: 1, true_sender_ids: ["s3"] }] },
  ],
};

const report = (text) => console.log(text);

/** Only the master may get votes or true senders before the reveal. */
function assertSecret(players, shown) {
  for (const player of players) {
    for (const message of player.messages) {
      const text = JSON.stringify(message);
      const isReveal = message.type === "VOTE_RESULTS" || text.includes('"revealed":{');
      assert.ok(shown || !text.includes("true_sender_ids"), `${player.device} received a true sender: ${text}`);
      assert.ok(isReveal || !text.includes('"selections"'), `${player.device} received a vote: ${text}`);
      for (const secret of ["players_all", "votes_received_player_ids", "current_vote_results", "PLAYER_VOTED"]) {
        assert.ok(!text.includes(secret), `${player.device} received ${secret}: ${text}`);
      }
    }
  }
}

async function create() {
  const created = await post(server(0), "/room", {});
  assert.equal(created.status, 201, JSON.stringify(created));
  const { room_code, master_key } = created.body;
  assert.match(room_code, /^[A-HJ-NP-Z2-9]{6}$/);
  const wrong = await post(server(0), `/room/${room_code}/setup`, SETUP, { "x-master-key": "A".repeat(32) });
  assert.equal(wrong.body.error, "not_master", JSON.stringify(wrong));
  const key = { "x-master-key": master_key };
  const setUp = await post(server(1), `/room/${room_code}/setup`, SETUP, key);
  assert.ok(setUp.status < 300, JSON.stringify(setUp));
  const twice = await post(server(0), `/room/${room_code}/setup`, SETUP, key);
  assert.equal(twice.status, 409, JSON.stringify(twice));
  report(`room ${room_code} created and set up`);
  return { room_code, master_key };
}

async function gather({ room_code, master_key }) {
  const master = new Client(server(0));
  const joined = await master.join(room_code, master_key);
  assert.equal(joined.type, "JOIN_OK", JSON.stringify(joined));
  assert.equal(joined.payload.is_master, true);
  assert.equal(master.state.players_all.length, 4);
  const players = [1, 2, 3, 4].map((number) => new Client(server(number)));
  for (const player of players) {
    const answer = await player.join(room_code);
    assert.equal(answer.payload.is_master, false);
    assert.equal(player.state.my_player_id, null);
    assert.equal(player.state.players_visible.length, 4);
  }
  report("a master and four devices joined");
  return { master, players };
}

async function refuseOutsiders({ room_code }) {
  const outsider = new Client(server(0));
  await outsider.opened;
  const early = await outsider.ask("START_GAME", {}, "ERROR");
  assert.equal(early.payload.code, "not_joined");
  const nowhere = await outsider.join("ZZZZZZ");
  assert.equal(nowhere.payload.code, "room_not_found");
  const old = await outsider.ask(
    "JOIN_ROOM",
    { room_code, device_id: outsider.device, protocol_version: 99 },
    "ERROR",
  );
  assert.equal(old.payload.code, "invalid_protocol_version");
  const wrong = await outsider.join(room_code, "A".repeat(32));
  assert.equal(wrong.payload.code, "not_master");
  await outsider.end();
  report("outsiders were refused");
}

async function claim(master, players) {
  const [first, second] = players;
  const taken = await first.ask("TAKE_PLAYER", { player_id: "p1" }, "TAKE_PLAYER_OK", "TAKE_PLAYER_FAIL");
  assert.equal(taken.type, "TAKE_PLAYER_OK");
  const again = await first.ask("TAKE_PLAYER", { player_id: "p2" }, "TAKE_PLAYER_OK", "TAKE_PLAYER_FAIL");
  assert.equal(again.payload.code, "device_already_has_player");
  const late = await second.ask("TAKE_PLAYER", { player_id: "p1" }, "TAKE_PLAYER_OK", "TAKE_PLAYER_FAIL");
  assert.equal(late.payload.code, "taken_now");
  for (const [index, player] of players.entries()) {
    if (index === 0) continue;
    const answer = await player.ask("TAKE_PLAYER", { player_id: `p${index + 1}` }, "TAKE_PLAYER_OK", "TAKE_PLAYER_FAIL");
    assert.equal(answer.type, "TAKE_PLAYER_OK", JSON.stringify(answer));
  }
  await master.untilState("all players taken", (state) => state.players_all.every((p) => p.status === "taken"));
  first.send("RENAME_PLAYER", { player_id: "p1", name: "Ann" });
  for (const client of [master, ...players]) {
    await client.untilState("Ann", (state) => state.players_visible.some((player) => player.name === "Ann"));
  }
  const notMine = await first.ask("RENAME_PLAYER", { player_id: "p2", name: "Eve" }, "ERROR");
  assert.equal(notMine.payload.code, "not_master");
  const notMaster = await first.ask("START_GAME", {}, "ERROR");
  assert.equal(notMaster.payload.code, "not_master");
  report("four players claimed, one each");
}

async function vote(player, round_id, item_id, selections) {
  const ack = await player.ask("SUBMIT_VOTE", { round_id, item_id, selections }, "VOTE_ACK", "ERROR");
  assert.equal(ack.type, "VOTE_ACK", JSON.stringify(ack));
}

async function open(master, players, round_id, item_id) {
  const starts = players.map((player) => player.next("START_VOTE"));
  master.send("OPEN_ITEM", { round_id, item_id });
  for (const start of await Promise.all(starts)) assert.equal(start.payload.item_id, item_id);
}

async function firstRound(master, players) {
  const begins = [master, ...players].map((client) => client.next("GAME_START"));
  master.send("START_GAME");
  await Promise.all(begins);
  await open(master, players, "r1", "i1");
  const bad = await players[0].ask("SUBMIT_VOTE", { round_id: "r1", item_id: "i1", selections: ["s1", "s2"] }, "ERROR");
  assert.equal(bad.payload.code, "invalid_selection");
  await vote(players[0], "r1", "i1", ["s1"]);
  const twice = await players[0].ask("SUBMIT_VOTE", { round_id: "r1", item_id: "i1", selections: ["s2"] }, "ERROR");
  assert.equal(twice.payload.code, "already_voted");
  await master.untilState("one vote", () => master.messages.some((m) => m.type === "PLAYER_VOTED" && m.payload.player_id === "p1"));
  await vote(players[1], "r1", "i1", ["s2"]);
  await vote(players[2], "r1", "i1", ["s1"]);
  await vote(players[3], "r1", "i1", ["s3"]);
  const closed = await master.untilState("the end of the vote", (state) => state.game?.status === "reveal_wait");
  assert.deepEqual(closed.current_vote_results.true_sender_ids, ["s1"]);
  const late = await players[0].ask("SUBMIT_VOTE", { round_id: "r1", item_id: "i1", selections: ["s2"] }, "ERROR");
  assert.ok(["late", "already_voted"].includes(late.payload.code), JSON.stringify(late));
  assertSecret(players, false);
  report("an item was voted on by all, and no player received a secret");
}

async function forcedClose(master, players) {
  const results = players.map((player) => player.next("VOTE_RESULTS"));
  await open(master, players, "r1", "i2");
  for (const result of await Promise.all(results)) {
    assert.deepEqual(result.payload.true_sender_ids, ["s1"]);
    assert.equal(result.payload.players.find((player) => player.player_id === "p1").points, 1);
  }
  await vote(players[0], "r1", "i2", ["s2", "s3"]);
  await vote(players[1], "r1", "i2", ["s1"]);
  const began = Date.now();
  master.send("FORCE_CLOSE_VOTE");
  await players[3].untilState("the countdown", (state) => state.game?.closes_at);
  await players[3].untilState("the end of the countdown", (state) => state.game?.status === "reveal_wait");
  const took = Date.now() - began;
  assert.ok(took > 9_000 && took < 15_000, `the countdown of ten seconds took ${took} ms`);
  const late = await players[3].ask("SUBMIT_VOTE", { round_id: "r1", item_id: "i2", selections: ["s1"] }, "ERROR");
  assert.equal(late.payload.code, "late");
  const scores = [master, ...players].map((client) => client.next("ROUND_SCORE_MODAL"));
  master.send("START_NEXT_ROUND");
  for (const score of await Promise.all(scores)) {
    assert.deepEqual(score.payload.ranking.map((r) => [r.player_id, r.rank, r.score]).slice(0, 2), [["p1", 1, 3], ["p3", 2, 1]]);
  }
  report(`a forced close took ${(took / 1000).toFixed(1)} s, and the round was ranked`);
}

async function reload(players, room_code) {
  const number = 2;
  await players[number].end();
  const again = new Client(server(number), players[number].device, players[number].token);
  await again.join(room_code);
  assert.equal(again.state.my_player_id, "p3", "a device that rejoins has its player");
  players[number] = again;
  report("a device was reloaded on another connection and has its player");
}

async function secondRound(master, players) {
  master.send("START_NEXT_ROUND");
  await master.untilState("the second round", (state) => state.game?.round_id === "r2");
  await open(master, players, "r2", "i1");
  await Promise.all(players.map((player) => vote(player, "r2", "i1", ["s3"])));
  await master.untilState("the end of the vote", (state) => state.game?.status === "reveal_wait");
  const shown = players.map((player) => player.next("VOTE_RESULTS"));
  master.send("REVEAL_ITEM");
  await Promise.all(shown);
  await master.untilState("the last result", (state) => state.game?.status === "idle" && state.game.item_index === state.game.items);
  master.send("START_NEXT_ROUND");
  await master.untilState("the points of the round", (state) => state.game?.status === "round_score");
  master.send("START_NEXT_ROUND");
  for (const client of [master, ...players]) {
    const over = await client.untilState("the end of the game", (state) => state.phase === "game_over");
    assert.deepEqual(over.scores, { p1: 4, p2: 1, p3: 2, p4: 1 });
    assert.deepEqual(over.game.ranking.map((r) => r.rank), [1, 2, 3, 3]);
  }
  report("two rounds were played, and every client has the same ranking");
}

async function playAgain(master, players) {
  const broadcasts = players.map((player) => player.next("BACK_TO_LOBBY"));
  master.send("PLAY_AGAIN", { keep_rounds: true });
  await Promise.all(broadcasts);
  for (const [index, player] of players.entries()) {
    const state = await player.untilState("the lobby", (state) => state.phase === "lobby");
    assert.equal(state.my_player_id, `p${index + 1}`);
    assert.deepEqual(state.scores, { p1: 0, p2: 0, p3: 0, p4: 0 });
  }
  const banned = await master.ask("BAN_PLAYER", { player_id: "p4" }, "BAN_PLAYER_OK", "ERROR");
  assert.equal(banned.type, "BAN_PLAYER_OK", JSON.stringify(banned));
  const { code } = await players[3].until("its end", () => players[3].closed);
  assert.equal(code, 4003);
  players.pop();
  report("the room is back in the lobby, and a device was banned");
}

async function close(master, players, room_code) {
  const broadcasts = [master, ...players].map((client) => client.next("ROOM_CLOSED_BROADCAST"));
  master.send("ROOM_CLOSED");
  await Promise.all(broadcasts);
  for (const client of [master, ...players]) {
    const { code } = await client.until("its end", () => client.closed);
    assert.equal(code, 1000);
  }
  const late = new Client(server(1));
  const answer = await late.join(room_code);
  assert.equal(answer.payload.code, "room_not_found");
  await late.end();
  report("the room was closed, and every client was notified");
}

const room = await create();
await refuseOutsiders(room);
const { master, players } = await gather(room);
await claim(master, players);
await firstRound(master, players);
await forcedClose(master, players);
await reload(players, room.room_code);
await secondRound(master, players);
await playAgain(master, players);
await close(master, players, room.room_code);
console.log(`held on ${servers.length === 1 ? "one server" : `${servers.length} servers`}`);
process.exit(0);
