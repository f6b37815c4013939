//! Random programs against a model: after every operation the room matches the model.

use super::*;
use emberkeep_hot::embedded::ManualClock;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a program does. Devices, players and senders are few, so that operations meet.
#[derive(Clone, Debug)]
pub enum Op {
    Take(u32, u32),
    Release(u32),
    Toggle(u32, bool),
    Delete(u32),
    Add(u32),
    Reset,
    Start,
    Open,
    Vote(u32, Vec<u32>),
    Force,
    Wait(u64),
    Settle,
    Reveal,
    NextRound,
}

pub fn programs() -> impl Strategy<Value = Vec<Op>> {
    let (d, p) = (1..5u32, 1..5u32);
    let op = prop_oneof![
        8 => (d.clone(), p.clone()).prop_map(|(d, p)| Op::Take(d, p)),
        2 => d.clone().prop_map(Op::Release),
        2 => (p.clone(), any::<bool>()).prop_map(|(p, on)| Op::Toggle(p, on)),
        1 => p.clone().prop_map(Op::Delete),
        1 => p.prop_map(Op::Add),
        1 => Just(Op::Reset),
        3 => Just(Op::Start),
        6 => Just(Op::Open),
        12 => (d, prop::collection::vec(1..6u32, 0..3)).prop_map(|(d, chosen)| Op::Vote(d, chosen)),
        2 => Just(Op::Force),
        3 => (0..8_000u64).prop_map(Op::Wait),
        1 => Just(Op::Settle),
        2 => Just(Op::Reveal),
        3 => Just(Op::NextRound),
    ];
    prop::collection::vec(op, 1..80)
}

/// What the game waits for, as the model knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Lobby,
    Idle,
    Vote,
    Wait,
    /// All items of the round were shown, its points not yet.
    Shown,
    RoundScore,
    Over,
}

/// What should be.
struct Model {
    party: Party,
    clock: ManualClock,
    /// Whether each player is active.
    players: BTreeMap<u32, bool>,
    devices: BTreeMap<u32, u32>,
    scores: BTreeMap<u32, i64>,
    at: At,
    round: u32,
    item: u32,
    closes_at: Option<i64>,
    votes: BTreeMap<u32, Vec<u32>>,
    counted: BTreeMap<u32, i64>,
    ends: usize,
}

/// Runs a program on a store of its own.
pub async fn run(store: Store, clock: ManualClock, program: Vec<Op>) {
    let party = Party::set_up(&store, 3).await;
    let players: BTreeMap<u32, bool> = (1..=3).map(|p| (p, true)).collect();
    let scores = players.keys().map(|p| (*p, 0)).collect();
    let mut model = Model {
        party,
        clock,
        players,
        devices: BTreeMap::new(),
        scores,
        at: At::Lobby,
        round: 1,
        item: 1,
        closes_at: None,
        votes: BTreeMap::new(),
        counted: BTreeMap::new(),
        ends: 0,
    };
    for op in program {
        let done = model.make(&op).await;
        let expected = model.expect(&op);
        assert_eq!(done, expected, "{op:?}");
        model.compare(&op).await;
    }
}

