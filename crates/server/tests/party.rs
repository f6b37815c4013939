//! Rooms through sockets, as clients see them: the protocol's own examples, races, bad clients, two servers on one store.

#[path = "party/closing.rs"]
mod closing;
#[path = "party/phone.rs"]
mod phone;
#[path = "party/replay.rs"]
mod replay;
#[path = "party/servers.rs"]
mod servers;

use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_server::limits::*;
use emberkeep_server::{RunningServer, Settings, listen};
use emberkeep_testkit::report;
use futures_util::SinkExt;
use phone::{Phone, request, room};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::protocol::Message;

const PAGE: &str = include_str!("../../../docs/party-protocol.md");

fn settings() -> Settings {
    Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}

async fn embedded() -> RunningServer {
    let store = Store::new(Arc::new(Embedded::in_memory()));
    listen(store, &settings()).await.expect("a free port")
}

async fn on_redis(url: &str) -> RunningServer {
    let engine = RedisEngine::connect(url).await.expect("the server is there");
    listen(Store::new(engine), &settings()).await.expect("a free port")
}

fn take_answers() -> [&'static str; 2] {
    ["TAKE_PLAYER_OK", "TAKE_PLAYER_FAIL"]
}

#[test]
fn the_page_names_the_limits_of_the_server() {
    let page = PAGE.replace('\n', " ");
    let (secs, kib) = (Duration::as_secs, |bytes: usize| bytes / 1024);
    for expected in [
        format!("at most {ROOM_SOCKETS_MAX} connections on a server"),
        format!("text frame of at most {} KiB", kib(SOCKET_MESSAGE_BYTES_MAX)),
        format!(
            "within {} seconds and among the first {SOCKET_JOIN_ATTEMPTS_MAX} messages",
            secs(&SOCKET_JOIN_TIMEOUT)
        ),
        format!("missing rooms: {MISSING_ROOMS_BURST}, then {MISSING_ROOMS_PER_MINUTE_DEFAULT} a minute"),
        format!("at most {} states a second", 1_000 / ROOM_STATE_EVERY.as_millis()),
        format!("at most {} MiB a second", kib(kib(ROOM_BYTES_PER_SECOND))),
        format!("Every {} seconds the server sends a WebSocket ping", secs(&SOCKET_PING_EVERY)),
        format!("silent for {} seconds", secs(&SOCKET_IDLE_MAX)),
        format!("Every {} seconds the server sends `PING`", secs(&ROOM_POLL_EVERY)),
        format!("more than {SOCKET_MESSAGES_PER_SECOND} messages a second"),
        format!("read nothing for {} seconds", secs(&SOCKET_WRITE_TIMEOUT)),
        format!(
            "An address with {},{:03} WebSockets",
            SOCKETS_PER_ADDRESS_MAX / 1_000,
            SOCKETS_PER_ADDRESS_MAX % 1_000
        ),
    ] {
        assert!(page.contains(&expected), "the page does not say {expected:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_are_true() {
    let server = embedded().await;
    let lines = replay::replay(PAGE, server.address()).await;
    assert!(lines > 60, "only {lines} lines were replayed");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_are_true_on_redis() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let server = on_redis(&redis.url()).await;
    assert!(replay::replay(PAGE, server.address()).await > 60);
    server.end().await.unwrap();
}

/// Every player of a room is fought for by eight devices. Gives the number of rooms in which each player had one winner.
async fn races(servers: &[SocketAddr], rounds: usize) -> usize {
    let (code, key) = room(servers[0], 8, 1).await;
    let mut master = Phone::join(servers[0], "tv", &code, Some(&key)).await;
    let mut phones = Vec::new();
    for number in 0..64 {
        let server = servers[number % servers.len()];
        phones.push(Phone::join(server, &format!("phone-{number}"), &code, None).await);
    }
    let mut won = 0;
    for _ in 0..rounds {
        let mut race = JoinSet::new();
        for (number, mut phone) in phones.drain(..).enumerate() {
            race.spawn(async move {
                let player = format!("p{}", number % 8 + 1);
                let answer = phone.ask("TAKE_PLAYER", json!({ "player_id": player }), &take_answers()).await;
                let won = answer["type"] == "TAKE_PLAYER_OK";
                assert!(won || answer["payload"]["code"] == "taken_now", "{answer}");
                (number, phone, won)
            });
        }
        let mut done: Vec<(usize, Phone, bool)> = race.join_all().await;
        done.sort_by_key(|(number, ..)| *number);
        let winners = |player: usize| done.iter().filter(|(n, _, won)| n % 8 == player && *won).count();
        won += usize::from((0..8).all(|player| winners(player) == 1));
        master.until("all players taken", all(8, "taken")).await;
        master.send("RESET_CLAIMS", json!({})).await;
        for (_, phone, won) in &mut done {
            if *won {
                phone.expect("SLOT_INVALIDATED").await;
            }
        }
        phones = done.into_iter().map(|(_, phone, _)| phone).collect();
        master.until("all players free", all(8, "free")).await;
    }
    won
}

fn all(players: usize, status: &'static str) -> impl Fn(&Value) -> bool {
    move |state| {
        let players_all = state["players_all"].as_array().map(Vec::as_slice).unwrap_or_default();
        players_all.len() == players && players_all.iter().all(|player| player["status"] == status)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_has_one_winner_through_sockets() {
    let server = embedded().await;
    let won = races(&[server.address()], 25).await;
    report!(
        "party: 64 devices for 8 players through sockets, embedded: {won} of 25 rounds had one winner each"
    );
    assert_eq!(won, 25);
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_has_one_winner_through_two_servers() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let (first, second) = (on_redis(&redis.url()).await, on_redis(&redis.url()).await);
    let won = races(&[first.address(), second.address()], 10).await;
    report!(
        "party: 64 devices for 8 players through two servers on one Redis: {won} of 10 rounds had one winner each"
    );
    assert_eq!(won, 10);
    first.end().await.unwrap();
    second.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_comes_back_has_its_player_and_the_older_connection_ends() {
    let server = embedded().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let mut first = Phone::join(server.address(), "phone", &code, None).await;
    first.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    let second = Phone::join(server.address(), "phone", &code, None).await;
    assert_eq!(second.state["my_player_id"], "p1");
    assert_eq!(first.ended().await, Some(4001));
    second.leave().await;
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_client_gets_its_error_and_the_room_goes_on() {
    let server = embedded().await;
    let (code, key) = room(server.address(), 2, 1).await;
    let mut master = Phone::join(server.address(), "tv", &code, Some(&key)).await;
    let mut bad = Phone::join(server.address(), "bad", &code, None).await;
    let long = "x".repeat(10_000);
    for (text, expected) in [
        ("{".to_owned(), "invalid_payload"),
        ("\"hello\"".to_owned(), "invalid_payload"),
        (json!({ "type": "DANCE" }).to_string(), "invalid_payload"),
        (json!({ "type": "SUBMIT_VOTE", "payload": { "selections": 7 } }).to_string(), "invalid_payload"),
        (json!({ "type": "START_GAME", "payload": {} }).to_string(), "not_master"),
        (json!({ "type": "RELEASE_PLAYER" }).to_string(), "not_claimed"),
    ] {
        bad.send_text(text).await;
        assert_eq!(bad.expect("ERROR").await["payload"]["code"], expected);
    }
    bad.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    for name in [long.as_str(), "a\u{7}b", "", "   "] {
        let answer = bad.ask("RENAME_PLAYER", json!({ "player_id": "p1", "name": name }), &["ERROR"]).await;
        assert_eq!(answer["payload"]["code"], "invalid_payload", "{answer}");
    }
    bad.socket.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(bad.ended().await, Some(1003));
    master.ask("REQUEST_SYNC", json!({}), &["STATE_SYNC_RESPONSE"]).await;
    assert_eq!(master.state["players_all"][0]["status"], "taken");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_slowed_then_ended_and_others_do_not_notice() {
    let server = embedded().await;
    let (code, key) = room(server.address(), 2, 1).await;
    let mut master = Phone::join(server.address(), "tv", &code, Some(&key)).await;
    let mut flood = Phone::join(server.address(), "flood", &code, None).await;
    for _ in 0..400 {
        let claim = r#"{"type":"TAKE_PLAYER","payload":{"player_id":"nobody"}}"#;
        if flood.socket.send(Message::text(claim)).await.is_err() {
            break;
        }
    }
    let (mut answered, mut slowed) = (0, 0);
    let ended = loop {
        match flood.next().await {
            Ok(message) if message["type"] == "TAKE_PLAYER_FAIL" => answered += 1,
            Ok(message) if message["payload"]["code"] == "rate_limited" => slowed += 1,
            Ok(other) => panic!("{other}"),
            Err(frame) => break frame.map(|frame| u16::from(frame.code)),
        }
    };
    // The server ends with messages unread, so the system may drop what it said last.
    assert!((40..60).contains(&answered) && slowed > 0, "{answered} answered, {slowed} slowed");
    assert!(ended.is_none_or(|code| code == 1008), "{ended:?}");
    master.ask("REQUEST_SYNC", json!({}), &["STATE_SYNC_RESPONSE"]).await;
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_late_has_the_newest_state_and_others_do_not_wait_for_it() {
    let server = embedded().await;
    let (code, key) = room(server.address(), 64, 1).await;
    let mut master = Phone::join(server.address(), "tv", &code, Some(&key)).await;
    let mut deaf = Phone::join(server.address(), "deaf", &code, None).await;
    let key_of = Some(key.as_str());
    // Each change is a state of ten kilobytes for everybody: thirty megabytes are more than the system holds for a
    // client that does not read. Through HTTP, because a socket has a pace.
    for number in 0..3_000 {
        let name = format!("{number}-{}", "n".repeat(50));
        let (path, name_of) = (format!("/v1/rooms/{code}/players/p1/name"), json!({ "name": name }));
        let answer = request("PUT", server.address(), &path, key_of, &name_of).await;
        assert!(answer.status < 300, "{answer:?}");
        if number % 50 == 0 {
            master.until("the new name", |state| state["players_all"][0]["name"] == *name).await;
        }
    }
    let mut states = 0;
    while !deaf.state["players_visible"][0]["name"].as_str().is_some_and(|name| name.starts_with("2999-")) {
        deaf.expect("STATE_SYNC_RESPONSE").await;
        states += 1;
    }
    assert!(states < 2_000, "{states} states were kept for a client that did not read");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_ended_after_five_seconds() {
    let server = embedded().await;
    let mut silent = Phone::connect(server.address(), "silent").await;
    let start = tokio::time::Instant::now();
    assert_eq!(silent.ended().await, Some(1008));
    assert!(start.elapsed() > Duration::from_secs(4));
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_server_ends_its_sockets_are_notified() {
    let server = embedded().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let mut phone = Phone::join(server.address(), "phone", &code, None).await;
    let (ended, code) = tokio::join!(server.end(), phone.ended());
    ended.unwrap();
    assert_eq!(code, Some(1001));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_room_refuses_before_it_welcomes_and_lets_its_master_in() {
    let server = embedded().await;
    let (code, key) = room(server.address(), 2, 1).await;
    let mut phones = Vec::new();
    for number in 0..256 {
        phones.push(Phone::join(server.address(), &format!("phone-{number}"), &code, None).await);
    }
    let mut late = Phone::connect(server.address(), "late").await;
    let join = json!({ "room_code": code, "device_id": "late", "protocol_version": 1 });
    late.send("JOIN_ROOM", join).await;
    let refused = late.next().await.unwrap();
    assert_eq!((&refused["type"], &refused["payload"]["code"]), (&json!("ERROR"), &json!("room_full")));
    let mut master = Phone::join(server.address(), "tv", &code, Some(&key)).await;
    phones[0].ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    let again = Phone::join(server.address(), "phone-0", &code, None).await;
    assert_eq!(again.state["my_player_id"], "p1");
    master.ask("REQUEST_SYNC", json!({}), &["STATE_SYNC_RESPONSE"]).await;
    assert_eq!(phones[255].ended().await, Some(1013), "the newest that only looks on makes room");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_room_knows_a_device_by_its_token() {
    let server = embedded().await;
    let created = request("POST", server.address(), "/room?strict_devices=true", None, &json!({})).await;
    let code = created.body["room_code"].as_str().unwrap().to_owned();
    let mut phone = Phone::connect(server.address(), "phone").await;
    let join = |token: Option<&str>| json!({ "room_code": code, "device_id": "phone", "protocol_version": 1, "reconnect_token": token });
    let joined = phone.ask("JOIN_ROOM", join(None), &["JOIN_OK"]).await;
    let token = joined["payload"]["reconnect_token"].as_str().unwrap().to_owned();
    let mut stranger = Phone::connect(server.address(), "stranger").await;
    for guess in [None, Some("guess")] {
        let answer = stranger.ask("JOIN_ROOM", join(guess), &["ERROR"]).await;
        assert_eq!(answer["payload"]["code"], "not_this_device");
    }
    phone.ask("REQUEST_SYNC", json!({}), &["STATE_SYNC_RESPONSE"]).await;
    let mut again = Phone::connect(server.address(), "phone").await;
    let joined = again.ask("JOIN_ROOM", join(Some(&token)), &["JOIN_OK"]).await;
    assert_eq!(joined["payload"]["reconnect_token"], *token);
    assert_eq!(phone.ended().await, Some(4001));
    server.end().await.unwrap();
}
