//! What is known of a snapshot beside its keys.

use crate::error::{Error, Result};
use crate::id::SnapshotId;
use crate::limits::NAME_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the caller says of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// A name for people; may be empty.
    pub name: String,
    /// The generation of the partition; `None` = the store's, see
    /// [`SnapshotStore::generation`](crate::SnapshotStore::generation), or the greatest of its snapshots.
    pub generation: Option<u64>,
    /// The tick of the game that the snapshot shows, where the game has ticks.
    pub tick: Option<u64>,
}

impl Label {
    /// A label with nothing but a name.
    pub fn named(name: impl Into<String>) -> Label {
        Label { name: name.into(), ..Label::default() }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.name.len() > NAME_BYTES_MAX || self.name.chars().any(char::is_control) {
            let problem = format!("expected up to {NAME_BYTES_MAX} bytes without control characters");
            return Err(Error::invalid("name", problem));
        }
        Ok(())
    }
}

/// What is known of a snapshot beside its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// Its id.
    pub id: SnapshotId,
    /// Its name for people; may be empty.
    pub name: String,
    /// Type and text of the partition, such as `Room:AB12CD`.
    pub partition: String,
    /// When it was begun, in milliseconds since 1970 by the engine's clock.
    pub created_at: i64,
    /// The generation of the partition, which a restore raises.
    pub generation: u64,
    /// The tick that it shows.
    pub tick: Option<u64>,
    /// Whether all keys are as of [`created_at`](SnapshotInfo::created_at). Otherwise each is as of a moment between
    /// that and the end of the snapshot.
    pub one_moment: bool,
    /// How many keys it has.
    pub keys: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Keys of each family.
    pub families: BTreeMap<String, u64>,
    /// A hash (XXH3, 64 bits, hexadecimal) of all keys in their order.
    pub checksum: String,
}

impl SnapshotInfo {
    /// Newest last: by generation, then tick, then time.
    pub(crate) fn order(&self) -> (u64, Option<u64>, i64, &SnapshotId) {
        (self.generation, self.tick, self.created_at, &self.id)
    }
}

/// A snapshot that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedSnapshot {
    /// The file or the id.
    pub snapshot: String,
    /// What was found.
    pub problem: String,
}
