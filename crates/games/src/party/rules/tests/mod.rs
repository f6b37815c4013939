//! The rules of a room, also on random games.

use super::*;
use crate::party::event::{CloseReason, Event};
use crate::party::model::*;
use crate::party::request::*;
use proptest::prelude::*;

fn player(n: u32) -> PlayerId {
    PlayerId::new(format!("p{n}")).unwrap()
}

fn sender(n: u32) -> SenderId {
    SenderId::new(format!("s{n}")).unwrap()
}

fn round(n: u32) -> RoundId {
    RoundId::new(format!("r{n}")).unwrap()
}

fn item(n: u32) -> ItemId {
    ItemId::new(format!("i{n}")).unwrap()
}

/// A lobby of so many players; as many items as each number says in its round, all of them sent by `truth`.
fn lobby(players: u32, rounds: &[u32], k: u32, truth: &[u32]) -> State {
    let an_item = |n| SetupItem {
        item_id: item(n),
        reel_url: "https://example.org".into(),
        k,
        true_sender_ids: truth.iter().map(|n| sender(*n)).collect(),
    };
    let a_round = |(at, items): (usize, &u32)| SetupRound {
        round_id: round(at as u32 + 1),
        items: (1..=*items).map(an_item).collect(),
    };
    let setup = Setup {
        senders: (1..=6)
            .map(|n| SetupSender {
                sender_id: sender(n),
                name: "Sender".into(),
                active: n < 6,
                reels_count: 0,
            })
            .collect(),
        rounds: rounds.iter().enumerate().map(a_round).collect(),
        players: (1..=players).map(|n| SetupPlayer::new(player(n), "Player")).collect(),
    };
    let mut state = State::in_lobby(RoomCode::new("ABCDEF").unwrap());
    set_up(&mut state, &setup).unwrap();
    state
}

fn all_claimed(players: u32) -> Vec<(DeviceId, PlayerId)> {
    (1..=players).map(|n| (DeviceId::new(format!("d{n}")).unwrap(), player(n))).collect()
}

#[test]
fn equal_points_are_one_rank_and_the_next_is_as_far_behind() {
    let mut state = lobby(4, &[1], 1, &[1]);
    for (n, points) in [(1, 2), (2, 5), (3, 2), (4, 0)] {
        state.scores.0.insert(player(n), points);
    }
    let ranked = ranking(&state, &state.scores);
    let shown: Vec<_> = ranked.iter().map(|r| (r.rank, r.player_id.as_str(), r.score)).collect();
    assert_eq!(shown, [(1, "p2", 5), (2, "p1", 2), (2, "p3", 2), (4, "p4", 0)]);
}

#[test]
fn a_sender_that_is_not_active_is_not_selectable() {
    let mut state = lobby(2, &[1], 5, &[1]);
    start(&mut state, &all_claimed(2)).unwrap();
    open(&mut state, &round(1), &item(1)).unwrap();
    assert_eq!(checked_selections(&state, &[sender(6)]).unwrap_err().code(), "invalid_selection");
    assert!(checked_selections(&state, &[sender(5)]).is_ok());
}

#[test]
fn a_lobby_over_the_bound_may_become_smaller() {
    let mut state = lobby(2, &[1], 1, &[1]);
    state.lobby.players[0].avatar_url = Some("x".repeat(crate::party::limits::LOBBY_BYTES_MAX));
    assert_eq!(
        rename_player(&mut state.clone(), &player(2), "Longer name").unwrap_err().code(),
        "invalid_payload"
    );
    assert!(rename_player(&mut state.clone(), &player(2), "Ben").is_ok_and(|event| event.is_some()));
    let added = add_player(&mut state, &SetupPlayer::new(player(3), "Eve"));
    assert_eq!(added.unwrap_err().code(), "invalid_payload");
}

