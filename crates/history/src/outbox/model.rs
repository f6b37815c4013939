//! The plan in a model: two machines, each with a consumer of the log and a spool, that are paused and killed between any
//! two of their steps while they take the lease from each other, and hot state that is set back at any time. Each
//! event counts at most once, and each of the timeline that survived counts exactly once. Another reader of the log is
//! behind, in a partition that is set back with the log or not: it finds every event of that timeline.

use super::log::Done;
use super::plan::{Action, Claim, Owner, Run, first_run, slot, spooled_run, with_claim, with_delivered};
use crate::delivery::Entry;
use crate::limits::CLAIM_SLOT_SEQUENCES;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

type Event = (u64, u32);

fn entry((sequence, mark): Event, position: u64) -> Entry {
    Entry { sequence, position, mark, event: Ok(Bytes::new()) }
}

/// Hot state: what a set-back restores.
#[derive(Default, Clone)]
struct Hot {
    log: Vec<Event>,
    done: Option<Done>,
    epoch: u64,
    /// All events that were ever appended.
    timeline: Vec<Event>,
    reader: Reader,
}

/// Another reader of the log.
#[derive(Default, Clone)]
struct Reader {
    position: Option<Event>,
    applied: HashSet<Event>,
}

/// What a history store has.
#[derive(Default)]
struct Stored {
    position: Option<(String, u64, u32)>,
    claims: HashMap<u64, Vec<Claim>>,
    /// By source and key of totals.
    reached: HashMap<(String, u32), u64>,
    counted: HashMap<Event, u32>,
}

impl Stored {
    fn slot(&self, sequence: u64) -> Vec<Claim> {
        self.claims.get(&slot(sequence)).cloned().unwrap_or_default()
    }

    fn count(&mut self, source: &str, entry: &Entry) {
        let reached = self.reached.entry((source.to_owned(), entry.mark % 3)).or_default();
        if entry.position > *reached {
            *reached = entry.position;
            *self.counted.entry((entry.sequence, entry.mark)).or_default() += 1;
        }
    }
}

/// How far a consumer of the log is in its pass.
#[derive(Default)]
enum Pass {
    #[default]
    Idle,
    Claim {
        state: Option<(String, u64, u32)>,
        present: String,
        entries: Vec<Entry>,
        done: Option<Done>,
        epoch: u64,
    },
    Deliver {
        state: Option<(String, u64, u32)>,
        run: Run,
        part: Vec<Entry>,
        count: usize,
        done: Option<Done>,
        epoch: u64,
    },
    Advance {
        state: Option<(String, u64, u32)>,
        next: String,
        last: Entry,
        done: Option<Done>,
        epoch: u64,
    },
    Trim {
        done: Done,
        epoch: u64,
    },
    Store {
        entries: Vec<Event>,
        epoch: u64,
    },
}

/// How far the delivery of a spool is.
#[derive(Default)]
enum Delivery {
    #[default]
    Idle,
    Deliver {
        run: Run,
        part: Vec<Entry>,
        count: usize,
    },
    Acknowledge {
        len: usize,
    },
}

#[derive(Default)]
struct Machine {
    pass: Pass,
    delivery: Delivery,
    /// On disk: openings of the folder, and the entries of each.
    spool: Vec<(String, Vec<Entry>)>,
    opening: u32,
    /// The last position of this opening.
    position: u64,
    moved: Option<Done>,
    held: Option<(u64, Option<Done>)>,
}

struct World {
    hot: Hot,
    saved: Vec<Hot>,
    marks: u32,
    epochs: u64,
    stored: Stored,
    machines: [Machine; 2],
}

#[derive(Debug, Clone)]
enum Act {
    Append(u8),
    Save,
    /// The partition of the reader is set back with the log, or not.
    SetBack(u8, bool),
    /// The reader applies so many entries.
    Read(u8),
    /// A consumer takes its next step. A page has so many entries; history is away, or not.
    Step(bool, u8, bool),
    DeliverSpool(bool, u8),
    Kill(bool),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1..5u8).prop_map(Act::Append),
        1 => Just(Act::Save),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(which, whole)| Act::SetBack(which, whole)),
        2 => (1..9u8).prop_map(Act::Read),
        14 => (any::<bool>(), 1..7u8, any::<bool>()).prop_map(|(which, page, away)| Act::Step(which, page, away)),
        10 => (any::<bool>(), 1..7u8).prop_map(|(which, page)| Act::DeliverSpool(which, page)),
        2 => any::<bool>().prop_map(Act::Kill),
    ]
}

