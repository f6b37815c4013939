//! Seats come, go and hear what concerns them.

use super::table::*;
use crate::limits::ROOM_SOCKETS_MAX;
use crate::ws::ending::Ending;
use crate::ws::hub::Told;
use crate::ws::outbox::Outgoing;
use crate::ws::registry::Which;
use emberkeep_games::party::*;
use emberkeep_hot::engine::Stats;
use std::sync::atomic::Ordering::Relaxed;

const STATE: &str = "STATE_SYNC_RESPONSE";

#[tokio::test]
async fn the_first_seat_hears_what_happened_while_it_sat_down() {
    let table = Table::set(CALM).await;
    let (which, seat) = table.seat("phone", false).await;
    let outbox = seat.outbox.clone();
    // The signal of it finds no hub.
    table.rename("Ann").await;
    table.wake();
    table.registry.enter(which, seat).unwrap();
    assert_eq!(hears(&outbox, STATE).await["payload"]["players_visible"][0]["name"], "Ann");
}

#[tokio::test]
async fn the_hub_of_a_room_that_panics_ends_its_sockets_and_the_next_one_gets_a_new_hub() {
    let table = Table::set(CALM).await;
    let (which, seat) = table.seat("phone", false).await;
    let outbox = seat.outbox.clone();
    table.registry.enter(which, seat).unwrap();
    table.registry.tell(which, Told::Panic);
    while outbox.next().await != Outgoing::Close(Ending::ServerEnds) {}
    let restarts = || table.metrics.page(&Stats::default());
    while !restarts().contains("emberkeep_task_restarts_total{task=\"hub\"} 1\n") {
        tokio::task::yield_now().await;
    }
    let (which, seat) = table.seat("phone", false).await;
    let outbox = seat.outbox.clone();
    table.registry.enter(which, seat).unwrap();
    table.rename("Ann").await;
    table.wake();
    assert_eq!(until(&outbox, STATE).await["payload"]["players_visible"][0]["name"], "Ann");
}

#[tokio::test]
async fn a_seat_for_a_hub_that_has_just_died_gets_a_new_one() {
    let table = Table::set(CALM).await;
    let (which, seat) = table.seat("phone", false).await;
    let outbox = seat.outbox.clone();
    table.registry.kill_hub(which);
    table.registry.enter(which, seat).unwrap();
    table.rename("Ann").await;
    table.wake();
    assert_eq!(hears(&outbox, STATE).await["payload"]["players_visible"][0]["name"], "Ann");
}

#[tokio::test]
async fn a_ping_says_what_the_seat_was_sent() {
    let table = Table::voting(FAST).await;
    let (ben, tv) = (table.sit("ben", false).await, table.sit("tv", true).await);
    let known = until(&ben, "PING").await["payload"]["sequence"].clone();
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    let chosen = vec![SenderId::new("s1").unwrap()];
    table.rooms.submit_vote(table.code, &device("ann"), &round, &item, chosen).await.unwrap();
    table.wake();
    assert_eq!(until(&tv, "PLAYER_VOTED").await["payload"]["player_id"], "p1");
    assert_eq!(until(&tv, STATE).await["payload"]["votes_received_player_ids"], serde_json::json!(["p1"]));
    // A vote is in no number: who may not hear of it has missed nothing.
    assert_eq!(until(&tv, "PING").await["payload"]["sequence"], known);
    assert_eq!(until(&ben, "PING").await["payload"]["sequence"], known);
}

#[tokio::test]
async fn who_asks_for_the_state_gets_it_and_states_never_go_back() {
    let table = Table::set(CALM).await;
    let (which, seat) = table.seat("phone", false).await;
    let (id, outbox) = (seat.id, seat.outbox.clone());
    table.registry.enter(which, seat).unwrap();
    let changes = async {
        for n in 0..200 {
            table.rename(&format!("Name {n}")).await;
            table.wake();
            table.registry.show(which, id);
            tokio::task::yield_now().await;
        }
    };
    let listens = async {
        let mut last = 0;
        while last < 202 {
            let sequence = hears(&outbox, STATE).await["payload"]["sequence"].as_u64().unwrap();
            assert!(sequence >= last, "{sequence} after {last}");
            last = sequence;
        }
    };
    tokio::join!(changes, listens);
}

