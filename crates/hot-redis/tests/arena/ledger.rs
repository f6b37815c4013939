//! What callers were told about their hits.

use emberkeep_hot::Error;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What one caller was told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// It happened.
    Done,
    /// It certainly did not happen.
    Not(Error),
    /// It may have happened.
    Perhaps(Error),
}

/// One call.
#[derive(Debug, Clone)]
pub struct Entry {
    pub damage: i64,
    pub told: Told,
    pub started: Instant,
    pub ended: Instant,
}

/// All calls of a test, by the hit's id.
#[derive(Debug, Default)]
pub struct Ledger {
    pub entries: BTreeMap<String, Entry>,
}

impl Ledger {
    pub fn enter(&mut self, id: String, damage: i64, started: Instant, result: Result<i64, Error>) {
        let told = match result {
            Ok(_) => Told::Done,
            Err(error @ (Error::OutcomeUnknown { .. } | Error::PartialCommit { .. })) => Told::Perhaps(error),
            Err(error) => Told::Not(error),
        };
        self.entries.insert(id, Entry { damage, told, started, ended: Instant::now() });
    }

    pub fn merge(&mut self, other: Ledger) {
        self.entries.extend(other.entries);
    }

    pub fn done(&self) -> usize {
        self.entries.values().filter(|entry| entry.told == Told::Done).count()
    }

    pub fn refused(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.told, Told::Not(_))).count()
    }

    pub fn unknown(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.told, Told::Perhaps(_))).count()
    }

    /// Calls that ended in `Conflict`.
    pub fn conflicts(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.told, Told::Not(Error::Conflict { .. }))).count()
    }

    pub fn slowest(&self) -> Duration {
        self.entries.values().map(|entry| entry.ended - entry.started).max().unwrap_or_default()
    }

    /// The different errors, each once with its count, for messages.
    pub fn errors(&self) -> BTreeMap<String, usize> {
        let mut errors = BTreeMap::new();
        for entry in self.entries.values() {
            if let Told::Not(error) | Told::Perhaps(error) = &entry.told {
                *errors.entry(kind(error)).or_insert(0) += 1;
            }
        }
        errors
    }
}

/// An error without what differs from call to call.
fn kind(error: &Error) -> String {
    match error {
        Error::Conflict { .. } => "conflict".into(),
        Error::Unavailable { reason, .. } if reason.starts_with("no answer within") => {
            "unavailable: no answer within the deadline".into()
        }
        other => other.to_string(),
    }
}
