//! The log of a room, and its subscribers.

use super::*;
use emberkeep_games::party::limits::{EVENTS_MAX, EVENTS_PER_PAGE_MAX};
use std::time::Duration;

/// What a follower hears next; it must come soon.
async fn next(follower: &mut RoomSubscription) -> Wakeup {
    let heard = tokio::time::timeout(Duration::from_secs(10), follower.next()).await;
    heard.expect("a signal comes").expect("the store is open")
}

/// Waits for the signal of an event. On a Cluster the nodes hand messages on in their own time, so that one
/// of before the subscription may come; one of an event that never was may not.
async fn hear(follower: &mut RoomSubscription, expected: u64) {
    loop {
        match next(follower).await {
            Wakeup::Events { last } if last == expected => return,
            Wakeup::Events { last } if last < expected => {}
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
    while next(&mut follower).await != Wakeup::Closed {}
}

pub async fn a_message_only_wakes_and_the_log_decides(store: Store) {
    let party = Party::new(&store).await;
    let mut follower = party.rooms.subscribe(party.code).await.unwrap();
    let transaction = |tx: &mut Tx<'_, Room>| tx.publish(&ROOM_CHANNEL.key(), &Wakeup::Events { last: 99 });
    party.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
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

pub async fn a_client_that_was_away_for_long_learns_what_it_missed(store: Store) {
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
    let followed = party.rooms.follow(party.code, 0).await.unwrap();
    assert_eq!((followed.is_whole, followed.events.len()), (false, EVENTS_MAX), "all that is left");
    party.all_end_together().await;
}

pub async fn events_are_sent_to_those_whom_they_concern(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    party.rooms.toggle_player(&party.master, &player(2), false).await.unwrap();
    let events = party.events().await;
    let phone = device(2);
    let reported = |whom: Audience<'_>| events.iter().filter(|event| event.audience() == whom).count();
    assert_eq!((reported(Audience::Everyone), reported(Audience::Device(&phone))), (events.len() - 1, 1));
    let json = serde_json::to_value(&events[0]).unwrap();
    assert_eq!(json, serde_json::json!({ "type": "room_created" }));
}

pub async fn a_log_that_was_set_back_is_of_a_living_room(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.take(1, 1).await.unwrap();
    // A replica that had not heard of the last transaction yet is the primary now.
    party.external(&ROOM_LOG.key(), Write::LTrim(0, 1)).await;
    let page = party.rooms.events_after(party.code, 3).await.unwrap();
    assert_eq!((page.last, page.missed, page.events.len()), (2, 1, 0));
    let followed = party.rooms.follow(party.code, 3).await.unwrap();
    assert_eq!((followed.is_whole, followed.snapshot.sequence(), followed.events.len()), (false, 2, 0));
    party.take(2, 2).await.unwrap();
    let followed = party.rooms.follow(party.code, 2).await.unwrap();
    assert_eq!((followed.is_whole, followed.snapshot.sequence(), followed.events.len()), (true, 3, 1));
}

pub async fn an_entry_that_is_ahead_of_its_log_is_a_gap(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.external_entry("9:00000000:strange").await;
    let page = party.rooms.events_after(party.code, 2).await.unwrap();
    assert_eq!(
        (page.last, page.missed, page.events.len()),
        (9, 7, 0),
        "not nothing: that would be asked for ever"
    );
    let followed = party.rooms.follow(party.code, 1).await.unwrap();
    // Its number counts for all: the entries before it are not those of their places.
    assert_eq!((followed.is_whole, followed.snapshot.sequence(), followed.events.len()), (false, 9, 0));
}

pub async fn an_event_that_cannot_be_read_stops_no_reader(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let entries =
        [r#"{"at":1,"type":"confetti","colour":"red"}"#, "rubbish", r#"{"at":1,"type":"player_taken"}"#];
    for (sequence, entry) in (3..).zip(entries) {
        party.external_entry(&format!("{sequence}:00000000:{entry}")).await;
    }
    party.take(1, 1).await.unwrap();
    let page = party.rooms.events_after(party.code, 2).await.unwrap();
    let events: Vec<_> = page.events.iter().map(|recorded| recorded.entry.event.clone()).collect();
    let taken = Event::PlayerTaken { player_id: player(1) };
    assert_eq!(events, [Event::Unknown, Event::Unknown, Event::Unknown, taken]);
    assert_eq!(events[0].audience(), Audience::None);
    party.all_end_together().await;
}

pub async fn a_log_that_an_external_client_corrupted_begins_anew(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.external(&ROOM_LOG.key(), Write::Del).await;
    let text = Write::Set(Bytes::from_static(b"not a list"), Expiry::Never);
    party.external(&ROOM_LOG.key(), text).await;
    let page = party.rooms.events_after(party.code, 2).await.unwrap();
    assert_eq!((page.last, page.missed, page.events.len()), (0, 2, 0), "there is no log to follow");
    party.take(2, 2).await.unwrap();
    for known in [1, 2] {
        let followed = party.rooms.follow(party.code, known).await.unwrap();
        assert_eq!((followed.is_whole, followed.snapshot.sequence()), (known == 1, 1), "after {known}");
        assert_eq!(followed.events, [], "after {known}");
    }
    party.all_end_together().await;
}

pub async fn a_log_goes_on_behind_an_element_of_an_external_client(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.external(&ROOM_LOG.key(), Write::RPush(vec![Bytes::from_static(b"rubbish")])).await;
    let page = party.rooms.events_after(party.code, 2).await.unwrap();
    assert_eq!((page.last, page.missed, page.events.len()), (3, 1, 0), "it has a place, and no event");
    party.take(1, 1).await.unwrap();
    // Events up to the gap; the state has what follows.
    for (known, expected) in [(1, vec![Event::SetUp]), (2, vec![])] {
        let followed = party.rooms.follow(party.code, known).await.unwrap();
        assert_eq!((followed.is_whole, followed.snapshot.sequence()), (false, 4), "after {known}");
        let events: Vec<_> = followed.events.iter().map(|recorded| recorded.entry.event.clone()).collect();
        assert_eq!(events, expected, "after {known}");
    }
    let followed = party.rooms.follow(party.code, 3).await.unwrap();
    assert_eq!((followed.is_whole, followed.events.len()), (true, 1));
    party.all_end_together().await;
}

pub async fn what_is_due_is_among_the_news_and_in_their_state(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    party.rooms.force_close_vote(&party.master).await.unwrap();
    let known = party.sync(1).await.sequence;
    assert!(party.rooms.follow(party.code, known).await.unwrap().snapshot.next_deadline().is_some());
    party.pass_deadline().await;
    let followed = party.rooms.follow(party.code, known).await.unwrap();
    assert!(followed.is_whole && followed.snapshot.next_deadline().is_none());
    assert_eq!(followed.snapshot.sequence(), known + 1);
    let [closed] = &followed.events[..] else { panic!("{:?}", followed.events) };
    assert!(matches!(closed.entry.event, Event::VoteClosed { .. }) && closed.sequence == known + 1);
    let page = party.rooms.events_after(party.code, known).await.unwrap();
    assert_eq!(page.events, followed.events, "as the log has it");
}

/// How a device that comes back hears that it lost its player.
async fn loss_of(party: &Party, d: u32) -> Option<(PlayerId, Invalidation)> {
    let admitted = party.rooms.admit(party.code, JoinRequest::new(device(d), 1)).await.unwrap();
    admitted.lost.map(|lost| (lost.player_id, lost.reason))
}

pub async fn a_device_can_ask_how_it_lost_its_player(store: Store) {
    let party = Party::set_up(&store, 2).await;
    assert_eq!(loss_of(&party, 1).await, None);
    party.take(1, 1).await.unwrap();
    party.rooms.reset_claims(&party.master).await.unwrap();
    party.take(2, 1).await.unwrap();
    assert_eq!(loss_of(&party, 1).await, Some((player(1), Invalidation::ClaimsReset)));
    assert_eq!(loss_of(&party, 2).await, None);
}

/// The cost of a join does not grow with the log, which it need not read.
pub async fn a_loss_is_found_without_the_log(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.take(1, 1).await.unwrap();
    party.rooms.delete_player(&party.master, &player(1)).await.unwrap();
    party.external(&ROOM_LOG.key(), Write::LTrim(1, 0)).await;
    assert_eq!(loss_of(&party, 1).await, Some((player(1), Invalidation::PlayerDeleted)));
}

pub async fn a_loss_that_was_settled_is_not_reported_again(store: Store) {
    let party = Party::set_up(&store, 3).await;
    party.take(1, 1).await.unwrap();
    party.rooms.delete_player(&party.master, &player(1)).await.unwrap();
    assert_eq!(loss_of(&party, 1).await, Some((player(1), Invalidation::PlayerDeleted)));
    party.take(1, 2).await.unwrap();
    assert_eq!(loss_of(&party, 1).await, None, "it has a player");
    party.rooms.release_player(party.code, &device(1)).await.unwrap();
    assert_eq!(loss_of(&party, 1).await, None, "it gave the player up itself");
    party.take(1, 2).await.unwrap();
    party.rooms.toggle_player(&party.master, &player(2), false).await.unwrap();
    assert_eq!(loss_of(&party, 1).await, Some((player(2), Invalidation::PlayerDeactivated)));
    party.all_end_together().await;
}

pub async fn a_vote_shows_in_no_number_that_players_see(store: Store) {
    let party = Party::voting(&store, 3).await;
    let mut follower = party.rooms.subscribe(party.code).await.unwrap();
    let numbers = || async {
        let (state, page) =
            (party.rooms.view(party.code).await.unwrap(), party.rooms.events_after(party.code, 0));
        let page = page.await.unwrap();
        (state.sequence, page.last, page.events.len())
    };
    let before = numbers().await;
    party.vote(1, &[1]).await.unwrap();
    hear(&mut follower, before.0).await;
    assert_eq!(numbers().await, before, "one has voted");
    party.vote(2, &[1]).await.unwrap();
    assert_eq!(numbers().await, before, "two have voted");
    assert_eq!(
        party.rooms.view(party.code).await.unwrap().expires_at % 60_000,
        0,
        "nor by the end of the room"
    );
    assert_eq!(party.sync_master().await.votes_received_player_ids.unwrap(), [player(1), player(2)]);
    assert!(party.sync(1).await.game.unwrap().voted);
    party.vote(3, &[1]).await.unwrap();
    assert_eq!(numbers().await.0, before.0 + 1, "the end of the vote is news to everybody");
}
