//! The stream of Galaxy through sockets, as clients see it: the protocol's own examples, deltas, presence, bad and slow clients,
//! two servers on one store.

#[path = "galaxy/pilot.rs"]
mod pilot;
#[path = "galaxy/replay.rs"]
mod replay;

use emberkeep_games::galaxy::limits::{
    CLIENT_PING_EVERY, CLIENT_PONG_WAIT, CONNECTION_IDLE_MAX, CONNECTIONS_PER_PLAYER_MAX,
};
use emberkeep_games::galaxy::{GalaxyState, NewShip, PlayerId, ShipId, SystemId, Vector};
use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_server::auth::{Entry, Role, Token, write_entry};
use emberkeep_server::limits::*;
use emberkeep_server::{RunningServer, Settings, listen};
use emberkeep_testkit::scratch;
use pilot::{Engine, Pilot, request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const PAGE: &str = include_str!("../../../docs/galaxy-protocol.md");
const ANN: &str = "660e8400-e29b-41d4-a716-446655440001";

fn settings() -> Settings {
    Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}

async fn embedded() -> (RunningServer, Store) {
    let store = Store::new(Arc::new(Embedded::in_memory()));
    (listen(store.clone(), &settings()).await.expect("a free port"), store)
}

async fn on_redis(url: &str) -> (RunningServer, Store) {
    let store = Store::new(RedisEngine::connect(url).await.expect("the server is there"));
    (listen(store.clone(), &settings()).await.expect("a free port"), store)
}

fn ship(number: u128) -> ShipId {
    ShipId(Uuid::from_u128(number))
}

/// Spawns ships of a player each, moving, in `sol`.
async fn spawn(store: &Store, numbers: std::ops::Range<u128>) {
    let physics = GalaxyState::new(store.clone()).physics();
    for number in numbers {
        let mut new = NewShip::new(ship(number), PlayerId(Uuid::from_u128(number)), format!("S{number}"));
        new.motion.velocity = Vector::new(number as f64 + 0.125, 1.0 / 3.0, -1e9);
        physics.spawn_ship(new).await.unwrap();
    }
}

/// A state with a delta applied, as a client does it.
fn apply(state: &mut Value, delta: &Value) {
    assert_eq!(state["tick"], delta["from_tick"], "a delta applies to the state that was sent before");
    for kind in ["ships", "bodies", "stations", "jumpgates"] {
        for (id, change) in delta[kind].as_object().expect("entities") {
            for (field, value) in change.as_object().expect("fields") {
                state[kind][id][field] = value.clone();
            }
        }
        for id in delta["removed"][kind].as_array().expect("ids") {
            state[kind].as_object_mut().expect("entities").remove(id.as_str().expect("an id"));
        }
    }
    for field in ["tick", "time"] {
        state[field] = delta[field].clone();
    }
}

/// Follows the stream until a tick.
async fn follow(pilot: &mut Pilot, state: &mut Value, tick: i64) {
    while state["tick"].as_i64() < Some(tick) {
        let message = pilot.next().await.expect("the stream goes on");
        match message["type"].as_str() {
            Some("DELTA") => apply(state, &message["payload"]),
            Some("STATE") => *state = message["payload"].clone(),
            _ => panic!("{message}"),
        }
    }
}

#[test]
fn the_page_names_the_limits_of_the_server() {
    let page = PAGE.replace('\n', " ");
    let secs = |duration: Duration| duration.as_secs();
    let thousands = |number: usize| format!("{},{:03}", number / 1_000, number % 1_000);
    for expected in [
        format!("Messages of clients have at most {} KiB", SOCKET_MESSAGE_BYTES_MAX / 1_024),
        format!(
            "within {} seconds and among the first {SOCKET_JOIN_ATTEMPTS_MAX} messages",
            secs(SOCKET_JOIN_TIMEOUT)
        ),
        format!("A player has at most {CONNECTIONS_PER_PLAYER_MAX} connections"),
        format!("**at most {} ticks a second**", 1_000 / TICK_FRAME_EVERY.as_millis()),
        format!("`PING` every {} seconds", secs(CLIENT_PING_EVERY)),
        format!("comes within {} seconds", secs(CLIENT_PONG_WAIT)),
        format!("no frame came for {} seconds", secs(CONNECTION_IDLE_MAX)),
        format!("follows {} systems", thousands(SYSTEMS_WATCHED_MAX)),
        format!("more than {SOCKET_MESSAGES_PER_SECOND} messages a second"),
        format!("read nothing for {} seconds", secs(SOCKET_WRITE_TIMEOUT)),
        format!("An address with {} WebSockets", thousands(SOCKETS_PER_ADDRESS_MAX)),
    ] {
        assert!(page.contains(&expected), "the page does not say {expected:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_are_true() {
    let (server, store) = embedded().await;
    let lines = replay::replay(PAGE, server.address(), Engine::start(&store).await).await;
    assert!(lines >= 40, "only {lines} lines were replayed");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_are_true_on_redis() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let (server, store) = on_redis(&redis.url()).await;
    let lines = replay::replay(PAGE, server.address(), Engine::start(&store).await).await;
    assert!(lines >= 40, "only {lines} lines were replayed");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn deltas_lead_to_the_state_that_a_newcomer_is_sent() {
    let (server, store) = embedded().await;
    spawn(&store, 1..40).await;
    let galaxy = GalaxyState::new(store.clone());
    let mut engine = Engine::start(&store).await;
    engine.tick().await;
    let (mut pilot, mut state) = Pilot::watch(server.address(), "ann", "sol").await;
    for round in 0..12_u128 {
        let physics = galaxy.physics();
        physics.remove_ship(ship(round + 1)).await.unwrap();
        let away = emberkeep_games::galaxy::MotionChange::jump(
            SystemId::default(),
            Vector::new(round as f64, 0.1, 0.0),
            Vector::ZERO,
        );
        physics.move_ship(ship(round + 20), away).await.unwrap();
        spawn(&store, 100 + round..101 + round).await;
        let tick = engine.tick().await;
        follow(&mut pilot, &mut state, tick).await;
        let (newcomer, whole) = Pilot::watch(server.address(), "ben", "sol").await;
        assert_eq!(state, whole, "after tick {tick}");
        newcomer.leave().await;
    }
    assert_eq!(state["ships"].as_object().unwrap().len(), 39);
    engine.reset().await;
    let message = pilot.next().await.unwrap();
    assert_eq!(
        (&message["type"], &message["payload"]["tick"]),
        (&json!("STATE"), &json!(0)),
        "another generation"
    );
    assert_eq!((&message["payload"]["generation"], &message["payload"]["ships"]), (&json!(2), &json!({})));
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_is_sent_ten_ticks_a_second_while_the_game_catches_up() {
    let (server, store) = embedded().await;
    spawn(&store, 1..3).await;
    let mut engine = Engine::start(&store).await;
    let first = engine.tick().await;
    let (mut pilot, mut state) = Pilot::watch(server.address(), "ann", "sol").await;
    let start = Instant::now();
    let running = tokio::spawn(async move {
        let mut last = first;
        while start.elapsed() < Duration::from_secs(2) {
            last = engine.tick().await;
        }
        last
    });
    let mut messages = 0;
    while start.elapsed() < Duration::from_secs(2) {
        let message = pilot.next().await.expect("the stream goes on");
        assert_eq!(message["type"], "DELTA", "one that reads in time needs no state: {message}");
        apply(&mut state, &message["payload"]);
        messages += 1;
    }
    let ticks = running.await.unwrap() - first;
    assert!(ticks > 60, "the game is not fast enough for this test: {ticks} ticks");
    assert!((10..=23).contains(&messages), "{messages} messages of {ticks} ticks in 2 s");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_late_skips_to_the_newest_tick() {
    let (server, store) = embedded().await;
    spawn(&store, 1..1_500).await;
    let mut engine = Engine::start(&store).await;
    engine.tick().await;
    let (mut deaf, mut late) = Pilot::watch(server.address(), "deaf", "sol").await;
    let (mut pilot, mut state) = Pilot::watch(server.address(), "ann", "sol").await;
    let mut last = 0;
    for _ in 0..60 {
        last = engine.tick().await;
        follow(&mut pilot, &mut state, last).await;
    }
    let (mut messages, mut states) = (0, 0);
    while late["tick"].as_i64() < Some(last) {
        let message = deaf.next().await.expect("it is connected");
        match message["type"].as_str() {
            Some("STATE") => {
                late = message["payload"].clone();
                states += 1;
            }
            _ => apply(&mut late, &message["payload"]),
        }
        messages += 1;
    }
    assert_eq!(late, state);
    assert!(messages < 50 && states > 0, "{messages} messages were kept for it, {states} states");
    server.end().await.unwrap();
}

async fn online(server: &RunningServer) -> Value {
    request(server.address(), "GET", "/v1/galaxy/online", None, &Value::Null).await.1["players"].clone()
}

async fn becomes(server: &RunningServer, expected: Value) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while online(server).await != expected {
        assert!(Instant::now() < deadline, "{} are online, expected {expected}", online(server).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_is_online_while_a_connection_of_it_is_open() {
    let (server, _) = embedded().await;
    let ann = json!({ "player_id": ANN });
    let first = Pilot::join(server.address(), "first", ann.clone()).await;
    let mut second = Pilot::join(server.address(), "second", ann.clone()).await;
    let _watcher = Pilot::join(server.address(), "watcher", json!({})).await;
    assert_eq!(online(&server).await, json!([ANN]));
    first.leave().await;
    let path = format!("/v1/galaxy/players/{ANN}");
    let connections = format!("{path}/connections");
    let (_, presence) =
        request(server.address(), "GET", &format!("{path}/presence"), None, &Value::Null).await;
    assert_eq!(presence, json!({ "online": true }), "the second one is open");
    let closed = request(server.address(), "DELETE", &connections, None, &Value::Null).await;
    assert!(matches!(closed.1["closed"].as_u64(), Some(1..=2)), "{closed:?}");
    assert_eq!(second.ended().await, Some(4005));
    becomes(&server, json!([])).await;
    let mut again = Pilot::join(server.address(), "again", ann).await;
    assert_eq!(online(&server).await, json!([ANN]));
    again.send_binary().await;
    assert_eq!(again.ended().await, Some(1003));
    becomes(&server, json!([])).await;
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_who_is_deleted_through_one_server_leaves_the_other_one() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let ((first, _), (second, store)) = (on_redis(&redis.url()).await, on_redis(&redis.url()).await);
    let mut ann = Pilot::join(second.address(), "ann", json!({ "player_id": ANN })).await;
    assert_eq!(online(&first).await, json!([ANN]), "on both servers");
    spawn(&store, 1..2).await;
    let mut engine = Engine::start(&store).await;
    let (mut watcher, _) = Pilot::watch(first.address(), "watcher", "sol").await;
    let tick = engine.tick().await;
    assert_eq!(watcher.expect("DELTA").await["tick"], tick);
    let (status, deleted) =
        request(first.address(), "DELETE", &format!("/v1/galaxy/players/{ANN}"), None, &Value::Null).await;
    assert_eq!((status, &deleted["was_online"]), (200, &json!(true)));
    assert_eq!(ann.expect("ERROR").await["code"], "player_deleted");
    assert_eq!(ann.ended().await, Some(4004));
    assert_eq!(online(&second).await, json!([]));
    first.end().await.unwrap();
    second.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_decides_who_may_watch_and_who_brings_a_player_online() {
    let folder = scratch();
    let path = folder.join("tokens.toml");
    let token = |name: &str, role, service: Option<&str>| {
        let token = Token::new().unwrap();
        let service = service.map(str::to_owned);
        write_entry(&path, &Entry { name: name.into(), role, service, hash: token.hash() }).unwrap();
        token.reveal().to_owned()
    };
    let reader = token("reader", Role::ReadOnly, None);
    let gateway = token("gateway", Role::Service, Some("api-gateway"));
    let physics = token("physics", Role::Service, Some("physics"));
    let stranger = token("stranger", Role::Service, Some("kitchen"));
    let store = Store::new(Arc::new(Embedded::in_memory()));
    let server = listen(store, &Settings { tokens: Some(path), ..settings() }).await.unwrap();
    let mut pilot = Pilot::connect(server.address(), "ann").await;
    for (payload, code) in [
        (json!({}), "unauthorized"),
        (json!({ "token": "ek_unknown" }), "unauthorized"),
        (json!({ "token": reader, "player_id": ANN }), "forbidden"),
        (json!({ "token": physics, "player_id": ANN }), "forbidden"),
        (json!({ "token": stranger, "player_id": ANN }), "forbidden"),
    ] {
        pilot.send("AUTHENTICATE", payload.clone()).await;
        assert_eq!(pilot.expect("ERROR").await["code"], code, "{payload}");
    }
    pilot.send("AUTHENTICATE", json!({ "token": gateway, "player_id": ANN })).await;
    assert_eq!(pilot.expect("WELCOME").await["player_id"], ANN);
    Pilot::join(server.address(), "watcher", json!({ "token": reader })).await;
    let close = async |token: &str| {
        let path = format!("/v1/galaxy/players/{ANN}/connections");
        request(server.address(), "DELETE", &path, Some(token), &Value::Null).await
    };
    let (status, refused) = close(&physics).await;
    assert_eq!((status, &refused["details"]["owner"]), (403, &json!("api-gateway")), "{refused}");
    assert_eq!(close(&gateway).await, (200, json!({ "closed": 1 })));
    assert_eq!(pilot.ended().await, Some(4005));
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_client_gets_its_error_and_a_silent_one_is_ended() {
    let (server, _) = embedded().await;
    let mut silent = Pilot::connect(server.address(), "silent").await;
    let start = Instant::now();
    let mut bad = Pilot::join(server.address(), "bad", json!({})).await;
    for text in [
        "{",
        "[]",
        r#"{"type": "DANCE"}"#,
        r#"{"type": "SUBSCRIBE"}"#,
        r#"{"type": "SUBSCRIBE", "payload": {"system_id": "a:b"}}"#,
        r#"{"type": "SUBSCRIBE", "payload": {"system_id": "sol", "rate": 3}}"#,
        r#"{"type": "PING", "payload": {"now": true}}"#,
        r#"{"type": "PING", "extra": 1}"#,
    ] {
        bad.send_text(text.into()).await;
        assert_eq!(bad.expect("ERROR").await["code"], "invalid_payload", "{text}");
    }
    bad.send("UNSUBSCRIBE", json!({})).await;
    bad.send("PING", json!({})).await;
    bad.expect("PONG").await;
    let mut many = Pilot::connect(server.address(), "many").await;
    for _ in 0..SOCKET_JOIN_ATTEMPTS_MAX {
        many.send("PING", json!({})).await;
        assert_eq!(many.expect("ERROR").await["code"], "not_authenticated");
    }
    assert_eq!(many.ended().await, Some(1008));
    assert_eq!(silent.ended().await, Some(1008));
    assert!(start.elapsed() > Duration::from_secs(4));
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_server_ends_its_watchers_are_notified_and_its_players_are_offline() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let ((first, _), (second, _)) = (on_redis(&redis.url()).await, on_redis(&redis.url()).await);
    let mut ann = Pilot::join(first.address(), "ann", json!({ "player_id": ANN })).await;
    assert_eq!(online(&second).await, json!([ANN]));
    let (ended, code) = tokio::join!(first.end(), ann.ended());
    ended.unwrap();
    assert_eq!(code, Some(1001));
    assert_eq!(online(&second).await, json!([]));
    second.end().await.unwrap();
}
