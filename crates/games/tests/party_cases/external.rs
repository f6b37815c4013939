//! An external service that writes the room's keys between our transactions.

use super::*;

pub async fn an_external_vote_counts_like_ours(store: Store) {
    let party = Party::voting(&store, 2).await;
    // HSETNX, SADD: its key has no end until we come by.
    party.external_hset(&VOTES.key(round(1), item(1)), "p1", r#"["s1","s2"]"#).await;
    let received = Write::SAdd(vec![Bytes::from_static(b"p1")]);
    party.external(&VOTES_RECEIVED.key(round(1), item(1)), received).await;
    assert_eq!(party.vote(1, &[3]).await, Err(Error::AlreadyVoted(player(1))));
    assert_eq!(party.sync_master().await.votes_received_player_ids, Some(vec![player(1)]));
    party.all_end_together().await;
    assert!(party.vote(2, &[3]).await.unwrap().closed);
    party.rooms.reveal(&party.master).await.unwrap();
    assert_eq!(party.sync(1).await.scores.0[&player(1)], 2);
}

pub async fn a_vote_that_an_external_service_completes_ends_with_the_next_look(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    party.external_hset(&VOTES.key(round(1), item(1)), "p2", r#"["s2"]"#).await;
    assert_eq!(party.status().await, "vote", "our service has not read it yet");
    let sync = party.sync(1).await;
    assert_eq!(party.status().await, "reveal_wait");
    assert_eq!(sync.sequence, party.events().await.len() as u64, "the state includes the end that it made");
}

pub async fn external_votes_beyond_the_rules_count_as_far_as_they_go(store: Store) {
    let party = Party::voting(&store, 4).await;
    let votes = VOTES.key(round(1), item(1));
    party.external_hset(&votes, "p1", r#"["s1","s1","s9","s3","s2"]"#).await;
    party.external_hset(&votes, "p2", "rubbish").await;
    party.external_hset(&votes, "stranger", r#"["s1"]"#).await;
    party.vote(3, &[2]).await.unwrap();
    party.vote(4, &[4]).await.unwrap();
    let results = party.sync_master().await.current_vote_results.unwrap();
    let found: Vec<_> =
        results.players.iter().map(|r| (r.player_id.as_str(), r.selections.len(), r.points)).collect();
    assert_eq!(found, [("p1", 2, 1), ("p2", 0, 0), ("p3", 1, 1), ("p4", 1, 0)]);
}

pub async fn votes_that_were_cast_before_the_item_was_open_do_not_count(store: Store) {
    let party = Party::playing(&store, 2).await;
    party.external_hset(&VOTES.key(round(1), item(1)), "p1", r#"["s1"]"#).await;
    party.open(1, 1).await.unwrap();
    party.vote(1, &[2]).await.unwrap();
    party.all_end_together().await;
}

pub async fn leftovers_under_a_code_do_not_enter_a_new_room(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    // An external close that stopped after its first key.
    party.external(&ROOM_META.key(), Write::Del).await;
    assert_eq!(party.rooms.sync(party.code, None).await.unwrap_err(), Error::RoomNotFound(party.code));
    let after = super::rooms::successor(&party).await;
    assert_eq!(after.player_of(1).await, None);
    assert_eq!(after.names().await.iter().filter(|name| name.starts_with("vote")).count(), 0);
    assert_eq!(after.events().await, [Event::RoomCreated]);
    after.all_end_together().await;
}