impl Model {
    /// What the service says.
    async fn make(&self, op: &Op) -> std::result::Result<(), &'static str> {
        let (party, rooms, master) = (&self.party, &self.party.rooms, &self.party.master);
        let outcome = match op {
            Op::Take(d, p) => party.take(*d, *p).await,
            Op::Release(d) => rooms.release_player(party.code, &device(*d)).await.map(drop),
            Op::Toggle(p, active) => rooms.toggle_player(master, &player(*p), *active).await,
            Op::Delete(p) => rooms.delete_player(master, &player(*p)).await,
            Op::Add(p) => rooms.add_player(master, SetupPlayer::new(player(*p), "New")).await,
            Op::Reset => rooms.reset_claims(master).await.map(drop),
            Op::Start => rooms.start_game(master).await,
            Op::Open => party.open(self.round, self.next()).await,
            Op::Vote(d, chosen) => party.vote_on(*d, self.round, self.item, chosen).await.map(drop),
            Op::Force => rooms.force_close_vote(master).await.map(drop),
            Op::Wait(ms) => {
                self.clock.advance(*ms);
                Ok(())
            }
            Op::Settle => rooms.settle(party.code).await.map(drop),
            Op::Reveal => rooms.reveal(master).await,
            Op::NextRound => rooms.start_next_round(master).await,
        };
        outcome.map_err(|error| error.code())
    }

    /// The item that a master would open.
    fn next(&self) -> u32 {
        if self.at == At::Wait { self.item + 1 } else { self.item }
    }

    /// What should happen.
    fn expect(&mut self, op: &Op) -> std::result::Result<(), &'static str> {
        if let Op::Wait(_) = op {
            return Ok(());
        }
        self.settle();
        let outcome = self.expect_op(op);
        self.settle();
        outcome
    }

    fn expect_op(&mut self, op: &Op) -> std::result::Result<(), &'static str> {
        match op {
            Op::Take(d, p) => self.expect_take(*d, *p),
            Op::Release(d) => self.devices.remove(d).map(drop).ok_or("not_claimed"),
            Op::Toggle(p, active) => {
                let known = self.players.get_mut(p).ok_or("player_not_found")?;
                if *known && !active {
                    self.devices.retain(|_, taken| taken != p);
                }
                *known = *active;
                Ok(())
            }
            Op::Delete(p) => {
                self.players.remove(p).ok_or("player_not_found")?;
                self.devices.retain(|_, taken| taken != p);
                self.votes.remove(p);
                self.scores.remove(p);
                Ok(())
            }
            Op::Add(p) => match (self.at, self.players.contains_key(p)) {
                (At::Lobby, false) => {
                    self.players.insert(*p, true);
                    self.scores.insert(*p, 0);
                    Ok(())
                }
                (At::Lobby, true) => Err("conflict"),
                _ => Err("not_in_phase"),
            },
            Op::Reset => {
                self.devices.clear();
                Ok(())
            }
            Op::Start => self.expect_start(),
            Op::Open => self.expect_open(),
            Op::Vote(d, chosen) => self.expect_vote(*d, chosen),
            Op::Force => match self.at {
                At::Vote => {
                    self.closes_at.get_or_insert(self.clock.now() + 10_000);
                    Ok(())
                }
                _ => Err("not_in_phase"),
            },
            Op::Wait(_) | Op::Settle => Ok(()),
            Op::Reveal if self.at == At::Wait => {
                self.reveal();
                Ok(())
            }
            Op::Reveal => Err("not_in_phase"),
            Op::NextRound => self.expect_next_round(),
        }
    }

    fn expect_take(&mut self, d: u32, p: u32) -> std::result::Result<(), &'static str> {
        if self.at == At::Over {
            return Err("not_in_phase");
        }
        if self.devices.contains_key(&d) {
            return Err("device_already_has_player");
        }
        let active = *self.players.get(&p).ok_or("player_not_found")?;
        if self.devices.values().any(|taken| *taken == p) {
            return Err("taken_now");
        }
        if !active {
            return Err("inactive");
        }
        self.devices.insert(d, p);
        Ok(())
    }

    fn expect_start(&mut self) -> std::result::Result<(), &'static str> {
        let active: Vec<_> = self.players.iter().filter(|(_, active)| **active).map(|(p, _)| *p).collect();
        if self.at != At::Lobby {
            return Err("not_in_phase");
        }
        if active.len() < 2 {
            return Err("not_enough_players");
        }
        if active.iter().any(|p| !self.devices.values().any(|taken| taken == p)) {
            return Err("not_claimed");
        }
        self.at = At::Idle;
        Ok(())
    }

    fn expect_open(&mut self) -> std::result::Result<(), &'static str> {
        match self.at {
            At::Wait if self.item == 1 => self.reveal(),
            At::Idle => {}
            _ => return Err("not_in_phase"),
        }
        self.at = At::Vote;
        self.votes.clear();
        Ok(())
    }

    fn expect_vote(&mut self, d: u32, chosen: &[u32]) -> std::result::Result<(), &'static str> {
        match self.at {
            At::Lobby | At::Idle => return Err("not_in_phase"),
            At::Wait | At::Shown | At::RoundScore | At::Over => return Err("late"),
            At::Vote => {}
        }
        let p = *self.devices.get(&d).ok_or("not_claimed")?;
        let distinct: BTreeSet<_> = chosen.iter().collect();
        if chosen.is_empty() || distinct.len() < chosen.len() || chosen.contains(&5) {
            return Err("invalid_selection");
        }
        if self.votes.contains_key(&p) {
            return Err("already_voted");
        }
        self.votes.insert(p, chosen.to_vec());
        Ok(())
    }

    fn expect_next_round(&mut self) -> std::result::Result<(), &'static str> {
        match self.at {
            At::Wait if self.item == 2 => {
                self.reveal();
                self.at = At::RoundScore;
            }
            At::Shown => self.at = At::RoundScore,
            At::RoundScore if self.round == 1 => (self.round, self.item, self.at) = (2, 1, At::Idle),
            At::RoundScore => self.at = At::Over,
            _ => return Err("not_in_phase"),
        }
        Ok(())
    }

    /// Ends the vote if it is due.
    fn settle(&mut self) {
        if self.at != At::Vote {
            return;
        }
        let over = self.closes_at.is_some_and(|at| self.clock.now() >= at);
        let voters: Vec<_> = self.devices.values().filter(|p| self.players.get(p) == Some(&true)).collect();
        let all = !voters.is_empty() && voters.iter().all(|p| self.votes.contains_key(p));
        if over || all {
            let right = |chosen: &Vec<u32>| chosen.iter().filter(|s| **s <= 2).count() as i64;
            self.counted = self.votes.iter().map(|(p, chosen)| (*p, right(chosen))).collect();
            (self.at, self.closes_at) = (At::Wait, None);
            self.ends += 1;
        }
    }

    fn reveal(&mut self) {
        for (p, points) in std::mem::take(&mut self.counted) {
            if let Some(score) = self.scores.get_mut(&p) {
                *score += points;
            }
        }
        if self.item == 1 {
            (self.item, self.at) = (2, At::Idle);
        } else {
            self.at = At::Shown;
        }
    }

    /// The room is what the model says.
    async fn compare(&mut self, op: &Op) {
        // A look settles what a wait made due.
        self.settle();
        let sync = self.party.sync(1).await;
        let found: Vec<_> = sync.players_visible.iter().map(|p| (p.player_id.clone(), p.active)).collect();
        let mut players: Vec<_> = self.players.iter().map(|(p, active)| (player(*p), *active)).collect();
        players.sort();
        let mut sorted = found;
        sorted.sort();
        assert_eq!(sorted, players, "{op:?}");
        for d in 1..5 {
            let expected = self.devices.get(&d).filter(|p| self.players.get(p) == Some(&true));
            assert_eq!(
                self.party.player_of(d).await,
                expected.map(|p| player(*p)),
                "device {d} after {op:?}"
            );
        }
        let scores: BTreeMap<_, _> = self.scores.iter().map(|(p, points)| (player(*p), *points)).collect();
        assert_eq!(sync.scores.0, scores, "{op:?}");
        let status = match self.at {
            At::Lobby => "null",
            At::Idle | At::Shown => "\"idle\"",
            At::Vote => "\"vote\"",
            At::Wait => "\"reveal_wait\"",
            At::RoundScore | At::Over => "\"round_score\"",
        };
        let found = serde_json::to_value(&sync).unwrap()["game"]["status"].to_string();
        assert_eq!(found, status, "{op:?}");
        assert_eq!(sync.next_deadline, self.closes_at, "{op:?}");
        let ends = self.party.events().await;
        assert_eq!(
            ends.iter().filter(|e| matches!(e, Event::VoteClosed { .. })).count(),
            self.ends,
            "{op:?}"
        );
        assert_eq!(sync.sequence, ends.len() as u64);
        self.party.all_end_together().await;
    }
}
