//! Votes.

use super::*;
use emberkeep_games::party::limits::COUNTDOWN;

fn closed(events: &[Event]) -> Vec<(i64, CloseReason)> {
    let closing = |event: &Event| match event {
        Event::VoteClosed { closed_at, reason, .. } => Some((*closed_at, *reason)),
        _ => None,
    };
    events.iter().filter_map(closing).collect()
}

pub async fn a_vote_and_its_receipt_are_stored_as_the_document_says(store: Store) {
    let party = Party::voting(&store, 3).await;
    let voted = party.vote(1, &[2, 1]).await.unwrap();
    assert_eq!(voted, VoteReceipt { player_id: player(1), closed: false });
    let votes = party.read(party.raw(&VOTES.key(round(1), item(1))), Read::HGetAll).await;
    let vote = (Bytes::from_static(b"p1"), Bytes::from_static(br#"["s2","s1"]"#));
    assert_eq!(votes, Reply::Pairs(vec![vote]));
    assert_eq!(party.scope.smembers(&VOTES_RECEIVED.key(round(1), item(1))).await, Ok(vec![player(1)]));
    assert_eq!(party.sync_master().await.votes_received_player_ids, Some(vec![player(1)]));
    assert!(party.sync(1).await.game.unwrap().voted);
    assert!(!party.sync(2).await.game.unwrap().voted);
    party.all_end_together().await;
}

pub async fn the_first_vote_counts(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    assert_eq!(party.vote(1, &[3]).await, Err(Error::AlreadyVoted(player(1))));
    party.vote(2, &[3]).await.unwrap();
    let results = party.sync_master().await.current_vote_results.unwrap();
    assert_eq!(results.players[0].selections.0, senders(&[1]));
}

pub async fn a_selection_is_one_to_k_different_selectable_senders(store: Store) {
    let party = Party::playing(&store, 2).await;
    party
        .external_change(&ROOM_STATE.key(), |state| state["lobby"]["senders"][3]["active"] = false.into())
        .await;
    party.open(1, 1).await.unwrap();
    for chosen in [&[][..], &[1, 2, 3], &[1, 1], &[9], &[4]] {
        assert_eq!(code_of(party.vote(1, chosen).await), "invalid_selection", "{chosen:?}");
    }
    assert_eq!(party.sync_master().await.votes_received_player_ids, Some(vec![]));
    party.vote(1, &[3, 1]).await.unwrap();
}

pub async fn with_the_last_vote_the_vote_ends(store: Store) {
    let party = Party::voting(&store, 3).await;
    for n in 1..=2 {
        assert!(!party.vote(n, &[1]).await.unwrap().closed);
    }
    assert_eq!(party.status().await, "vote");
    assert!(party.vote(3, &[1]).await.unwrap().closed);
    assert_eq!(party.status().await, "reveal_wait");
    let ends = closed(&party.events().await);
    assert!(matches!(ends[..], [(_, CloseReason::AllVoted)]), "{ends:?}");
    assert_eq!(party.vote(3, &[1]).await, Err(Error::Late));
    party.all_end_together().await;
}

pub async fn only_a_device_with_a_player_votes_and_only_on_what_is_open(store: Store) {
    let party = Party::set_up(&store, 2).await;
    assert_eq!(code_of(party.vote(1, &[1]).await), "not_in_phase");
    let party = Party::playing(&store, 2).await;
    assert_eq!(code_of(party.vote(1, &[1]).await), "not_in_phase");
    party.open(1, 1).await.unwrap();
    assert_eq!(code_of(party.vote(9, &[1]).await), "not_claimed");
    assert_eq!(code_of(party.vote_on(1, 1, 2, &[1]).await), "not_in_phase");
    assert_eq!(code_of(party.vote_on(1, 2, 1, &[1]).await), "not_in_phase");
    assert_eq!(code_of(party.vote_on(1, 1, 9, &[1]).await), "invalid_payload");
}

pub async fn a_forced_close_counts_down_once(store: Store) {
    let party = Party::voting(&store, 2).await;
    let before = store.now().await.unwrap();
    let closes_at = party.rooms.force_close_vote(&party.master).await.unwrap();
    let countdown = COUNTDOWN.as_millis() as i64;
    assert!((countdown - 100..countdown + 2_000).contains(&(closes_at - before)), "{}", closes_at - before);
    assert_eq!(party.rooms.force_close_vote(&party.master).await, Ok(closes_at), "the first one goes on");
    assert_eq!(party.sync(1).await.next_deadline, Some(closes_at));
    assert_eq!(party.rooms.settle(party.code).await, Ok(Settlement { next_deadline: Some(closes_at) }));
    assert_eq!(party.status().await, "vote");
    let closing = Event::VoteClosing { round_id: round(1), item_id: item(1), closes_at };
    assert_eq!(party.events().await.iter().filter(|event| **event == closing).count(), 1);
    party.vote(1, &[1]).await.unwrap();
    assert!(party.vote(2, &[1]).await.unwrap().closed, "all have voted before the countdown was over");
    assert_eq!(party.sync(1).await.next_deadline, None);
}

pub async fn the_first_call_after_the_countdown_ends_the_vote_at_its_moment(store: Store) {
    for visitor in 0..4 {
        let party = Party::voting(&store, 2).await;
        party.vote(1, &[1]).await.unwrap();
        party.rooms.force_close_vote(&party.master).await.unwrap();
        let at = party.pass_deadline().await;
        match visitor {
            0 => assert_eq!(party.vote(2, &[1]).await, Err(Error::Late)),
            1 => assert_eq!(party.sync(2).await.game.unwrap().closes_at, None),
            2 => assert_eq!(party.rooms.settle(party.code).await, Ok(Settlement { next_deadline: None })),
            // A refused call ends it as well.
            _ => assert_eq!(code_of(party.rooms.start_game(&party.master).await), "not_in_phase"),
        }
        assert_eq!(party.status().await, "reveal_wait");
        assert_eq!(closed(&party.events().await), [(at, CloseReason::Forced)]);
        assert_eq!(party.vote(2, &[1]).await, Err(Error::Late));
        let results = party.sync_master().await.current_vote_results.unwrap();
        assert_eq!(results.players.len(), 1, "only the vote in time counts");
        party.all_end_together().await;
    }
}

pub async fn the_vote_ends_when_those_who_have_not_voted_go(store: Store) {
    for way in 0..3 {
        let party = Party::voting(&store, 3).await;
        party.vote(1, &[1]).await.unwrap();
        party.vote(2, &[1]).await.unwrap();
        match way {
            0 => party.rooms.toggle_player(&party.master, &player(3), false).await.unwrap(),
            1 => party.rooms.delete_player(&party.master, &player(3)).await.unwrap(),
            _ => drop(party.rooms.release_player(party.code, &device(3)).await.unwrap()),
        }
        assert_eq!(party.status().await, "reveal_wait", "way {way}");
        assert_eq!(closed(&party.events().await).len(), 1);
        party.all_end_together().await;
    }
}

pub async fn a_vote_is_its_players_whichever_device_cast_it(store: Store) {
    let party = Party::voting(&store, 3).await;
    party.vote(1, &[1, 2]).await.unwrap();
    party.rooms.release_player(party.code, &device(1)).await.unwrap();
    party.take(9, 1).await.unwrap();
    assert_eq!(party.vote(9, &[3]).await, Err(Error::AlreadyVoted(player(1))));
    assert_eq!(code_of(party.vote(1, &[3]).await), "not_claimed");
    party.vote(2, &[3]).await.unwrap();
    party.vote(3, &[3]).await.unwrap();
    party.rooms.reveal(&party.master).await.unwrap();
    assert_eq!(party.sync(9).await.scores.0[&player(1)], 2);
}

pub async fn the_vote_of_a_deactivated_player_counts_and_of_a_deleted_one_does_not(store: Store) {
    let party = Party::voting(&store, 4).await;
    party.vote(1, &[1]).await.unwrap();
    party.vote(2, &[1]).await.unwrap();
    party.rooms.toggle_player(&party.master, &player(1), false).await.unwrap();
    party.rooms.delete_player(&party.master, &player(2)).await.unwrap();
    assert_eq!(party.sync_master().await.votes_received_player_ids, Some(vec![player(1)]));
    party.vote(3, &[3]).await.unwrap();
    party.vote(4, &[3]).await.unwrap();
    let results = party.sync_master().await.current_vote_results.unwrap();
    let points: Vec<_> =
        results.players.iter().map(|result| (result.player_id.clone(), result.points)).collect();
    assert_eq!(points, [(player(1), 1), (player(3), 0), (player(4), 0)]);
}

pub async fn without_a_voter_the_master_ends_the_vote(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.rooms.reset_claims(&party.master).await.unwrap();
    assert_eq!(party.status().await, "vote");
    // Who comes back votes on.
    party.take(5, 2).await.unwrap();
    assert!(party.vote(5, &[1]).await.unwrap().closed);
    let party = Party::voting(&store, 2).await;
    party.rooms.reset_claims(&party.master).await.unwrap();
    party.rooms.force_close_vote(&party.master).await.unwrap();
    party.pass_deadline().await;
    party.rooms.settle(party.code).await.unwrap();
    assert_eq!(party.status().await, "reveal_wait");
}

pub async fn a_device_that_comes_back_votes_on(store: Store) {
    let party = Party::voting(&store, 2).await;
    let joined = party.rooms.join(party.code, &device(1), 1).await.unwrap();
    assert_eq!(joined.my_player_id, Some(player(1)));
    party.vote(1, &[1]).await.unwrap();
    assert!(party.sync(1).await.game.unwrap().voted);
}

pub async fn votes_on_an_item_that_was_left_behind_are_late_and_gone(store: Store) {
    let party = Party::voting(&store, 2).await;
    let keys =
        |names: Vec<String>| names.into_iter().filter(|name| name.starts_with("vote")).collect::<Vec<_>>();
    party.vote(1, &[1]).await.unwrap();
    party.vote(2, &[1]).await.unwrap();
    assert_eq!(keys(party.names().await), ["vote:r1:i1", "vote_received:r1:i1"]);
    party.open(1, 2).await.unwrap();
    assert_eq!(keys(party.names().await), [""; 0], "only the current item has votes");
    assert_eq!(party.vote_on(1, 1, 1, &[1]).await, Err(Error::Late));
    party.vote_on(1, 1, 2, &[1]).await.unwrap();
    assert_eq!(keys(party.names().await), ["vote:r1:i2", "vote_received:r1:i2"]);
    party.all_end_together().await;
}