#[test]
fn a_refused_setup_changes_nothing() {
    let mut state = State::in_lobby(RoomCode::new("ABCDEF").unwrap());
    let before = state.clone();
    assert!(set_up(&mut state, &Setup::default()).is_err());
    assert_eq!(state, before);
}

#[test]
fn a_name_is_trimmed_and_counted_in_characters() {
    assert_eq!(checked_name("  ä b ").unwrap(), "ä b");
    assert_eq!(checked_name(&"ä".repeat(64)).unwrap().chars().count(), 64);
    for name in ["", "   ", &"x".repeat(65), "a\u{0}b", "a\nb"] {
        assert_eq!(checked_name(name).unwrap_err().code(), "invalid_payload", "{name:?}");
    }
}

#[test]
fn a_name_can_be_seen_and_does_not_turn_its_neighbours_around() {
    for name in [
        "\u{200b}",
        "\u{feff}",
        "\u{202e}evil",
        "Ann\u{200b}",
        "a\u{2028}b",
        "\u{200d}\u{fe0f}",
        "\u{301}",
        "\u{3164}",
        "\u{2066}x",
    ] {
        assert_eq!(checked_name(name).unwrap_err().code(), "invalid_payload", "{name:?}");
    }
    for name in ["👨\u{200d}👩\u{200d}👧", "❤\u{fe0f}", "e\u{301}", "شیرین\u{200c}ها", "<b>"] {
        assert_eq!(checked_name(name).unwrap(), name);
    }
}

#[test]
fn an_address_is_one_of_the_web() {
    for url in [
        "javascript:alert(1)",
        "JavaScript://x/%0aalert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//x",
        "x",
        "https://",
        "https:///x",
        "ftp://x/y",
        "https://x\u{202e}y",
    ] {
        assert_eq!(checked_url(url).unwrap_err().code(), "invalid_payload", "{url}");
    }
    for url in ["https://reels.example/1?a=b#c", "HTTP://x", "http://127.0.0.1:8080/ä"] {
        assert_eq!(checked_url(url).unwrap(), url);
    }
}

#[test]
fn the_state_that_every_client_is_sent_is_bounded() {
    use crate::party::limits::*;
    let long = |n: usize, name: &str| SetupPlayer {
        avatar_url: Some(format!("https://x/{}", "y".repeat(URL_BYTES_MAX - 10))),
        ..SetupPlayer::new(PlayerId::new(format!("p{n}")).unwrap(), name)
    };
    let mut state = lobby(2, &[1], 1, &[1]);
    let mut added = 0;
    while add_player(&mut state.clone(), &long(added + 10, "x")).is_ok() {
        add_player(&mut state, &long(added + 10, "x")).unwrap();
        added += 1;
    }
    assert!((25..40).contains(&added), "{added} players with the longest addresses");
    let refused = add_player(&mut state.clone(), &long(99, "x")).unwrap_err();
    assert!(refused.to_string().contains("shorten names"), "{refused}");
    let before = serde_json::to_vec(&state.lobby).unwrap().len();
    assert!(before <= LOBBY_BYTES_MAX && before > LOBBY_BYTES_MAX / 2);
    let ids = |n: usize| SenderId::new(format!("{n:0>64}")).unwrap();
    let setup = Setup {
        senders: (0..40)
            .map(|n| SetupSender { sender_id: ids(n), name: "S".into(), active: true, reels_count: 0 })
            .collect(),
        rounds: vec![SetupRound {
            round_id: round(1),
            items: vec![SetupItem {
                item_id: item(1),
                reel_url: "https://x".into(),
                k: 40,
                true_sender_ids: vec![ids(0)],
            }],
        }],
        players: vec![],
    };
    let mut state = State::in_lobby(RoomCode::new("ABCDEF").unwrap());
    assert!(set_up(&mut state, &setup).unwrap_err().to_string().contains("the ids of the senders are long"));
}

/// Votes of some of the players.
fn votes(players: u32) -> impl Strategy<Value = Ballots> {
    let vote = prop::collection::vec((1..8u32).prop_map(sender), 0..5);
    prop::collection::btree_map((1..=players + 1).prop_map(player), vote, 0..=players as usize)
}

