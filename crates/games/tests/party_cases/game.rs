//! A complete game.

use super::*;
use emberkeep_games::party::model::Phase;

pub async fn a_game_starts_with_two_active_players_all_taken(store: Store) {
    let party = Party::new(&store).await;
    assert_eq!(code_of(party.rooms.start_game(&party.master).await), "not_in_phase");
    let party = Party::set_up(&store, 3).await;
    party.take(1, 1).await.unwrap();
    party.take(2, 2).await.unwrap();
    assert_eq!(code_of(party.rooms.start_game(&party.master).await), "not_claimed");
    for n in [2, 3] {
        party.rooms.toggle_player(&party.master, &player(n), false).await.unwrap();
    }
    let refused = party.rooms.start_game(&party.master).await;
    assert_eq!(refused, Err(Error::NotEnoughPlayers { active: 1, needed: 2 }));
    party.rooms.toggle_player(&party.master, &player(2), true).await.unwrap();
    party.take(2, 2).await.unwrap();
    party.rooms.start_game(&party.master).await.unwrap();
    assert_eq!(party.sync(1).await.phase, Phase::Game);
    assert_eq!(party.status().await, "idle");
    party.all_end_together().await;
}

pub async fn a_whole_game_is_played_and_counted(store: Store) {
    let party = Party::playing(&store, 3).await;
    let points = |sync: PlayerSync| sync.scores.0.into_values().collect::<Vec<_>>();
    for r in 1..=2 {
        for i in 1..=2 {
            party.open(r, i).await.unwrap();
            party.all_end_together().await;
            party.vote_on(1, r, i, &[1, 2]).await.unwrap();
            party.vote_on(2, r, i, &[1, 3]).await.unwrap();
            party.vote_on(3, r, i, &[4]).await.unwrap();
        }
        assert_eq!(party.status().await, "reveal_wait");
        party.rooms.start_next_round(&party.master).await.unwrap();
        assert_eq!(party.status().await, "round_score");
        let game = party.sync(1).await.game.unwrap();
        let ranked: Vec<_> = game.ranking.unwrap().iter().map(|ranked| (ranked.rank, ranked.score)).collect();
        assert_eq!(ranked, [(1, 4), (2, 2), (3, 0)], "of this round");
        let total = i64::from(r);
        assert_eq!(points(party.sync(1).await), [4 * total, 2 * total, 0]);
        party.rooms.start_next_round(&party.master).await.unwrap();
        party.all_end_together().await;
    }
    let sync = party.sync(2).await;
    assert_eq!(sync.phase, Phase::GameOver);
    let winner = &sync.game.unwrap().ranking.unwrap()[0];
    assert_eq!((winner.rank, &winner.player_id, winner.score), (1, &player(1), 8));
    let events = party.events().await;
    let scored = events.iter().filter(|event| matches!(event, Event::RoundScored { .. })).count();
    let shown = events.iter().filter(|event| matches!(event, Event::ItemRevealed { .. })).count();
    assert_eq!((scored, shown), (2, 4));
    assert!(matches!(events.last(), Some(Event::GameOver { .. })));
    for refused in [
        party.rooms.start_next_round(&party.master).await,
        party.rooms.reveal(&party.master).await,
        party.open(1, 1).await,
        party.take(9, 1).await,
    ] {
        assert_eq!(code_of(refused), "not_in_phase");
    }
}

pub async fn items_are_opened_in_their_order(store: Store) {
    let party = Party::playing(&store, 2).await;
    assert_eq!(code_of(party.open(1, 2).await), "conflict");
    assert_eq!(code_of(party.open(2, 1).await), "conflict");
    let next = party.sync_master().await.next_item.unwrap();
    assert_eq!((next.round_id, next.item_id), (round(1), item(1)));
    party.open(1, 1).await.unwrap();
    assert_eq!(party.sync_master().await.next_item, None);
    assert_eq!(code_of(party.open(1, 2).await), "not_in_phase", "a vote is open");
    party.vote(1, &[1]).await.unwrap();
    party.vote(2, &[1]).await.unwrap();
    assert_eq!(code_of(party.open(1, 1).await), "conflict", "it was played");
    assert_eq!(code_of(party.rooms.start_next_round(&party.master).await), "not_in_phase");
    party.open(1, 2).await.unwrap();
    party.vote_on(1, 1, 2, &[1]).await.unwrap();
    party.vote_on(2, 1, 2, &[1]).await.unwrap();
    assert_eq!(code_of(party.open(2, 1).await), "not_in_phase", "the round is over");
    party.rooms.reveal(&party.master).await.unwrap();
    assert_eq!(code_of(party.rooms.reveal(&party.master).await), "not_in_phase", "shown once");
    assert_eq!(party.status().await, "idle", "the result is shown, and not the points of the round yet");
    assert_eq!(party.sync_master().await.next_item, None);
    assert_eq!(code_of(party.vote_on(1, 1, 2, &[1]).await), "late");
    assert_eq!(code_of(party.open(2, 1).await), "not_in_phase", "the points of the round come first");
    party.rooms.start_next_round(&party.master).await.unwrap();
    assert_eq!(party.status().await, "round_score");
    party.rooms.start_next_round(&party.master).await.unwrap();
    assert_eq!(party.status().await, "idle");
    party.open(2, 1).await.unwrap();
}

pub async fn points_are_added_once_and_when_they_are_shown(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1, 2]).await.unwrap();
    party.vote(2, &[3]).await.unwrap();
    assert_eq!(party.sync(1).await.scores.0[&player(1)], 0);
    party.rooms.reveal(&party.master).await.unwrap();
    assert_eq!(party.sync(1).await.scores.0[&player(1)], 2);
    party.open(1, 2).await.unwrap();
    assert_eq!(party.sync(1).await.scores.0[&player(1)], 2);
}

pub async fn a_forced_close_needs_an_open_vote(store: Store) {
    let party = Party::playing(&store, 2).await;
    assert_eq!(code_of(party.rooms.force_close_vote(&party.master).await), "not_in_phase");
    let lobby = Party::set_up(&store, 2).await;
    assert_eq!(code_of(lobby.rooms.force_close_vote(&lobby.master).await), "not_in_phase");
    assert_eq!(code_of(lobby.open(1, 1).await), "not_in_phase");
    assert_eq!(code_of(lobby.rooms.reveal(&lobby.master).await), "not_in_phase");
}
