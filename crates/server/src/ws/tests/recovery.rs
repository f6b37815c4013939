//! A hub that is in doubt sends the state and goes on.

use super::fixture::*;
use crate::ws::close::CloseReason;
use bytes::Bytes;
use emberkeep_games::party::limits::{COUNTDOWN, EVENTS_MAX};
use emberkeep_games::party::*;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::{self as hot, Tx};

/// An end that an external client chose, in the year 3000.
const FAR_MS: i64 = 32_503_680_000_000;
const STATE: &str = "STATE_SYNC_RESPONSE";

#[tokio::test]
async fn a_log_that_was_set_back_closes_no_room() {
    let room = Fixture::new(CALM).await;
    room.rename("Ann").await;
    let queue = room.subscribe("phone", false).await;
    room.wake();
    room.set_log_back().await;
    room.wake();
    assert_eq!(expect_next(&queue, STATE).await["payload"]["sequence"], 2);
    room.rename("Bea").await;
    room.wake();
    let state = expect_next(&queue, STATE).await;
    assert_eq!(
        (&state["payload"]["sequence"], &state["payload"]["players_visible"][0]["name"]),
        (&3.into(), &"Bea".into())
    );
}

#[tokio::test]
async fn a_log_that_was_set_back_and_went_on_is_found_when_signals_were_lost() {
    let room = Fixture::new(CALM).await;
    room.rename("Ann").await;
    let queue = room.subscribe("phone", false).await;
    let (key, late) = room.subscriber("late", false).await;
    room.set_log_back().await;
    // As far as numbers go, nothing has happened since.
    room.rename("Bea").await;
    room.hubs.wake(None, Wakeup::Missed);
    let queues = [queue, late.queue.clone()];
    // Who sits down after the signal has seen the room before it.
    room.hubs.subscribe(key, late).unwrap();
    for queue in &queues {
        assert_eq!(expect(queue, STATE).await["payload"]["players_visible"][0]["name"], "Bea");
    }
}

#[tokio::test]
async fn an_entry_ahead_of_its_log_is_answered_once_by_the_state() {
    let room = Fixture::new(CALM).await;
    let queue = room.subscribe("phone", false).await;
    room.external_entry(9, "strange").await;
    room.wake();
    assert_eq!(expect_next(&queue, STATE).await["payload"]["sequence"], 9);
    room.rename("Ann").await;
    room.wake();
    assert_eq!(
        expect_next(&queue, STATE).await["payload"]["sequence"],
        10,
        "and not the same again and again"
    );
}

#[tokio::test]
async fn an_event_of_a_later_version_is_replaced_by_the_state() {
    let room = Fixture::new(CALM).await;
    let queue = room.subscribe("phone", false).await;
    let last = room.store.scope(Room(room.code)).log_last(&ROOM_LOG.key()).await.unwrap().sequence;
    for (sequence, entry) in (last + 1..).zip([r#"{"at":1,"type":"confetti","colour":"red"}"#, "rubbish"]) {
        room.external_entry(sequence, entry).await;
        room.wake();
        assert_eq!(expect_next(&queue, STATE).await["payload"]["sequence"], sequence);
    }
    room.rename("Ann").await;
    room.wake();
    assert_eq!(
        expect_next(&queue, STATE).await["payload"]["players_visible"][0]["name"],
        "Ann",
        "the room goes on"
    );
}

#[tokio::test]
async fn a_hub_that_fell_behind_keeps_the_deadline() {
    let room = Fixture::voting(CALM).await;
    let queue = room.subscribe("ann", false).await;
    room.rooms.force_close_vote(&room.master).await.unwrap();
    for n in 0..=EVENTS_MAX {
        room.rename(&format!("Name {n}")).await;
    }
    let left = 20;
    room.clock.advance(COUNTDOWN.as_millis() as u64 - left);
    room.wake();
    let state = expect_next(&queue, STATE).await;
    assert_eq!(state["payload"]["game"]["status"], "vote", "more than a log of events is one state: {state}");
    room.clock.advance(left);
    assert_eq!(expect_next(&queue, STATE).await["payload"]["game"]["status"], "reveal_wait");
}

#[tokio::test]
async fn a_vote_that_an_external_service_completes_is_found_without_a_signal() {
    let room = Fixture::voting(FAST).await;
    let queue = room.subscribe("ann", false).await;
    let key = format!("brp:room:{}:vote:r1:i1", room.code);
    let vote = |name: &'static str| (Bytes::from_static(name.as_bytes()), Bytes::from_static(br#"["s1"]"#));
    room.external(vec![(Bytes::from(key), Write::HSet(vec![vote("p1"), vote("p2")]))]).await;
    assert_eq!(expect(&queue, STATE).await["payload"]["game"]["status"], "reveal_wait");
}

#[tokio::test]
async fn more_events_than_fit_are_replaced_by_the_state_and_no_client_is_too_slow() {
    let room = Fixture::new(CALM).await;
    room.rooms.take_player(room.code, &device("ann"), &player(1)).await.unwrap();
    let (ann, tv) = (room.subscribe("ann", false).await, room.subscribe("tv", true).await);
    room.let_the_hub_read().await;
    room.rooms.reset_claims(&room.master).await.unwrap();
    // An item is voted on and shown again and again would take many items: messages of before are as many.
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    for _ in 0..300 {
        let event =
            Event::VoteStarted { round_id: round.clone(), item_id: item.clone(), reel_url: "x".into(), k: 1 };
        let entry = Entry { at: 1, event };
        let transaction = move |tx: &mut Tx<'_, Room>| tx.append_until(&ROOM_LOG.key(), &entry, FAR_MS);
        room.store.scope(Room(room.code)).transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
    room.wake();
    expect_next(&ann, "SLOT_INVALIDATED").await;
    let sequence = expect_next(&ann, STATE).await["payload"]["sequence"].clone();
    assert_eq!(expect_next(&tv, STATE).await["payload"]["sequence"], sequence);
    room.rename("Ann").await;
    room.wake();
    expect_next(&ann, STATE).await;
    expect_next(&tv, STATE).await;
}

#[tokio::test]
async fn a_room_of_another_version_says_so_to_its_seats() {
    let room = Fixture::new(CALM).await;
    let queue = room.subscribe("phone", false).await;
    let key = Bytes::from(format!("brp:room:{}:meta", room.code));
    let meta = format!(
        r#"{{"room_code":"{}","created_at":1,"expires_at":9000000000000,"master_hash":"x","protocol_version":2}}"#,
        room.code
    );
    room.external(vec![(key, Write::Set(Bytes::from(meta), Expiry::Keep))]).await;
    room.wake();
    assert_eq!(expect_next(&queue, "ERROR").await["payload"]["code"], "invalid_protocol_version");
    assert_eq!(next(&queue).await, Err(CloseReason::OtherVersion));
}

#[tokio::test]
async fn a_close_that_was_only_said_closes_nothing() {
    let room = Fixture::new(CALM).await;
    let queue = room.subscribe("phone", false).await;
    room.hubs.wake(Some(room.code), Wakeup::Closed);
    room.rename("Ann").await;
    room.wake();
    expect_next(&queue, STATE).await;
    room.rooms.close(&room.master).await.unwrap();
    room.wake();
    expect_next(&queue, "ROOM_CLOSED_BROADCAST").await;
    assert_eq!(next(&queue).await, Err(CloseReason::RoomClosed));
}
