//! A random model of what callers do with a directory.

use super::Realm;
use super::directory::{Found, Heroes, World};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_primitives::directory::{self, Claim, Placement, Standing, State};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// What is known of the entity: it must be there, must not, or a process ended in the middle.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Lives,
    Gone,
    Open,
}

/// A departure, or a decision to stay, whose process was paused.
#[derive(Debug, Clone, Copy)]
enum Paused {
    Leave { realm: usize, from: i64, number: i64, to: usize },
    Stay { realm: usize, from: i64, above: i64 },
    Confirm { realm: usize, number: i64 },
    End { number: i64 },
}

/// Realms in memory below a directory: what its callers do, in any order, each of them paused or ended anywhere.
struct Model {
    world: World,
    runtime: tokio::runtime::Handle,
    states: HashMap<usize, i64>,
    admitted: [i64; 3],
    letters: Vec<(usize, i64)>,
    paused: Vec<Paused>,
    fate: Fate,
    /// Milliseconds of the store's clock.
    now: i64,
}

impl Model {
    fn entry(&self) -> Option<Found> {
        self.runtime.block_on(self.world.find())
    }

    fn index(&self, realm: Realm) -> usize {
        self.world.realms.iter().position(|one| *one == realm).unwrap()
    }

    fn admit(&mut self, realm: usize, number: i64) -> Result<(), i64> {
        let highest = self.admitted[realm].max(number);
        self.admitted[realm] = highest;
        if highest > number { Err(highest) } else { Ok(()) }
    }

    /// A login, or a logout. Its process ends after `steps`.
    fn claim(&mut self, realm: usize, ends: bool, steps: u8) {
        let mut above = 0;
        loop {
            let claim = Claim { above, ends, ..Claim::new(self.world.realms[realm], "login") };
            let placed = self.runtime.block_on(self.world.claim(claim)).unwrap();
            self.fate = Fate::Open;
            if steps == 0 {
                return;
            }
            let mut places: Vec<usize> = placed.behind.iter().map(|place| self.index(*place)).collect();
            if !ends {
                places.push(realm);
            }
            let highest = places.into_iter().find_map(|place| {
                let highest = self.admit(place, placed.number).err();
                if highest.is_none() {
                    self.states.remove(&place);
                }
                highest
            });
            if let Some(highest) = highest {
                above = highest;
                continue;
            }
            if !ends {
                self.states.insert(realm, placed.number);
            }
            self.fate = if ends { Fate::Gone } else { Fate::Lives };
            if steps > 1 {
                let (entry, number) = (self.world.entry(), placed.number);
                let settle = entry.transact(move |tx| directory::settle::<Heroes>(tx, number));
                self.runtime.block_on(settle).unwrap();
            }
            return;
        }
    }

    fn depart(&mut self, to: usize) {
        let Some(found) = self.entry().filter(|found| found.state == State::Here) else { return };
        let realm = self.index(found.home);
        if let Ok(moving) = self.runtime.block_on(self.world.depart(found.number, to)) {
            let (from, number) = (found.number, moving.number);
            self.paused.push(Paused::Leave { realm, from, number, to });
        }
    }

    fn go_on(&mut self, paused: Paused) {
        match paused {
            Paused::Leave { realm, from, number, to } => match self.states.get(&realm) {
                Some(state) if *state == from => {
                    if self.admit(realm, number).is_ok() {
                        self.states.remove(&realm);
                        self.letters.push((to, number));
                    }
                }
                Some(_) => {}
                None => {
                    let _ = self.admit(realm, number);
                    self.paused.push(Paused::End { number });
                }
            },
            Paused::Stay { realm, from, above } => {
                if self.states.get(&realm) == Some(&from) {
                    let number = (above.max(from) + 1).max(self.now * 1_000);
                    if self.admit(realm, number).is_ok() {
                        self.states.insert(realm, number);
                        self.paused.push(Paused::Confirm { realm, number });
                    }
                }
            }
            Paused::Confirm { realm, number } => {
                drop(self.runtime.block_on(self.world.confirm(realm, number)))
            }
            Paused::End { number } => {
                let entry = self.world.entry();
                let end = entry.transact(move |tx| directory::end::<Heroes>(tx, number));
                self.runtime.block_on(end).unwrap();
            }
        }
    }

