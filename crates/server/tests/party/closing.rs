//! How connections and rooms end, as clients see it.

use super::{embedded, settings};
use crate::phone::{Phone, request, room};
use emberkeep_games::party::limits::ROOM_LIFE;
use emberkeep_games::party::{ROOM_CHANNEL, ROOM_META, Room, RoomCode, Wakeup};
use emberkeep_hot::embedded::{Clock, ManualClock, Options};
use emberkeep_hot::{self as hot, Store, Tx};
use emberkeep_server::{RunningServer, listen};
use futures_util::SinkExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, coding::Data, coding::OpCode};

/// A server on a store whose time a test holds.
async fn with_a_clock() -> (RunningServer, Store, ManualClock) {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Options::default().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    (listen(store.clone(), &settings()).await.expect("a free port"), store, clock)
}

fn scope(store: &Store, code: &str) -> hot::Scope<Room> {
    store.scope(Room(RoomCode::new(code).unwrap()))
}

/// Gives the followers of a room a reason to look.
async fn wake(store: &Store, code: &str) {
    let transaction = |tx: &mut Tx<'_, Room>| tx.publish(&ROOM_CHANNEL.key(), &Wakeup::Events { last: 0 });
    scope(store, code).transact::<(), hot::Error, _>(transaction).await.unwrap();
}

