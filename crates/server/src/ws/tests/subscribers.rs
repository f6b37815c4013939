//! Seats come, go and hear what concerns them.

use super::fixture::*;
use crate::limits::ROOM_SOCKETS_MAX;
use crate::ws::close::CloseReason;
use crate::ws::hub::HubCommand;
use crate::ws::hubs::RoomKey;
use crate::ws::send_queue::Outgoing;
use emberkeep_games::party::*;
use emberkeep_hot::engine::Stats;
use std::sync::atomic::Ordering::Relaxed;

const STATE: &str = "STATE_SYNC_RESPONSE";

#[tokio::test]
async fn the_first_seat_hears_what_happened_while_it_sat_down() {
    let room = Fixture::new(CALM).await;
    let (key, subscriber) = room.subscriber("phone", false).await;
    let queue = subscriber.queue.clone();
    // The signal of it finds no hub.
    room.rename("Ann").await;
    room.wake();
    room.hubs.subscribe(key, subscriber).unwrap();
    assert_eq!(expect_next(&queue, STATE).await["payload"]["players_visible"][0]["name"], "Ann");
}

#[tokio::test]
async fn the_hub_of_a_room_that_panics_ends_its_sockets_and_the_next_one_gets_a_new_hub() {
    let room = Fixture::new(CALM).await;
    let (key, subscriber) = room.subscriber("phone", false).await;
    let queue = subscriber.queue.clone();
    room.hubs.subscribe(key, subscriber).unwrap();
    room.hubs.send(key, HubCommand::Panic);
    while queue.next().await != Outgoing::Close(CloseReason::Shutdown) {}
    let restarts = || room.metrics.page(&Stats::default(), &[], None);
    while !restarts().contains("emberkeep_task_restarts_total{task=\"hub\"} 1\n") {
        tokio::task::yield_now().await;
    }
    let (key, subscriber) = room.subscriber("phone", false).await;
    let queue = subscriber.queue.clone();
    room.hubs.subscribe(key, subscriber).unwrap();
    room.rename("Ann").await;
    room.wake();
    assert_eq!(expect(&queue, STATE).await["payload"]["players_visible"][0]["name"], "Ann");
}

#[tokio::test]
async fn a_seat_for_a_hub_that_has_just_died_gets_a_new_one() {
    let room = Fixture::new(CALM).await;
    let (key, subscriber) = room.subscriber("phone", false).await;
    let queue = subscriber.queue.clone();
    room.hubs.kill_hub(key);
    room.hubs.subscribe(key, subscriber).unwrap();
    room.rename("Ann").await;
    room.wake();
    assert_eq!(expect_next(&queue, STATE).await["payload"]["players_visible"][0]["name"], "Ann");
}

#[tokio::test]
async fn a_ping_says_what_the_seat_was_sent() {
    let room = Fixture::voting(FAST).await;
    let (ben, tv) = (room.subscribe("ben", false).await, room.subscribe("tv", true).await);
    let known = expect(&ben, "PING").await["payload"]["sequence"].clone();
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    let chosen = vec![SenderId::new("s1").unwrap()];
    room.rooms.submit_vote(room.code, &device("ann"), &round, &item, chosen).await.unwrap();
    room.wake();
    assert_eq!(expect(&tv, "PLAYER_VOTED").await["payload"]["player_id"], "p1");
    assert_eq!(expect(&tv, STATE).await["payload"]["votes_received_player_ids"], serde_json::json!(["p1"]));
    // A vote is in no number: who may not hear of it has missed nothing.
    assert_eq!(expect(&tv, "PING").await["payload"]["sequence"], known);
    assert_eq!(expect(&ben, "PING").await["payload"]["sequence"], known);
}

#[tokio::test]
async fn who_asks_for_the_state_gets_it_and_states_never_go_back() {
    let room = Fixture::new(CALM).await;
    let (key, subscriber) = room.subscriber("phone", false).await;
    let (id, queue) = (subscriber.id, subscriber.queue.clone());
    room.hubs.subscribe(key, subscriber).unwrap();
    let changes = async {
        for n in 0..200 {
            room.rename(&format!("Name {n}")).await;
            room.wake();
            room.hubs.send_state(key, id);
            tokio::task::yield_now().await;
        }
    };
    let listens = async {
        let mut last = 0;
        while last < 202 {
            let sequence = expect_next(&queue, STATE).await["payload"]["sequence"].as_u64().unwrap();
            assert!(sequence >= last, "{sequence} after {last}");
            last = sequence;
        }
    };
    tokio::join!(changes, listens);
}

