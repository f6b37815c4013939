//! The results that callers got for their hits.

use emberkeep_hot::Error;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The result that one caller got.
#[derive(Debug, Clone, PartialEq)]
pub enum CallResult {
    /// It happened.
    Done,
    /// It certainly did not happen.
    NotDone(Error),
    /// It may have happened.
    Unknown(Error),
}

/// One call.
#[derive(Debug, Clone)]
pub struct Entry {
    pub damage: i64,
    pub result: CallResult,
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
        let reported = match result {
            Ok(_) => CallResult::Done,
            Err(error @ (Error::OutcomeUnknown { .. } | Error::PartialCommit { .. })) => {
                CallResult::Unknown(error)
            }
            Err(error) => CallResult::NotDone(error),
        };
        self.entries.insert(id, Entry { damage, result: reported, started, ended: Instant::now() });
    }

    pub fn merge(&mut self, other: Ledger) {
        self.entries.extend(other.entries);
    }

    pub fn done(&self) -> usize {
        self.entries.values().filter(|entry| entry.result == CallResult::Done).count()
    }

    pub fn refused(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.result, CallResult::NotDone(_))).count()
    }

    pub fn unknown(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.result, CallResult::Unknown(_))).count()
    }

    /// Calls that ended in `Conflict`.
    pub fn conflicts(&self) -> usize {
        self.entries
            .values()
            .filter(|entry| matches!(entry.result, CallResult::NotDone(Error::Conflict { .. })))
            .count()
    }

    pub fn slowest(&self) -> Duration {
        self.entries.values().map(|entry| entry.ended - entry.started).max().unwrap_or_default()
    }

    /// The different errors, each once with its count, for messages.
    pub fn errors(&self) -> BTreeMap<String, usize> {
        let mut errors = BTreeMap::new();
        for entry in self.entries.values() {
            if let CallResult::NotDone(error) | CallResult::Unknown(error) = &entry.result {
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
