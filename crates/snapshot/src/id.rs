//! Ids of snapshots.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A text that is not the id of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of a snapshot, expected digits, a dash and 8 hex digits")]
pub struct InvalidSnapshotId(String);

/// The id of a snapshot: when it was made and a random number, so that ids are ordered by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotId(String);

impl SnapshotId {
    /// A new id.
    pub fn new(created_at: i64, random: u64) -> SnapshotId {
        SnapshotId(format!("{:013}-{:08x}", created_at.max(0), random as u32))
    }

    /// The id as text: digits, letters from a to f and one dash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SnapshotId {
    type Err = InvalidSnapshotId;

    fn from_str(text: &str) -> Result<SnapshotId, InvalidSnapshotId> {
        let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.split_once('-') {
            Some((time, random))
                if (13..=19).contains(&time.len())
                    && time.bytes().all(|byte| byte.is_ascii_digit())
                    && random.len() == 8
                    && is_plain(random) =>
            {
                Ok(SnapshotId(text.to_owned()))
            }
            _ => Err(InvalidSnapshotId(text.to_owned())),
        }
    }
}

impl TryFrom<String> for SnapshotId {
    type Error = InvalidSnapshotId;

    fn try_from(text: String) -> Result<SnapshotId, InvalidSnapshotId> {
        text.parse()
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> String {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_plain_file_name() {
        let id = SnapshotId::new(1_795_000_000_000, u64::MAX);
        assert_eq!(id.as_str(), "1795000000000-ffffffff");
        assert_eq!(id.as_str().parse(), Ok(id));
        for wrong in ["", "1795000000000", "1795000000000-fffffff", "../5000000000-ffffffff", "x-ffffffff"] {
            assert!(wrong.parse::<SnapshotId>().is_err(), "{wrong}");
        }
    }
}