proptest! {
    /// Whatever was voted, a game ends, and its points are those of the right senders, each counted once.
    #[test]
    fn a_game_always_ends_and_its_points_add_up(
        rounds in prop::collection::vec(1..4u32, 1..4),
        truth in prop::sample::subsequence(vec![1, 2, 3, 4, 5], 1..=3),
        k in 1..=3u32,
        votes in prop::collection::vec(votes(3), 12),
        show in prop::collection::vec(any::<bool>(), 12),
    ) {
        let mut state = lobby(3, &rounds, k, &truth);
        start(&mut state, &all_claimed(3)).unwrap();
        let (mut played, mut expected) = (0, 0);
        for (r, items) in rounds.iter().enumerate() {
            for i in 1..=*items {
                open(&mut state, &round(r as u32 + 1), &item(i)).unwrap();
                prop_assert!(open(&mut state, &round(r as u32 + 1), &item(i)).is_err());
                close(&mut state, &votes[played], 7, CloseReason::Forced).unwrap();
                let results = state.game.as_ref().unwrap().results.clone().unwrap();
                for result in results.players.iter() {
                    prop_assert!(result.selections.len() <= k as usize);
                    prop_assert!((0..=k as i64).contains(&result.points));
                    expected += result.points;
                }
                if show[played] {
                    reveal(&mut state).unwrap();
                }
                played += 1;
            }
            let events = next_round(&mut state).unwrap();
            prop_assert!(matches!(events.last(), Some(Event::RoundScored { .. })), "{:?}", events);
            prop_assert_eq!(state.game.as_ref().unwrap().status, Status::RoundScore);
            let before = state.scores.clone();
            let events = next_round(&mut state).unwrap();
            prop_assert_eq!(&state.scores, &before, "going on adds no points");
            let last = r + 1 == rounds.len();
            prop_assert_eq!(matches!(events[..], [Event::GameOver { .. }]), last);
        }
        prop_assert_eq!(state.phase, Phase::GameOver);
        prop_assert_eq!(state.scores.0.values().sum::<i64>(), expected);
    }

    /// A vote is complete when every active player with a device has voted, and such a player exists.
    #[test]
    fn a_vote_is_complete_when_all_who_can_have_voted(
        active: [bool; 4],
        claimed: [bool; 4],
        voted: [bool; 4],
    ) {
        let mut state = lobby(4, &[1], 1, &[1]);
        for (player, active) in state.lobby.players.iter_mut().zip(active) {
            player.active = active;
        }
        let mut claims = all_claimed(4);
        let mut kept = claimed.iter();
        claims.retain(|_| *kept.next().unwrap());
        let votes: Ballots = (0..4).filter(|n| voted[*n]).map(|n| (player(n as u32 + 1), vec![])).collect();
        let voters: Vec<usize> = (0..4).filter(|n| active[*n] && claimed[*n]).collect();
        let expected = !voters.is_empty() && voters.iter().all(|n| voted[*n]);
        prop_assert_eq!(is_complete(&state, &claims, &votes), expected);
    }

    /// Ranks are those of a competition: one more than there are better ones.
    #[test]
    fn a_rank_is_one_more_than_there_are_better_ones(points in prop::collection::vec(0..4i64, 5)) {
        let mut state = lobby(5, &[1], 1, &[1]);
        for (n, points) in points.iter().enumerate() {
            state.scores.0.insert(player(n as u32 + 1), *points);
        }
        let ranked = ranking(&state, &state.scores);
        prop_assert_eq!(ranked.len(), 5);
        for one in &ranked {
            let better = points.iter().filter(|points| **points > one.score).count() as u32;
            prop_assert_eq!(one.rank, better + 1);
        }
        prop_assert!(ranked.windows(2).all(|two| two[0].score >= two[1].score));
    }
}