#[tokio::test]
async fn a_subscriber_of_a_room_that_had_the_code_before_learns_that_it_is_closed() {
    let room = Fixture::new(CALM).await;
    let (key, subscriber) = room.subscriber("late", false).await;
    let (late, phone) = (subscriber.queue.clone(), room.subscribe("phone", false).await);
    let before = RoomKey { created_at: key.created_at - 1, ..key };
    room.hubs.subscribe(before, subscriber).unwrap();
    expect_next(&late, "ROOM_CLOSED_BROADCAST").await;
    assert_eq!(next(&late).await, Err(CloseReason::RoomClosed));
    room.rename("Ann").await;
    room.wake();
    expect_next(&phone, STATE).await;
}

#[tokio::test]
async fn a_room_has_so_many_sockets_and_no_more() {
    let room = Fixture::new(CALM).await;
    let (key, subscriber) = room.subscriber("phone-0", false).await;
    room.hubs.subscribe(key, subscriber).unwrap();
    for n in 1..=ROOM_SOCKETS_MAX {
        let (_, subscriber) = room.subscriber(&format!("phone-{n}"), false).await;
        let queue = subscriber.queue.clone();
        room.hubs.subscribe(key, subscriber).unwrap();
        if n == ROOM_SOCKETS_MAX {
            assert_eq!(expect_next(&queue, "ERROR").await["payload"]["code"], "room_full");
            assert_eq!(next(&queue).await, Err(CloseReason::Full));
        }
    }
}

#[tokio::test]
async fn in_a_full_room_the_master_and_players_have_their_place() {
    let room = Fixture::new(CALM).await;
    room.rooms.take_player(room.code, &device("ann"), &player(1)).await.unwrap();
    let mut queues = Vec::new();
    for n in 0..ROOM_SOCKETS_MAX {
        queues.push(room.subscribe(&format!("phone-{n}"), false).await);
    }
    let (tv, ann) = (room.subscribe("tv", true).await, room.subscribe("ann", false).await);
    let (key, mut subscriber) = room.subscriber("late", false).await;
    let (accepted, answer) = tokio::sync::oneshot::channel();
    subscriber.accepted = Some(accepted);
    room.hubs.subscribe(key, subscriber).unwrap();
    assert_eq!(answer.await, Ok(false), "refused before anything is said to it");
    for queue in &queues[ROOM_SOCKETS_MAX - 2..] {
        assert_eq!(expect(queue, "ERROR").await["payload"]["code"], "room_full");
    }
    room.rename("Bea").await;
    room.wake();
    for queue in [&tv, &ann, &queues[0]] {
        assert_eq!(expect(queue, STATE).await["payload"]["players_visible"][0]["name"], "Bea");
    }
}

#[tokio::test]
async fn a_banned_device_hears_why_and_is_ended() {
    let room = Fixture::voting(CALM).await;
    let (ann, ben) = (room.subscribe("ann", false).await, room.subscribe("ben", false).await);
    room.rooms.ban_player(&room.master, &player(1)).await.unwrap();
    room.wake();
    assert_eq!(expect(&ann, "SLOT_INVALIDATED").await["payload"]["reason"], "banned");
    assert_eq!(expect(&ann, "ERROR").await["payload"]["code"], "banned");
    assert_eq!(next(&ann).await, Err(CloseReason::Banned));
    expect(&ben, STATE).await;
}

#[tokio::test]
async fn a_server_that_ends_admits_no_client() {
    let room = Fixture::new(CALM).await;
    let _outbox = room.subscribe("phone", false).await;
    assert_eq!(room.metrics.rooms.load(Relaxed), 1);
    room.hubs.shutdown();
    assert_eq!(room.metrics.rooms.load(Relaxed), 0);
    let (key, subscriber) = room.subscriber("late", false).await;
    assert!(room.hubs.subscribe(key, subscriber).is_err());
    room.hubs.wait_shutdown().await;
}
