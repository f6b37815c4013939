//! A hub that is in doubt hands out the state and goes on.

use super::table::*;
use crate::ws::ending::Ending;
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
    let table = Table::set(CALM).await;
    table.rename("Ann").await;
    let outbox = table.sit("phone", false).await;
    table.wake();
    table.set_log(2, 1).await;
    table.wake();
    assert_eq!(hears(&outbox, STATE).await["payload"]["sequence"], 2);
    table.rename("Bea").await;
    table.wake();
    let state = hears(&outbox, STATE).await;
    assert_eq!(
        (&state["payload"]["sequence"], &state["payload"]["players_visible"][0]["name"]),
        (&3.into(), &"Bea".into())
    );
}

#[tokio::test]
async fn a_log_that_was_set_back_and_went_on_is_found_when_signals_were_lost() {
    let table = Table::set(CALM).await;
    table.rename("Ann").await;
    let outbox = table.sit("phone", false).await;
    let (which, late) = table.seat("late", false).await;
    table.set_log(2, 1).await;
    // As far as numbers go, nothing has happened since.
    table.rename("Bea").await;
    table.registry.wake(None, Wakeup::Missed);
    let outboxes = [outbox, late.outbox.clone()];
    // Who sits down after the signal has seen the room before it.
    table.registry.enter(which, late).unwrap();
    for outbox in &outboxes {
        assert_eq!(until(outbox, STATE).await["payload"]["players_visible"][0]["name"], "Bea");
    }
}

#[tokio::test]
async fn a_counter_ahead_of_its_log_is_told_once_by_the_state() {
    let table = Table::set(CALM).await;
    let outbox = table.sit("phone", false).await;
    table.set_log(9, 0).await;
    table.wake();
    assert_eq!(hears(&outbox, STATE).await["payload"]["sequence"], 9);
    table.rename("Ann").await;
    table.wake();
    assert_eq!(hears(&outbox, STATE).await["payload"]["sequence"], 10, "and not the same again and again");
}

#[tokio::test]
async fn an_event_of_a_later_version_is_told_by_the_state() {
    let table = Table::set(CALM).await;
    let outbox = table.sit("phone", false).await;
    for entry in [r#"{"at":1,"type":"confetti","colour":"red"}"#, "rubbish"] {
        let transaction = move |tx: &mut Tx<'_, Room>| tx.record_until(entry, EVENTS_MAX, FAR_MS);
        let scope = table.store.scope(Room(table.code));
        let sequence = scope.transact::<u64, hot::Error, _>(transaction).await.unwrap();
        table.wake();
        assert_eq!(hears(&outbox, STATE).await["payload"]["sequence"], sequence);
    }
    table.rename("Ann").await;
    table.wake();
    assert_eq!(
        hears(&outbox, STATE).await["payload"]["players_visible"][0]["name"],
        "Ann",
        "the room goes on"
    );
}

#[tokio::test]
async fn a_hub_that_fell_behind_keeps_the_deadline() {
    let table = Table::voting(CALM).await;
    let outbox = table.sit("ann", false).await;
    table.rooms.force_close_vote(&table.master).await.unwrap();
    for n in 0..=EVENTS_MAX {
        table.rename(&format!("Name {n}")).await;
    }
    let left = 20;
    table.clock.advance(COUNTDOWN.as_millis() as u64 - left);
    table.wake();
    let state = hears(&outbox, STATE).await;
    assert_eq!(state["payload"]["game"]["status"], "vote", "more than a log of events is one state: {state}");
    table.clock.advance(left);
    assert_eq!(hears(&outbox, STATE).await["payload"]["game"]["status"], "reveal_wait");
}

#[tokio::test]
async fn a_vote_that_an_external_service_completes_is_found_without_a_signal() {
    let table = Table::voting(FAST).await;
    let outbox = table.sit("ann", false).await;
    let key = format!("brp:room:{}:vote:r1:i1", table.code);
    let vote = |name: &'static str| (Bytes::from_static(name.as_bytes()), Bytes::from_static(br#"["s1"]"#));
    table.external(vec![(Bytes::from(key), Write::HSet(vec![vote("p1"), vote("p2")]))]).await;
    assert_eq!(until(&outbox, STATE).await["payload"]["game"]["status"], "reveal_wait");
}

#[tokio::test]
async fn more_news_than_fit_are_told_by_the_state_and_nobody_is_too_slow() {
    let table = Table::set(CALM).await;
    table.rooms.take_player(table.code, &device("ann"), &player(1)).await.unwrap();
    let (ann, tv) = (table.sit("ann", false).await, table.sit("tv", true).await);
    table.rooms.reset_claims(&table.master).await.unwrap();
    // An item is voted on and shown again and again would take many items: messages of before are as many.
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    for _ in 0..300 {
        let event =
            Event::VoteStarted { round_id: round.clone(), item_id: item.clone(), reel_url: "x".into(), k: 1 };
        let entry = serde_json::to_vec(&Entry { at: 1, event }).unwrap();
        let transaction =
            move |tx: &mut Tx<'_, Room>| tx.record_until(entry.clone(), EVENTS_MAX, FAR_MS).map(|_| ());
        table.store.scope(Room(table.code)).transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
    table.wake();
    hears(&ann, "SLOT_INVALIDATED").await;
    let sequence = hears(&ann, STATE).await["payload"]["sequence"].clone();
    assert_eq!(hears(&tv, STATE).await["payload"]["sequence"], sequence);
    table.rename("Ann").await;
    table.wake();
    hears(&ann, STATE).await;
    hears(&tv, STATE).await;
}

#[tokio::test]
async fn a_room_of_another_version_says_so_to_its_seats() {
    let table = Table::set(CALM).await;
    let outbox = table.sit("phone", false).await;
    let key = Bytes::from(format!("brp:room:{}:meta", table.code));
    let meta = format!(
        r#"{{"room_code":"{}","created_at":1,"expires_at":9000000000000,"master_hash":"x","protocol_version":2}}"#,
        table.code
    );
    table.external(vec![(key, Write::Set(Bytes::from(meta), Expiry::Keep))]).await;
    table.wake();
    assert_eq!(hears(&outbox, "ERROR").await["payload"]["code"], "invalid_protocol_version");
    assert_eq!(next(&outbox).await, Err(Ending::OtherVersion));
}

#[tokio::test]
async fn a_close_that_was_only_said_closes_nothing() {
    let table = Table::set(CALM).await;
    let outbox = table.sit("phone", false).await;
    table.registry.wake(Some(table.code), Wakeup::Closed);
    table.rename("Ann").await;
    table.wake();
    hears(&outbox, STATE).await;
    table.rooms.close(&table.master).await.unwrap();
    table.wake();
    hears(&outbox, "ROOM_CLOSED_BROADCAST").await;
    assert_eq!(next(&outbox).await, Err(Ending::RoomClosed));
}
