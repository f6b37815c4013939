//! The plan in a model: two consumers that are paused and killed between any two of their steps, and a log that is set
//! back at any time. Each event counts at most once, and each that is in the log in the end counts exactly once.

use super::plan::{Claim, Run, closed, first_run, incarnation_of};
use crate::delivery::Entry;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;

fn entry(sequence: u64, mark: u32) -> Entry {
    Entry { sequence, mark, event: Ok(Bytes::new()) }
}

fn entries(marks: &[(u64, u32)]) -> Vec<Entry> {
    marks.iter().map(|(sequence, mark)| entry(*sequence, *mark)).collect()
}

fn claim(incarnation: &str, first: u64, marks: &[u32]) -> Claim {
    Claim { incarnation: incarnation.into(), first, marks: marks.into() }
}

fn run(incarnation: &str, len: usize, is_new: bool, next: &str) -> Run {
    Run { incarnation: incarnation.into(), len, is_new, next: next.into() }
}

#[test]
fn a_log_begins_with_an_incarnation_of_its_first_entry_and_goes_on_with_it() {
    let log = entries(&[(1, 0xa), (2, 0xb)]);
    assert_eq!(first_run("", &log, &[]), run("1-0000000a", 2, true, "1-0000000a"));
    assert_eq!(first_run("x", &log, &[]), run("x", 2, true, "x"));
}

#[test]
fn what_a_killed_consumer_claimed_goes_on_under_its_incarnation() {
    let log = entries(&[(1, 0xa), (2, 0xb), (3, 0xc)]);
    let claims = [claim("1-0000000a", 1, &[0xa, 0xb])];
    assert_eq!(first_run("", &log, &claims), run("1-0000000a", 2, false, "1-0000000a"));
    assert_eq!(first_run("1-0000000a", &log[2..], &claims), run("1-0000000a", 1, true, "1-0000000a"));
}

#[test]
fn entries_after_a_set_back_begin_a_new_incarnation() {
    let claims = [claim("i", 1, &[1, 2, 3, 4])];
    let log = entries(&[(1, 1), (2, 2), (3, 30), (4, 40), (5, 50)]);
    assert_eq!(first_run("", &log, &claims), run("i", 2, false, ""));
    assert_eq!(first_run("", &log[2..], &claims), run("3-0000001e", 3, true, "3-0000001e"));
    // A crash after the claim, and the set-back before the position was stored.
    assert_eq!(first_run("i", &log[2..], &claims), run("3-0000001e", 3, true, "3-0000001e"));
}

#[test]
fn a_closed_source_is_replaced_for_what_it_had_claimed() {
    let log = entries(&[(5, 0xa), (6, 0xb)]);
    let claims = [claim("5-0000000a", 5, &[0xa, 0xb])];
    let found = first_run(&closed("5-0000000a"), &log, &claims);
    assert_eq!(found, run("5-0000000a~", 2, true, "5-0000000a~"));
    assert_eq!(first_run(&closed("i"), &log, &[claim("i", 4, &[9, 0xa, 0xb])]).incarnation, "5-0000000a");
}

/// The stored state: what a history store has, and which events were counted.
#[derive(Default)]
struct Stored {
    position: Option<(String, u64, u32)>,
    claims: HashMap<(String, u64), Claim>,
    /// By source and key of totals.
    reached: HashMap<(String, u32), u64>,
    counted: HashMap<(u64, u32), u32>,
}

/// How far a consumer is in its round.
#[derive(Default)]
enum Step {
    #[default]
    Idle,
    Read {
        state: Option<(String, u64, u32)>,
        present: String,
        entries: Vec<Entry>,
        claims: Vec<Claim>,
    },
    Deliver {
        state: Option<(String, u64, u32)>,
        run: Run,
        entries: Vec<Entry>,
        done: usize,
    },
}

#[derive(Default)]
struct World {
    log: Vec<(u64, u32)>,
    marks: u32,
    stored: Stored,
    consumers: [Step; 2],
}

#[derive(Debug, Clone)]
enum Action {
    Append(u8),
    /// The log loses this share of its entries.
    SetBack(u8),
    /// A consumer takes its next step. A page has so many entries.
    Step(bool, u8),
    Kill(bool),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (1..5u8).prop_map(Action::Append),
        1 => any::<u8>().prop_map(Action::SetBack),
        9 => (any::<bool>(), 1..7u8).prop_map(|(which, page)| Action::Step(which, page)),
        1 => any::<bool>().prop_map(Action::Kill),
    ]
}