impl Hot {
    /// The entries after the latest of some places that is in the log, and which one it was. `true` = a later one is not.
    fn after(&self, places: &[Option<Event>]) -> (Vec<Event>, Option<usize>, bool) {
        let mut places: Vec<_> = places
            .iter()
            .enumerate()
            .filter_map(|(which, place)| place.map(|place| (which, place)))
            .collect();
        places.sort_by_key(|(_, (sequence, _))| Reverse(*sequence));
        let place = places.iter().position(|(_, place)| self.log.contains(place));
        let after = place.map_or(0, |place| places[place].1.0);
        let waiting = self.log.iter().filter(|(sequence, _)| *sequence > after).copied().collect();
        (waiting, place.map(|place| places[place].0), place.map_or(!places.is_empty(), |place| place > 0))
    }

    fn trim(&mut self, done: Done) {
        self.done = Some(done);
        let positions = [Some(event_of(done)), self.reader.position];
        if let Some(lowest) = positions.into_iter().flatten().min_by_key(|(sequence, _)| *sequence)
            && positions.iter().all(|place| place.is_some_and(|place| self.log.contains(&place)))
        {
            self.log.retain(|(sequence, _)| *sequence >= lowest.0);
        }
    }

    fn read_beside(&mut self, count: usize) {
        let Reader { position, applied } = &mut self.reader;
        if position.is_some_and(|place| !self.log.contains(&place)) {
            *position = self.log.iter().rfind(|event| applied.contains(event)).copied();
            return;
        }
        let after = position.map_or(0, |(sequence, _)| sequence);
        for event in self.log.iter().filter(|(sequence, _)| *sequence > after).take(count) {
            applied.insert(*event);
            *position = Some(*event);
        }
    }
}

fn event_of(done: Done) -> Event {
    (done.sequence, done.mark)
}

