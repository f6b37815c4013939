//! Compares two sets of keys, such as a snapshot and hot state.

use crate::choice::KeyChoice;
use crate::create::KeySource;
use crate::encode::push_key;
use crate::error::Result;
use crate::limits::EXAMPLES_MAX;
use crate::names::Names;
use crate::verify::VerifiedReader;
use bytes::Bytes;
use emberkeep_hot::command::KeyDump;
use emberkeep_hot::show;
use serde::Serialize;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// How two sets of keys differ, from the first to the second. A restore goes from hot state to the snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Keys that only the second has.
    pub added: u64,
    /// Keys with another type, value or deadline.
    pub changed: u64,
    /// Keys that only the first has.
    pub removed: u64,
    /// Keys that are the same.
    pub unchanged: u64,
    /// Keys of the snapshot whose deadline has passed: they count as absent.
    pub expired: u64,
    /// Some of the keys that differ.
    pub examples: Vec<(Change, String)>,
}

impl Changes {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added + self.changed + self.removed == 0
    }

    /// Counts what differs, and names the first keys in the order of their names.
    fn note_all(&mut self, mut differing: Vec<(&Bytes, Change)>) {
        for (_, change) in &differing {
            *match change {
                Change::Added => &mut self.added,
                Change::Changed => &mut self.changed,
                Change::Removed => &mut self.removed,
            } += 1;
        }
        differing.sort_unstable_by_key(|(name, _)| *name);
        differing.truncate(EXAMPLES_MAX);
        self.examples = differing.into_iter().map(|(name, change)| (change, show(name))).collect();
    }
}

/// How a key differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Only the second set has it.
    Added,
    /// It has another type, value or deadline.
    Changed,
    /// Only the first set has it.
    Removed,
}

/// Fingerprints of the keys of one side, by name.
#[derive(Default)]
pub(crate) struct Fingerprints {
    of: HashMap<Bytes, u128>,
    expired: u64,
    scratch: Vec<u8>,
}

impl Fingerprints {
    /// Those of a snapshot. Keys whose deadline is not after `now` are left out; `None` = all are taken.
    pub(crate) async fn of_snapshot(
        reader: &mut VerifiedReader,
        choice: &KeyChoice,
        now: Option<i64>,
    ) -> Result<Fingerprints> {
        let mut all = Fingerprints::default();
        while let Some(keys) = reader.next().await? {
            for key in keys.iter().filter(|key| choice.chooses(&key.key)) {
                if has_expired(key, now) {
                    all.expired += 1;
                } else {
                    all.add(key);
                }
            }
        }
        Ok(all)
    }

    /// Those of hot state.
    pub(crate) async fn of_source(
        source: &mut dyn KeySource,
        names: &Names,
        choice: &KeyChoice,
    ) -> Result<Fingerprints> {
        let mut all = Fingerprints::default();
        while let Some(keys) = source.next().await? {
            for key in keys {
                if let Some(name) = names.name(&key.key).filter(|name| choice.chooses(name)) {
                    all.add(&KeyDump { key: name, ..key });
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, key: &KeyDump) {
        let fingerprint = fingerprint(&mut self.scratch, key);
        // A copy: a slice would keep the whole block that it was read with.
        self.of.insert(Bytes::copy_from_slice(&key.key), fingerprint);
    }

    /// What leads from `self` to `other`.
    pub(crate) fn changes_to(&self, other: &Fingerprints) -> Changes {
        let mut changes = Changes { expired: self.expired + other.expired, ..Changes::default() };
        let mut differing = Vec::new();
        for (name, fingerprint) in &other.of {
            match self.of.get(name) {
                None => differing.push((name, Change::Added)),
                Some(own) if own != fingerprint => differing.push((name, Change::Changed)),
                Some(_) => changes.unchanged += 1,
            }
        }
        let removed = self.of.keys().filter(|name| !other.of.contains_key(*name));
        differing.extend(removed.map(|name| (name, Change::Removed)));
        changes.note_all(differing);
        changes
    }

    /// Whether a key of `other` has to be written to make it so here.
    pub(crate) fn lacks(&self, other: &Fingerprints, name: &Bytes) -> bool {
        other.of.contains_key(name) && self.of.get(name) != other.of.get(name)
    }

    /// Whether a key is the one that was seen by this name.
    pub(crate) fn has(&self, key: &KeyDump, scratch: &mut Vec<u8>) -> bool {
        self.of.get(&key.key) == Some(&fingerprint(scratch, key))
    }

    /// The names that `other` does not have.
    pub(crate) fn not_in(&self, other: &Fingerprints) -> Vec<Bytes> {
        self.of.keys().filter(|name| !other.of.contains_key(*name)).cloned().collect()
    }
}

fn fingerprint(scratch: &mut Vec<u8>, key: &KeyDump) -> u128 {
    scratch.clear();
    push_key(scratch, key);
    xxh3_128(scratch)
}

/// Whether a restore skips the key.
pub(crate) fn has_expired(key: &KeyDump, now: Option<i64>) -> bool {
    key.deadline.zip(now).is_some_and(|(deadline, now)| deadline <= now)
}