impl World {
    fn apply(&mut self, action: &Action) {
        match action {
            Action::Append(count) => (0..*count).for_each(|_| self.append()),
            Action::SetBack(share) => self.log.truncate(self.log.len() * *share as usize / 256),
            Action::Step(which, page) => self.step(*which as usize, *page as usize),
            Action::Kill(which) => self.consumers[*which as usize] = Step::Idle,
        }
    }

    fn append(&mut self) {
        self.marks += 1;
        let sequence = self.log.last().map_or(0, |(last, _)| *last) + 1;
        self.log.push((sequence, self.marks));
    }

    fn step(&mut self, which: usize, page: usize) {
        self.consumers[which] = match std::mem::take(&mut self.consumers[which]) {
            Step::Idle => self.read(page),
            Step::Read { state, present, entries, claims } => self.claim(state, present, entries, claims),
            Step::Deliver { state, run, entries, done } => self.deliver(state, run, entries, done),
        };
    }

    fn read(&self, page: usize) -> Step {
        let state = self.stored.position.clone();
        let stands = state.as_ref().filter(|(_, sequence, mark)| self.log.contains(&(*sequence, *mark)));
        let (present, after) =
            stands.map_or((String::new(), 0), |(present, after, _)| (present.clone(), *after));
        let waiting: Vec<_> = self.log.iter().filter(|(sequence, _)| *sequence > after).copied().collect();
        let entries = entries(&waiting[..waiting.len().min(page)]);
        let claims = self.stored.claims.values().cloned().collect();
        if entries.is_empty() { Step::Idle } else { Step::Read { state, present, entries, claims } }
    }

    fn claim(
        &mut self,
        state: Option<(String, u64, u32)>,
        present: String,
        entries: Vec<Entry>,
        mut claims: Vec<Claim>,
    ) -> Step {
        for _ in 0..4 {
            let run = first_run(&present, &entries, &claims);
            if run.is_new {
                let marks = entries[..run.len].iter().map(|entry| entry.mark).collect();
                let claim = Claim { incarnation: run.incarnation.clone(), first: entries[0].sequence, marks };
                let key = (claim.incarnation.clone(), claim.first);
                if let Some(other) = self.stored.claims.get(&key) {
                    claims.push(other.clone());
                    continue;
                }
                self.stored.claims.insert(key, claim);
            }
            return Step::Deliver { state, run, entries, done: 0 };
        }
        panic!("the claims contradict each other: {claims:?}");
    }

    /// One entry at a time, and then the position.
    fn deliver(
        &mut self,
        state: Option<(String, u64, u32)>,
        run: Run,
        entries: Vec<Entry>,
        done: usize,
    ) -> Step {
        let last = &entries[run.len - 1];
        if done == run.len {
            if self.stored.position == state {
                self.stored.position = Some((run.next, last.sequence, last.mark));
            }
            return Step::Idle;
        }
        let Entry { sequence, mark, .. } = entries[done];
        let reached = self.stored.reached.entry((run.incarnation.clone(), mark % 3)).or_default();
        if sequence > *reached {
            *reached = sequence;
            *self.stored.counted.entry((sequence, mark)).or_default() += 1;
        }
        Step::Deliver { state, run, entries, done: done + 1 }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn every_event_counts_once(actions in vec(action(), 1..200)) {
        let mut world = World::default();
        for action in &actions {
            world.apply(action);
            prop_assert!(world.stored.counted.values().all(|count| *count <= 1), "an event counted twice");
        }
        for _ in 0..2_000 {
            world.step(0, 5);
        }
        let waiting = world.read(5);
        prop_assert!(matches!(waiting, Step::Idle), "the log is never drained");
        for event in &world.log {
            prop_assert_eq!(world.stored.counted.get(event), Some(&1), "event {:?} of {:?}", event, world.log);
        }
    }
}

#[test]
fn the_name_of_an_incarnation_fits_its_limit() {
    let name = incarnation_of(&entry(emberkeep_hot::limits::LOG_SEQUENCE_MAX, u32::MAX));
    assert!(closed(&closed(&name)).len() <= crate::limits::INCARNATION_BYTES_MAX);
}
