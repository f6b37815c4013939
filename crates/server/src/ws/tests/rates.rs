//! How much a room sends to its sockets.

use super::fixture::*;
use crate::limits::{ROOM_BYTES_PER_SECOND, ROOM_STATE_EVERY};
use crate::ws::send_queue::{Outgoing, SendQueue};
use crate::ws::timing::Timing;
use emberkeep_games::party::*;
use futures_util::FutureExt;
use std::time::{Duration, Instant};

const STATE: &str = "STATE_SYNC_RESPONSE";
const RATED: Timing = Timing { state_every: ROOM_STATE_EVERY, ..CALM };

/// Takes what waits for a socket: states, and bytes of all messages.
fn taken(queue: &SendQueue) -> (usize, usize) {
    let (mut states, mut bytes) = (0, 0);
    while let Some(Outgoing::Text(text)) = queue.next().now_or_never() {
        states += usize::from(text.contains(STATE));
        bytes += text.len();
    }
    (states, bytes)
}

/// As many players as fit, with long names.
async fn fill(room: &Fixture) {
    for n in 10..70 {
        let player = SetupPlayer {
            avatar_url: Some(format!("https://avatars.example/{}", "y".repeat(300))),
            ..SetupPlayer::new(player(n), format!("{n}{}", "n".repeat(50)))
        };
        room.rooms.add_player(&room.master, player).await.unwrap();
    }
}

#[tokio::test]
async fn many_changes_are_few_states_and_the_last_one_arrives() {
    let room = Fixture::new(RATED).await;
    fill(&room).await;
    let mut queues = Vec::new();
    for n in 0..32 {
        queues.push(room.subscribe(&format!("phone-{n}"), false).await);
    }
    let (began, mut states, mut bytes) = (Instant::now(), 0, 0);
    for n in 0..60 {
        room.rename(&format!("Name {n}")).await;
        room.wake();
        tokio::time::sleep(Duration::from_millis(10)).await;
        for (of_states, of_bytes) in queues.iter().map(taken) {
            (states, bytes) = (states + of_states, bytes + of_bytes);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let (most, each) = (seconds / ROOM_STATE_EVERY.as_secs_f64() + 2.0, states as f64 / 32.0);
    assert!(each >= 2.0 && each <= most, "{each} states for each socket, at most {most}");
    let largest = 32.0 * 64.0 * 1024.0;
    assert!(
        (bytes as f64) < seconds * ROOM_BYTES_PER_SECOND as f64 + largest,
        "{bytes} bytes in {seconds} s"
    );
    room.rename("Last").await;
    room.wake();
    for queue in &queues {
        while expect(queue, STATE).await["payload"]["players_visible"][0]["name"] != "Last" {}
    }
}

#[tokio::test]
async fn sockets_that_see_the_same_share_its_bytes() {
    let room = Fixture::new(RATED).await;
    let (one, two) = (room.subscribe("one", false).await, room.subscribe("two", false).await);
    room.rename("Ann").await;
    room.wake();
    let (Outgoing::Text(one), Outgoing::Text(two)) = (one.next().await, two.next().await) else {
        panic!("two states")
    };
    assert_eq!(one.as_str().as_ptr(), two.as_str().as_ptr(), "written once");
}

#[tokio::test]
async fn a_state_after_a_vote_reaches_only_the_master_and_the_voter() {
    let room = Fixture::voting(RATED).await;
    let [tv, ann, ben] = [
        room.subscribe("tv", true).await,
        room.subscribe("ann", false).await,
        room.subscribe("ben", false).await,
    ];
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    let chosen = vec![SenderId::new("s1").unwrap()];
    room.rooms.submit_vote(room.code, &device("ann"), &round, &item, chosen).await.unwrap();
    room.wake();
    assert_eq!(expect_next(&tv, "PLAYER_VOTED").await["payload"]["player_id"], "p1");
    assert_eq!(
        expect_next(&tv, STATE).await["payload"]["votes_received_player_ids"],
        serde_json::json!(["p1"])
    );
    assert_eq!(expect_next(&ann, STATE).await["payload"]["game"]["voted"], true);
    assert_eq!(taken(&ben), (0, 0), "not even that a vote was cast");
}

#[tokio::test]
async fn the_first_change_goes_out_at_once() {
    let room = Fixture::new(Timing { state_every: NEVER, ..CALM }).await;
    let queue = room.subscribe("phone", false).await;
    room.rename("Ann").await;
    room.wake();
    assert_eq!(expect_next(&queue, STATE).await["payload"]["players_visible"][0]["name"], "Ann");
}

#[tokio::test]
async fn events_do_not_put_off_the_states_of_the_master() {
    let room = Fixture::new(RATED).await;
    fill(&room).await;
    for n in [1, 2].into_iter().chain(10..70) {
        room.rooms.take_player(room.code, &device(&format!("phone-{n}")), &player(n)).await.unwrap();
    }
    room.rooms.start_game(&room.master).await.unwrap();
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    room.rooms.open_item(&room.master, &round, &item).await.unwrap();
    let tv = room.subscribe("tv", true).await;
    // Counted in votes, room a slow machine does not change: two of them fall into the time between two
    // states.
    let (mut in_a_row, mut longest) = (0, 0);
    for n in 10..39 {
        let chosen = vec![SenderId::new("s1").unwrap()];
        let phone = device(&format!("phone-{n}"));
        room.rooms.submit_vote(room.code, &phone, &round, &item, chosen).await.unwrap();
        room.wake();
        tokio::time::sleep(ROOM_STATE_EVERY / 2).await;
        in_a_row = if taken(&tv).0 > 0 { 0 } else { in_a_row + 1 };
        longest = longest.max(in_a_row);
    }
    assert!(longest <= 6, "no state while {longest} votes came");
}