impl World {
    fn new() -> World {
        let (hot, stored) = (Hot::default(), Stored::default());
        World { saved: vec![hot.clone()], hot, marks: 0, epochs: 0, stored, machines: Default::default() }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Append(count) => (0..*count).for_each(|_| self.append()),
            Act::Save => self.saved.push(self.hot.clone()),
            Act::SetBack(which, whole) => {
                let reader = self.hot.reader.clone();
                self.hot = self.saved[*which as usize % self.saved.len()].clone();
                // A reader that is older than the log misses what was trimmed: it is rebuilt, which is not of this model.
                if !whole && reader.applied.is_superset(&self.hot.reader.applied) {
                    self.hot.reader = reader;
                }
            }
            Act::Read(count) => self.hot.read_beside(*count as usize),
            Act::Step(which, page, away) => self.step(*which as usize, *page as usize, *away),
            Act::DeliverSpool(which, page) => self.deliver_spool(*which as usize, *page as usize),
            Act::Kill(which) => {
                let machine = &mut self.machines[*which as usize];
                let (spool, opening) = (std::mem::take(&mut machine.spool), machine.opening + 1);
                *machine = Machine { spool, opening, ..Machine::default() };
            }
        }
    }

    fn append(&mut self) {
        self.marks += 1;
        // Two slots of claims.
        let last = self.hot.log.last().map_or(CLAIM_SLOT_SEQUENCES - 12, |(last, _)| *last);
        let event = (last + 1, self.marks);
        self.hot.log.push(event);
        self.hot.timeline.push(event);
    }

    /// The lease, taken from another one as if that had been paused for too long.
    fn hold(&mut self, which: usize) -> (u64, Option<Done>) {
        if let Some((epoch, done)) = self.machines[which].held
            && epoch == self.hot.epoch
        {
            return (epoch, done);
        }
        self.epochs += 1;
        self.hot.epoch = self.epochs;
        self.machines[which].held = Some((self.epochs, self.hot.done));
        (self.epochs, self.hot.done)
    }

    fn step(&mut self, which: usize, page: usize, away: bool) {
        let pass = std::mem::take(&mut self.machines[which].pass);
        let next = match pass {
            // A pass that history does not answer is dropped where it is.
            Pass::Claim { .. } | Pass::Deliver { .. } | Pass::Advance { .. } if away => Pass::Idle,
            Pass::Idle if away || !self.machines[which].spool.is_empty() => self.read_to_move(which, page),
            Pass::Idle => self.read(which, page),
            Pass::Claim { state, present, entries, done, epoch } => {
                self.claim(state, &present, &entries, done, epoch)
            }
            Pass::Deliver { state, run, part, count, done, epoch } => {
                self.deliver(state, run, part, count, done, epoch)
            }
            Pass::Advance { state, next, last, done, epoch } => {
                if self.stored.position == state {
                    self.stored.position = Some((next, last.sequence, last.mark));
                    let is_spooled = done.is_some_and(|done| done.is_spooled);
                    Pass::Trim { done: Done { sequence: last.sequence, mark: last.mark, is_spooled }, epoch }
                } else {
                    Pass::Idle
                }
            }
            Pass::Store { entries, epoch } => self.store(which, &entries, epoch),
            Pass::Trim { done, epoch } => {
                if epoch == self.hot.epoch {
                    self.hot.trim(done);
                    self.machines[which].held = Some((epoch, Some(done)));
                }
                Pass::Idle
            }
        };
        self.machines[which].pass = next;
    }

    fn read(&mut self, which: usize, page: usize) -> Pass {
        let (epoch, done) = self.hold(which);
        let state = self.stored.position.clone();
        let acknowledged = state.as_ref().map(|(_, sequence, mark)| (*sequence, *mark));
        let places = [acknowledged, done.map(event_of)];
        let (waiting, stands, is_set_back) = self.hot.after(&places);
        let present = state
            .clone()
            .filter(|_| stands == Some(0) && !is_set_back)
            .map_or(String::new(), |(present, ..)| present);
        let Some(first) = waiting.first().copied() else {
            let Some((sequence, mark)) = stands.and_then(|stands| places[stands]) else { return Pass::Idle };
            let is_spooled = done.is_some_and(|done| done.is_spooled);
            return Pass::Trim { done: Done { sequence, mark, is_spooled }, epoch };
        };
        let in_slot = waiting.iter().take(page).take_while(|event| slot(event.0) == slot(first.0));
        let entries = in_slot.map(|event| entry(*event, event.0)).collect();
        Pass::Claim { state, present, entries, done, epoch }
    }

    fn claim(
        &mut self,
        state: Option<(String, u64, u32)>,
        present: &str,
        entries: &[Entry],
        done: Option<Done>,
        epoch: u64,
    ) -> Pass {
        let claims = self.stored.slot(entries[0].sequence);
        let run = first_run(present, entries, &claims, done.is_some_and(|done| done.is_spooled));
        let part = entries[..run.len].to_vec();
        if run.is_new {
            let claims = with_claim(&claims, Owner::Incarnation(run.incarnation.clone()), &part);
            self.stored.claims.insert(slot(part[0].sequence), claims);
        }
        match run.action {
            Action::Wait => Pass::Idle,
            Action::Skip => {
                Pass::Advance { state, next: run.next, last: part[part.len() - 1].clone(), done, epoch }
            }
            _ => Pass::Deliver { state, run, part, count: 0, done, epoch },
        }
    }

    fn deliver(
        &mut self,
        state: Option<(String, u64, u32)>,
        run: Run,
        part: Vec<Entry>,
        count: usize,
        done: Option<Done>,
        epoch: u64,
    ) -> Pass {
        if let Some(entry) = part.get(count) {
            self.stored.count(&run.incarnation, entry);
            return Pass::Deliver { state, run, part, count: count + 1, done, epoch };
        }
        let last = part[part.len() - 1].clone();
        if !run.is_new {
            self.mark_delivered(&run.incarnation, &last);
        }
        Pass::Advance { state, next: run.next, last, done, epoch }
    }

    fn mark_delivered(&mut self, incarnation: &str, last: &Entry) {
        let claims = with_delivered(&self.stored.slot(last.sequence), incarnation, last);
        self.stored.claims.insert(slot(last.sequence), claims);
    }

    fn read_to_move(&mut self, which: usize, page: usize) -> Pass {
        let (epoch, done) = self.hold(which);
        let moved = self.machines[which].moved;
        let places = [moved, done];
        let (waiting, stands, _) = self.hot.after(&places.map(|place| place.map(event_of)));
        if waiting.is_empty() {
            let pending = stands.and_then(|stands| places[stands]);
            return pending.map_or(Pass::Idle, |done| Pass::Trim { done, epoch });
        }
        Pass::Store { entries: waiting.into_iter().take(page).collect(), epoch }
    }

    fn store(&mut self, which: usize, entries: &[Event], epoch: u64) -> Pass {
        let machine = &mut self.machines[which];
        let source = format!("machine {which}, opening {}", machine.opening);
        if machine.spool.last().is_none_or(|(last, _)| *last != source) {
            machine.spool.push((source, Vec::new()));
        }
        for event in entries {
            machine.position += 1;
            let entry = entry(*event, machine.position);
            machine.spool.last_mut().expect("an opening").1.push(entry);
        }
        let (sequence, mark) = entries[entries.len() - 1];
        let done = Done { sequence, mark, is_spooled: true };
        machine.moved = Some(done);
        Pass::Trim { done, epoch }
    }

    fn deliver_spool(&mut self, which: usize, page: usize) {
        let delivery = std::mem::take(&mut self.machines[which].delivery);
        let Some((source, entries)) = self.machines[which].spool.first().cloned() else { return };
        self.machines[which].delivery = match delivery {
            Delivery::Idle => self.claim_spooled(&source, &entries[..entries.len().min(page)]),
            Delivery::Deliver { run, part, count } => match part.get(count) {
                Some(entry) => {
                    let (own, under) = (source.as_str(), run.incarnation.as_str());
                    self.stored.count(if run.action == Action::Deliver { under } else { own }, entry);
                    Delivery::Deliver { run, part, count: count + 1 }
                }
                None => {
                    if run.action == Action::Deliver {
                        self.mark_delivered(&run.incarnation, &part[part.len() - 1]);
                    }
                    Delivery::Acknowledge { len: run.len }
                }
            },
            Delivery::Acknowledge { len } => {
                let spool = &mut self.machines[which].spool;
                spool[0].1.drain(..len);
                if spool[0].1.is_empty() {
                    spool.remove(0);
                }
                Delivery::Idle
            }
        };
    }

    fn claim_spooled(&mut self, source: &str, entries: &[Entry]) -> Delivery {
        let position = self.stored.position.clone();
        let acknowledged =
            position.as_ref().map(|(incarnation, sequence, _)| (incarnation.as_str(), *sequence));
        let claims = self.stored.slot(entries[0].sequence);
        let run = spooled_run(source, entries, &claims, acknowledged);
        let mut part = entries[..run.len].to_vec();
        if run.is_new {
            let owner = Owner::Spool { source: source.to_owned(), position: part[0].position };
            self.stored.claims.insert(slot(part[0].sequence), with_claim(&claims, owner, &part));
        }
        match run.action {
            Action::Wait => Delivery::Idle,
            Action::Skip => Delivery::Acknowledge { len: run.len },
            Action::DeliverOwn => Delivery::Deliver { run, part, count: 0 },
            Action::Deliver => {
                part.iter_mut().for_each(|entry| entry.position = entry.sequence);
                Delivery::Deliver { run, part, count: 0 }
            }
        }
    }

    fn is_drained(&mut self) -> bool {
        self.machines.iter().all(|machine| machine.spool.is_empty()) && {
            let pass = self.read(0, 5);
            !matches!(pass, Pass::Claim { .. })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn every_event_counts_once(acts in vec(act(), 1..250)) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
            prop_assert!(world.stored.counted.values().all(|count| *count <= 1), "an event counted twice");
        }
        for _ in 0..3_000 {
            for which in 0..2 {
                world.step(which, 5, false);
                world.deliver_spool(which, 5);
            }
            world.hot.read_beside(5);
        }
        prop_assert!(world.stored.counted.values().all(|count| *count <= 1), "an event counted twice");
        prop_assert!(world.is_drained(), "something is never drained");
        for event in &world.hot.timeline {
            prop_assert_eq!(world.stored.counted.get(event), Some(&1), "event {:?}", event);
            prop_assert!(world.hot.reader.applied.contains(event), "the reader missed {:?}", event);
        }
        prop_assert!(world.hot.log.len() <= 1, "the log is never trimmed: {:?}", world.hot.log);
    }
}