    fn deliver(&mut self) {
        if self.letters.is_empty() {
            return;
        }
        let (to, number) = self.letters.remove(0);
        if self.admit(to, number).is_ok() {
            self.states.insert(to, number);
        }
    }

    fn sweep(&mut self, realm: usize) {
        let Some(number) = self.states.get(&realm).copied() else { return };
        let found = self.entry();
        match Placement::standing(found.as_ref(), &self.world.realms[realm], number) {
            Standing::Superseded => drop(self.states.remove(&realm)),
            Standing::Departing { .. } => {
                let above = found.map_or(0, |found| found.number);
                self.paused.push(Paused::Stay { realm, from: number, above });
            }
            Standing::Current | Standing::Unconfirmed => {
                self.paused.push(Paused::Confirm { realm, number });
            }
        }
    }

    fn act(&mut self, action: u8, realm: usize) {
        match action {
            0..3 => self.claim(realm, false, action),
            3..6 => self.claim(realm, true, action - 3),
            6 | 7 => self.depart(realm),
            8 => self.deliver(),
            9 | 10 => self.sweep(realm),
            // The oldest or the latest goes on.
            _ if self.paused.is_empty() => {}
            11 | 12 => {
                let paused = self.paused.remove(0);
                self.go_on(paused);
            }
            13 => {
                let paused = self.paused.pop().unwrap();
                self.go_on(paused);
            }
            // The process ended.
            14 => drop(self.paused.remove(0)),
            _ => {
                // The session expires.
                if let Some(number) = self.states.remove(&realm) {
                    let home = &self.world.realms[realm];
                    let standing = Placement::standing(self.entry().as_ref(), home, number);
                    self.fate = if standing == Standing::Superseded { self.fate } else { Fate::Gone };
                    self.paused.push(Paused::End { number });
                }
            }
        }
    }

    /// Letters arrive and the sweep passes, until nothing changes.
    fn settle_down(&mut self) {
        for _ in 0..4 {
            while !self.letters.is_empty() {
                self.deliver();
            }
            for realm in 0..3 {
                self.sweep(realm);
            }
            while let Some(paused) = self.paused.pop() {
                self.go_on(paused);
            }
        }
    }

    fn current(&self) -> usize {
        let found = self.entry();
        let is_current = |(realm, number): &(&usize, &i64)| {
            let standing = Placement::standing(found.as_ref(), &self.world.realms[**realm], **number);
            standing != Standing::Superseded
        };
        self.states.iter().filter(is_current).count()
    }
}

/// Any sequence of logins, logouts, departures, sweeps and expiries, each paused or ended anywhere, with a clock that jumps:
/// numbers grow, of all states at most one is the entity's, and one that nothing ended is not lost.
pub async fn random_moves_leave_at_most_one_current_state() {
    let clock = ManualClock::at(1_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    let runtime = tokio::runtime::Handle::current();
    let actions = proptest::collection::vec((0u8..16, 0usize..3, 0i64..4), 1..40);
    tokio::task::spawn_blocking(move || {
        proptest!(ProptestConfig::with_cases(512), |(actions in actions)| {
            let mut model = Model {
                world: World::new(&store), runtime: runtime.clone(), states: HashMap::new(), admitted: [0; 3],
                letters: Vec::new(), paused: Vec::new(), fate: Fate::Gone, now: 0,
            };
            let mut last = 0;
            for (action, realm, jump) in actions {
                model.now = 1_000_000_000 + jump;
                clock.set(model.now);
                model.act(action, realm);
                let number = model.entry().map_or(0, |found| found.number);
                prop_assert!(number >= last);
                last = number;
                prop_assert!(model.current() <= 1, "{:?} of {:?}", model.states, model.entry());
            }
            // Who is still paused goes on now.
            model.settle_down();
            let (found, states) = (model.entry(), model.states.clone());
            match model.fate {
                Fate::Lives => prop_assert!(model.current() == 1 && states.len() == 1, "lost: {states:?} of {found:?}"),
                Fate::Gone => prop_assert!(states.is_empty(), "came back: {states:?} of {found:?}"),
                Fate::Open => prop_assert!(states.len() <= 1, "twice: {states:?} of {found:?}"),
            }
        });
    })
    .await
    .unwrap();
}
