//! Concurrent calls.

use super::*;
use std::collections::BTreeSet;
use tokio::task::JoinSet;

pub async fn of_64_devices_each_player_gets_one(store: Store) {
    const PLAYERS: u32 = 8;
    const DEVICES: u32 = 64;
    let party = Party::set_up(&store, PLAYERS).await;
    for turn in 0..10 {
        let mut devices = JoinSet::new();
        for d in 0..DEVICES {
            let party = party.clone();
            // Each wants every player, in an order of its own.
            devices.spawn(async move {
                for n in 0..PLAYERS {
                    match party.take(d, (n + d + turn) % PLAYERS + 1).await {
                        Ok(()) => return true,
                        Err(Error::TakenNow(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                false
            });
        }
        let winners = devices.join_all().await.into_iter().filter(|won| *won).count();
        assert_eq!(winners as u32, PLAYERS, "turn {turn}");
        let forward = party.scope.hgetall(&DEVICE_TO_PLAYER.key()).await.unwrap();
        let backward = party.scope.hgetall(&PLAYER_TO_DEVICE.key()).await.unwrap();
        let there: BTreeSet<_> = forward.into_iter().collect();
        let back: BTreeSet<_> = backward.into_iter().map(|(player, device)| (device, player)).collect();
        assert_eq!(there, back, "both maps say the same");
        assert_eq!(there.len() as u32, PLAYERS);
        assert_eq!(party.rooms.reset_claims(&party.master).await, Ok(PLAYERS as usize));
    }
    party.all_end_together().await;
}

pub async fn of_many_votes_of_one_player_one_counts(store: Store) {
    let party = Party::voting(&store, 2).await;
    let mut votes = JoinSet::new();
    for n in 0..32_u32 {
        let party = party.clone();
        votes.spawn(async move { party.vote(1, &[n % 4 + 1]).await.map(|_| n % 4 + 1) });
    }
    let outcomes = votes.join_all().await;
    let counted: Vec<u32> = outcomes.iter().filter_map(|outcome| outcome.clone().ok()).collect();
    assert_eq!(counted.len(), 1);
    assert!(outcomes.iter().flatten().count() == 1);
    let refused = outcomes.into_iter().filter(|outcome| *outcome == Err(Error::AlreadyVoted(player(1))));
    assert_eq!(refused.count(), 31);
    party.vote(2, &[1]).await.unwrap();
    let results = party.sync_master().await.current_vote_results.unwrap();
    assert_eq!(results.players[0].selections.0, senders(&counted));
}

pub async fn votes_beside_the_end_of_the_vote_count_or_are_late(store: Store) {
    const PLAYERS: u32 = 12;
    for turn in 0..6 {
        let party = Party::voting(&store, PLAYERS).await;
        party.rooms.force_close_vote(&party.master).await.unwrap();
        let mut voters = JoinSet::new();
        for n in 1..=PLAYERS {
            let party = party.clone();
            voters.spawn(async move {
                for _ in 0..n % 4 {
                    tokio::task::yield_now().await;
                }
                (n, party.vote(n, &[1]).await)
            });
        }
        let ending = party.clone();
        let ender = tokio::spawn(async move {
            for _ in 0..turn {
                tokio::task::yield_now().await;
            }
            // As an external service would: the deadline is over from one moment to the next.
            let at = ending.store.now().await.unwrap() - 1;
            let key = ending.raw(&ROOM_STATE.key());
            let transaction = move |tx: &mut Tx<'_, Room>| {
                let Some(mut state) = tx.get(&ROOM_STATE.key())? else { return Ok(()) };
                if let Some(game) = state.game.as_mut().filter(|game| game.closes_at.is_some()) {
                    game.closes_at = Some(at);
                    let json = serde_json::to_vec(&state).unwrap();
                    tx.raw_write(key.clone(), Write::Set(Bytes::from(json), Expiry::Keep))?;
                }
                Ok::<_, hot::Error>(())
            };
            ending.scope.transact(transaction).await.unwrap();
            ending.rooms.settle(ending.code).await.unwrap();
        });
        let outcomes = voters.join_all().await;
        ender.await.unwrap();
        let mut counted = BTreeSet::new();
        for (n, outcome) in outcomes {
            match outcome {
                Ok(_) => drop(counted.insert(player(n))),
                Err(Error::Late) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let results = party.sync_master().await.current_vote_results.unwrap();
        let listed: BTreeSet<_> = results.players.iter().map(|result| result.player_id.clone()).collect();
        assert_eq!(listed, counted, "the result has exactly the acknowledged votes");
        let ends = party.events().await;
        let ends = ends.iter().filter(|event| matches!(event, Event::VoteClosed { .. })).count();
        assert_eq!(ends, 1, "it ended once");
    }
}

pub async fn many_timers_end_a_vote_once(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.rooms.force_close_vote(&party.master).await.unwrap();
    party.pass_deadline().await;
    let mut timers = JoinSet::new();
    for n in 0..16 {
        let party = party.clone();
        timers.spawn(async move {
            match n % 3 {
                0 => drop(party.sync(1).await),
                1 => drop(party.rooms.settle(party.code).await.unwrap()),
                _ => assert_eq!(party.vote(2, &[1]).await, Err(Error::Late)),
            }
        });
    }
    timers.join_all().await;
    let ends = party.events().await;
    assert_eq!(ends.iter().filter(|event| matches!(event, Event::VoteClosed { .. })).count(), 1);
}

pub async fn a_close_beside_other_calls_leaves_nothing(store: Store) {
    for _ in 0..10 {
        let party = Party::voting(&store, 6).await;
        let mut calls = JoinSet::new();
        for n in 1..=6 {
            let party = party.clone();
            calls.spawn(async move {
                let _ = party.vote(n, &[1]).await;
                let _ = party.rooms.sync(party.code, None).await;
                let _ = party.rooms.release_player(party.code, &device(n)).await;
            });
        }
        party.rooms.close(&party.master).await.unwrap();
        calls.join_all().await;
        assert_eq!(party.keys().await, [], "neither a key nor an entry of the log comes back");
    }
}