fn join(code: &str, device: &str, key: Option<&str>) -> Value {
    let mut payload = json!({ "room_code": code, "device_id": device, "protocol_version": 1 });
    if let Some(key) = key {
        payload["master_key"] = key.into();
    }
    payload
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_cannot_be_taken_ends_with_its_code() {
    let server = embedded().await;
    let (code, key) = room(server.address(), 2, 1).await;
    let mut master = Phone::join(server.address(), "tv", &code, Some(&key)).await;
    let text = |bytes: Vec<u8>| Message::Frame(Frame::message(bytes, OpCode::Data(Data::Text), true));
    let reserved = {
        let mut frame = Frame::message("x", OpCode::Data(Data::Text), true);
        frame.header_mut().rsv1 = true;
        Message::Frame(frame)
    };
    for (frame, expected) in [
        (Message::text("x".repeat(100_000)), 1009),
        (Message::text("x".repeat(1_000_000)), 1009),
        (text(vec![0xff, 0xfe]), 1007),
        (reserved, 1002),
    ] {
        let mut joined = Phone::join(server.address(), "bad", &code, None).await;
        let _ = joined.socket.send(frame.clone()).await;
        assert_eq!(joined.ended().await, Some(expected));
        let mut early = Phone::connect(server.address(), "early").await;
        let _ = early.socket.send(frame).await;
        assert_eq!(early.ended().await, Some(expected), "before it joined");
    }
    master.ask("REQUEST_SYNC", json!({}), &["STATE_SYNC_RESPONSE"]).await;
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_not_joined_when_a_server_ends_is_notified_and_not_waited_for() {
    let server = embedded().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let mut early = Phone::connect(server.address(), "early").await;
    let mut joined = Phone::join(server.address(), "phone", &code, None).await;
    let start = Instant::now();
    let (ended, early, joined) = tokio::join!(server.end(), early.ended(), joined.ended());
    ended.unwrap();
    assert_eq!((early, joined), (Some(1001), Some(1001)));
    assert!(start.elapsed() < Duration::from_secs(4), "it took {:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_expires_says_so_to_its_sockets_and_over_http() {
    let (server, store, clock) = with_a_clock().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let mut phone = Phone::join(server.address(), "phone", &code, None).await;
    clock.advance(ROOM_LIFE.as_millis() as u64 + 1);
    wake(&store, &code).await;
    assert_eq!(phone.expect("ERROR").await["payload"]["code"], "room_expired");
    assert_eq!(phone.ended().await, Some(1000));
    let mut late = Phone::connect(server.address(), "late").await;
    let answer = late.ask("JOIN_ROOM", join(&code, "late", None), &["ERROR"]).await;
    assert_eq!(answer["payload"]["code"], "room_expired");
    let answer = request("GET", server.address(), &format!("/v1/rooms/{code}"), None, &json!({})).await;
    assert_eq!((answer.status, &answer.body["error"]), (410, &json!("room_expired")));
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_of_another_version_is_refused_and_other_rooms_go_on() {
    let (server, store, _) = with_a_clock().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let (other, key) = room(server.address(), 2, 1).await;
    let mut phone = Phone::join(server.address(), "phone", &code, None).await;
    let mut master = Phone::join(server.address(), "tv", &other, Some(&key)).await;
    // A server of another version has taken the room over.
    let transaction = |tx: &mut Tx<'_, Room>| {
        let mut meta = tx.get(&ROOM_META.key())?.expect("the room is there");
        meta.protocol_version = 2;
        tx.put_until(&ROOM_META.key(), &meta, meta.expires_at)
    };
    scope(&store, &code).transact::<(), hot::Error, _>(transaction).await.unwrap();
    wake(&store, &code).await;
    assert_eq!(phone.expect("ERROR").await["payload"]["code"], "invalid_protocol_version");
    assert_eq!(phone.ended().await, Some(1000));
    let mut late = Phone::connect(server.address(), "late").await;
    for version in [1, 2] {
        let mut payload = join(&code, "late", None);
        payload["protocol_version"] = version.into();
        let answer = late.ask("JOIN_ROOM", payload, &["ERROR"]).await;
        assert_eq!(answer["payload"]["code"], "invalid_protocol_version", "of a client of version {version}");
    }
    master.ask("REQUEST_SYNC", json!({}), &["STATE_SYNC_RESPONSE"]).await;
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_lost_its_player_while_it_was_away_is_notified() {
    let server = embedded().await;
    let (code, key) = room(server.address(), 2, 1).await;
    let mut ann = Phone::join(server.address(), "ann", &code, None).await;
    ann.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    ann.leave().await;
    let claims = format!("/v1/rooms/{code}/claims");
    let reset = request("DELETE", server.address(), &claims, Some(&key), &json!({})).await;
    assert!(reset.status < 300, "{reset:?}");
    let mut ben = Phone::join(server.address(), "ben", &code, None).await;
    ben.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    let mut ann = Phone::join(server.address(), "ann", &code, None).await;
    assert_eq!(ann.state["my_player_id"], Value::Null);
    let message = ann.next().await.unwrap();
    assert_eq!(message["type"], "SLOT_INVALIDATED", "{message}");
    assert_eq!(message["payload"], json!({ "player_id": "p1", "reason": "claims_reset" }));
    // A device that has a player again is not notified of an older loss.
    ann.ask("TAKE_PLAYER", json!({ "player_id": "p2" }), &["TAKE_PLAYER_OK"]).await;
    let mut again = Phone::join(server.address(), "ann", &code, None).await;
    assert_eq!(again.state["my_player_id"], "p2");
    again.send("REQUEST_SYNC", json!({})).await;
    assert_eq!(again.next().await.unwrap()["type"], "STATE_SYNC_RESPONSE");
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_the_key_of_a_room_is_answered_slower_and_slower() {
    let server = embedded().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let mut eve = Phone::connect(server.address(), "eve").await;
    let wrong = "A".repeat(32);
    let start = Instant::now();
    for _ in 0..5 {
        let answer = eve.ask("JOIN_ROOM", join(&code, "eve", Some(&wrong)), &["ERROR"]).await;
        assert_eq!(answer["payload"]["code"], "not_master");
    }
    assert!(start.elapsed() >= Duration::from_millis(750), "{:?}", start.elapsed());
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_an_expired_room_is_answered_and_ends_its_sockets() {
    let (server, _, clock) = with_a_clock().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let mut phone = Phone::join(server.address(), "phone", &code, None).await;
    let mut idle = Phone::join(server.address(), "idle", &code, None).await;
    clock.advance(ROOM_LIFE.as_millis() as u64 + 1);
    let began = Instant::now();
    let answer = phone.ask("REQUEST_SYNC", json!({}), &["ERROR"]).await;
    assert_eq!(answer["payload"]["code"], "room_expired");
    assert_eq!((phone.ended().await, idle.ended().await), (Some(1000), Some(1000)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    server.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_join_does_not_keep_a_room_alive() {
    let (server, store, clock) = with_a_clock().await;
    let (code, _) = room(server.address(), 2, 1).await;
    let end = async || scope(&store, &code).get(&ROOM_META.key()).await.unwrap().unwrap().expires_at;
    let before = end().await;
    clock.advance(3_600_000);
    let mut eve = Phone::connect(server.address(), "eve").await;
    let wrong = join(&code, "eve", Some("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
    assert_eq!(eve.ask("JOIN_ROOM", wrong, &["ERROR"]).await["payload"]["code"], "not_master");
    let answer = request("GET", server.address(), &format!("/v1/rooms/{code}"), None, &json!({})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(end().await, before);
    eve.ask("JOIN_ROOM", join(&code, "eve", None), &["JOIN_OK"]).await;
    assert_eq!(end().await, before + 3_600_000, "one that is let in does");
    server.end().await.unwrap();
}