#[tokio::test]
async fn a_seat_of_a_room_that_had_the_code_before_is_told_that_it_is_closed() {
    let table = Table::set(CALM).await;
    let (which, seat) = table.seat("late", false).await;
    let (late, phone) = (seat.outbox.clone(), table.sit("phone", false).await);
    let before = Which { created_at: which.created_at - 1, ..which };
    table.registry.enter(before, seat).unwrap();
    hears(&late, "ROOM_CLOSED_BROADCAST").await;
    assert_eq!(next(&late).await, Err(Ending::RoomClosed));
    table.rename("Ann").await;
    table.wake();
    hears(&phone, STATE).await;
}

#[tokio::test]
async fn a_room_has_so_many_sockets_and_no_more() {
    let table = Table::set(CALM).await;
    let (which, seat) = table.seat("phone-0", false).await;
    table.registry.enter(which, seat).unwrap();
    for n in 1..=ROOM_SOCKETS_MAX {
        let (_, seat) = table.seat(&format!("phone-{n}"), false).await;
        let outbox = seat.outbox.clone();
        table.registry.enter(which, seat).unwrap();
        if n == ROOM_SOCKETS_MAX {
            assert_eq!(hears(&outbox, "ERROR").await["payload"]["code"], "room_full");
            assert_eq!(next(&outbox).await, Err(Ending::Full));
        }
    }
}

#[tokio::test]
async fn in_a_full_room_the_master_and_players_have_their_place() {
    let table = Table::set(CALM).await;
    table.rooms.take_player(table.code, &device("ann"), &player(1)).await.unwrap();
    let mut outboxes = Vec::new();
    for n in 0..ROOM_SOCKETS_MAX {
        outboxes.push(table.sit(&format!("phone-{n}"), false).await);
    }
    let (tv, ann) = (table.sit("tv", true).await, table.sit("ann", false).await);
    let (which, mut seat) = table.seat("late", false).await;
    let (admitted, answer) = tokio::sync::oneshot::channel();
    seat.admitted = Some(admitted);
    table.registry.enter(which, seat).unwrap();
    assert_eq!(answer.await, Ok(false), "refused before anything is said to it");
    for outbox in &outboxes[ROOM_SOCKETS_MAX - 2..] {
        assert_eq!(until(outbox, "ERROR").await["payload"]["code"], "room_full");
    }
    table.rename("Bea").await;
    table.wake();
    for outbox in [&tv, &ann, &outboxes[0]] {
        assert_eq!(until(outbox, STATE).await["payload"]["players_visible"][0]["name"], "Bea");
    }
}

#[tokio::test]
async fn a_banned_device_hears_why_and_is_ended() {
    let table = Table::voting(CALM).await;
    let (ann, ben) = (table.sit("ann", false).await, table.sit("ben", false).await);
    table.rooms.ban_player(&table.master, &player(1)).await.unwrap();
    table.wake();
    assert_eq!(until(&ann, "SLOT_INVALIDATED").await["payload"]["reason"], "banned");
    assert_eq!(until(&ann, "ERROR").await["payload"]["code"], "banned");
    assert_eq!(next(&ann).await, Err(Ending::Banned));
    until(&ben, STATE).await;
}

#[tokio::test]
async fn nobody_enters_a_server_that_ends() {
    let table = Table::set(CALM).await;
    let _outbox = table.sit("phone", false).await;
    assert_eq!(table.metrics.rooms.load(Relaxed), 1);
    table.registry.end();
    assert_eq!(table.metrics.rooms.load(Relaxed), 0);
    let (which, seat) = table.seat("late", false).await;
    assert!(table.registry.enter(which, seat).is_err());
    table.registry.ended().await;
}
