//! The log of a room, and who follows it.

use super::*;
use emberkeep_games::party::limits::{EVENTS_MAX, EVENTS_PER_PAGE_MAX};
use std::time::Duration;

/// What a follower hears next; it must come soon.
async fn next(follower: &mut Follower) -> Signal {
    let heard = tokio::time::timeout(Duration::from_secs(10), follower.next()).await;
    heard.expect("a signal comes").expect("the store is open")
}

/// Waits for the signal of an event. On a Cluster the nodes hand messages on in their own time, so that one of before
/// the subscription may come; one of an event that never was may not.
async fn hear(follower: &mut Follower, expected: u64) {
    loop {
        match next(follower).await {
            Signal::Events { last } if last == expected => return,
            Signal::Events { last } if last < expected => {}
            other => panic!("{other:?}, expected {expected}"),
        }
    }
}

pub async fn every_change_is_recorded_and_wakes_followers(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let mut follower = party.rooms.subscribe(party.code).await.unwrap();
    party.take(1, 1).await.unwrap();
    hear(&mut follower, 3).await;
    party.take(2, 2).await.unwrap();
    hear(&mut follower, 4).await;
    assert_eq!(code_of(party.take(2, 1).await), "device_already_has_player");
    party.sync(1).await;
    party.rooms.start_game(&party.master).await.unwrap();
    hear(&mut follower, 5).await;
    let page = party.rooms.events_after(party.code, 3).await.unwrap();
    assert_eq!(
        (page.last, page.missed, page.events.len()),
        (5, 0, 2),
        "neither a refusal nor a look is news"
    );
    assert_eq!(page.events[1].entry.event, Event::GameStarted);
    party.all_end_together().await;
}

pub async fn a_close_is_the_last_word(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let mut follower = party.rooms.subscribe(party.code).await.unwrap();
    party.rooms.close(&party.master).await.unwrap();
    while next(&mut follower).await != Signal::Closed {}
}

pub async fn a_message_only_wakes_and_the_log_decides(store: Store) {
    let party = Party::new(&store).await;
    let mut follower = party.rooms.subscribe(party.code).await.unwrap();
    let step = |tx: &mut Tx<'_, Room>| tx.publish(&ROOM_CHANNEL.key(), &Wake::Events { last: 99 });
    party.scope.transact::<(), hot::Error, _>(step).await.unwrap();
    hear(&mut follower, 99).await;
    let page = party.rooms.events_after(party.code, 1).await.unwrap();
    assert_eq!((page.last, page.events.len()), (1, 0), "the log decides");
}

pub async fn a_state_says_from_where_to_follow(store: Store) {
    let party = Party::set_up(&store, 8).await;
    let changes = party.clone();
    let changing = tokio::spawn(async move {
        for n in 1..=8 {
            changes.take(n, n).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    // Whatever is not in the state comes after its sequence, and nothing twice.
    for _ in 0..40 {
        let sync = party.sync(1).await;
        let taken = sync
            .players_visible
            .iter()
            .filter(|player| serde_json::to_value(player.status).unwrap() == "taken");
        let taken = taken.count() as u64;
        assert_eq!(sync.sequence, 2 + taken, "two events before the first claim, one for each");
        tokio::task::yield_now().await;
    }
    changing.await.unwrap();
    let sync = party.sync(1).await;
    let page = party.rooms.events_after(party.code, sync.sequence).await.unwrap();
    assert_eq!((sync.sequence, page.events.len()), (10, 0));
    assert_eq!(page.created_at, sync.created_at);
}

pub async fn who_was_away_for_long_is_told_what_was_missed(store: Store) {
    let party = Party::set_up(&store, 2).await;
    for n in 0..EVENTS_MAX + 10 {
        party.rooms.rename_player(&party.master, &player(1), &format!("Name {n}")).await.unwrap();
    }
    let page = party.rooms.events_after(party.code, 0).await.unwrap();
    assert_eq!(
        (page.last, page.missed, page.events.len()),
        (EVENTS_MAX as u64 + 12, 12, EVENTS_PER_PAGE_MAX)
    );
    assert_eq!(page.events[0].sequence, 13);
    let ahead = party.rooms.events_after(party.code, page.last + 1).await;
    assert_eq!(ahead, Err(Error::RoomNotFound(party.code)), "no place of this room");
    party.all_end_together().await;
}

pub async fn events_are_told_to_those_whom_they_concern(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    party.rooms.toggle_player(&party.master, &player(2), false).await.unwrap();
    let events = party.events().await;
    let phone = device(2);
    let told = |whom: Audience<'_>| events.iter().filter(|event| event.audience() == whom).count();
    assert_eq!((told(Audience::Master), told(Audience::Device(&phone))), (1, 1));
    let json = serde_json::to_value(&events[0]).unwrap();
    assert_eq!(json, serde_json::json!({ "type": "room_created" }));
}
