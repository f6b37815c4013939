//! Runs of closures under test ([`Options::check_closures`](super::Options::check_closures)): as on a remote
//! engine, where a read may not be available yet and a run may be repeated.

use super::locks::Locked;
use crate::command::{Effects, RawKey, Read, Reply};
use crate::error::{Error, Result, show};
use crate::limits::CHECKED_RUNS_MAX;
use crate::tx::{RawTx, ReadSource, Transaction, run_once};
use bytes::Bytes;
use std::any::Any;
use std::collections::HashSet;
use std::fmt::Debug;

/// How much of an effect an error shows.
const SHOWN_CHARS_MAX: usize = 200;

/// The runs of one transaction so far.
#[derive(Default)]
pub(super) struct CheckedRuns {
    /// Keys that were read, and are available from now on.
    available: HashSet<RawKey>,
    runs: u32,
}

impl CheckedRuns {
    /// Runs the body twice under the same locks and compares. `Suspended` = a read was not available, or a
    /// lock was missed: it must run again. `true` asks for the commit.
    pub(super) fn run(
        &mut self,
        locked: &mut Locked<'_>,
        transaction: &mut dyn Transaction,
        effects: &mut Effects,
        seed: u64,
    ) -> Result<bool> {
        let first_commits = self.run_once(locked, transaction, effects, seed);
        if ends_here(&first_commits) {
            return first_commits;
        }
        let first = std::mem::take(effects);
        let commits = self.run_once(locked, transaction, effects, seed);
        if ends_here(&commits) {
            return commits;
        }
        match difference((&first_commits, &first), (&commits, effects)) {
            Some(difference) => Err(Error::ImpureClosure { difference }),
            None => commits,
        }
    }

    fn run_once(
        &mut self,
        locked: &mut Locked<'_>,
        transaction: &mut dyn Transaction,
        effects: &mut Effects,
        seed: u64,
    ) -> Result<bool> {
        self.runs += 1;
        let mut source = FirstReads { locked, available: &mut self.available, missed: None };
        let mut watched = PanicRecorder { transaction, panic: None };
        let commits = run_once(&mut watched, RawTx::new(&mut source, effects, seed));
        let missed = source.missed.take();
        let is_suspended = missed.is_some() || source.locked.suspended();
        match (missed, watched.panic) {
            (Some(key), Some(panic)) => {
                let difference = format!("it panicked when {} was not available yet: {panic}", show(&key));
                Err(Error::ImpureClosure { difference })
            }
            (Some(key), None) if self.runs > CHECKED_RUNS_MAX => {
                let difference =
                    format!("after {} runs it still reads new keys, now {}", self.runs, show(&key));
                Err(Error::ImpureClosure { difference })
            }
            _ if is_suspended => Err(Error::Suspended),
            _ => commits,
        }
    }
}

/// Whether there is nothing to compare: the run has to be repeated, or is already known to be impure.
fn ends_here(commits: &Result<bool>) -> bool {
    matches!(commits, Err(Error::Suspended | Error::ImpureClosure { .. }))
}

/// The state under locks, where the first read of every key is not available.
struct FirstReads<'l, 'a> {
    locked: &'l mut Locked<'a>,
    available: &'l mut HashSet<RawKey>,
    /// The first key that was not available.
    missed: Option<RawKey>,
}

impl FirstReads<'_, '_> {
    fn check(&mut self, key: &RawKey) -> Result<()> {
        if self.available.contains(key) {
            return Ok(());
        }
        self.available.insert(key.clone());
        self.missed.get_or_insert_with(|| key.clone());
        Err(Error::Suspended)
    }
}

impl ReadSource for FirstReads<'_, '_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        self.check(key)?;
        self.locked.read(key, read)
    }

    fn text<'s>(&'s mut self, key: &RawKey, scratch: &'s mut Option<Bytes>) -> Result<Option<&'s [u8]>> {
        self.check(key)?;
        self.locked.text(key, scratch)
    }

    fn now(&mut self) -> i64 {
        self.locked.now()
    }

    fn is_remote(&self) -> bool {
        true
    }
}

/// A transaction whose panics are seen.
struct PanicRecorder<'t> {
    transaction: &'t mut dyn Transaction,
    panic: Option<String>,
}

impl Transaction for PanicRecorder<'_> {
    fn run(&mut self, tx: RawTx<'_>) -> bool {
        self.transaction.run(tx)
    }

    fn fail(&mut self, error: Error) -> Result<()> {
        self.panic = Some(error.to_string());
        self.transaction.fail(error)
    }

    fn name(&self) -> Option<&'static str> {
        self.transaction.name()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        Box::new(())
    }
}

/// What differs between two runs.
fn difference(
    (first_commits, first): (&Result<bool>, &Effects),
    (commits, effects): (&Result<bool>, &Effects),
) -> Option<String> {
    let ended = |commits: &Result<bool>| match commits {
        Ok(true) => "Ok",
        _ => "an error",
    };
    if ended(first_commits) != ended(commits) {
        let (before, now) = (ended(first_commits), ended(commits));
        return Some(format!("its first run returned {before}, its second run {now}"));
    }
    if commits != &Ok(true) {
        return None;
    }
    first_difference("write", &first.writes, &effects.writes)
        .or_else(|| first_difference("log entry", &first.log, &effects.log))
        .or_else(|| first_difference("message", &first.messages, &effects.messages))
}

fn first_difference<T: PartialEq + Debug>(what: &str, first: &[T], second: &[T]) -> Option<String> {
    let longest = first.len().max(second.len());
    let at = (0..longest).find(|at| first.get(*at) != second.get(*at))?;
    let shown = |one: Option<&T>| -> String {
        let text = one.map_or_else(|| "nothing".into(), |one| format!("{one:?}"));
        text.chars().take(SHOWN_CHARS_MAX).collect()
    };
    let (before, now) = (shown(first.get(at)), shown(second.get(at)));
    Some(format!("{what} {} of its first run was {before}, of its second run {now}", at + 1))
}
