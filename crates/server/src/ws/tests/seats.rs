//! Seats come, go and hear what concerns them.

use super::table::*;
use crate::limits::ROOM_SOCKETS_MAX;
use crate::ws::ending::Ending;
use crate::ws::registry::Which;
use emberkeep_games::party::*;
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
async fn a_ping_says_what_the_seat_was_sent() {
    let table = Table::voting(FAST).await;
    let (ben, tv) = (table.sit("ben", false).await, table.sit("tv", true).await);
    let known = until(&ben, "PING").await["payload"]["sequence"].clone();
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    let chosen = vec![SenderId::new("s1").unwrap()];
    table.rooms.submit_vote(table.code, &device("ann"), &round, &item, chosen).await.unwrap();
    table.wake();
    let voted = until(&tv, "PLAYER_VOTED").await["sequence"].clone();
    assert_eq!(hears(&tv, "PING").await["payload"]["sequence"], voted);
    // Who may not hear of the vote has missed nothing, and is not told to ask.
    assert_eq!(until(&ben, "PING").await["payload"]["sequence"], known);
    assert_ne!(voted, known);
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
