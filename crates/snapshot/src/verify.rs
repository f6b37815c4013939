//! Reads a snapshot and compares its checksum: what is wrong is found before anything of it is used.

use crate::contract::SnapshotReader;
use crate::encode::push_key;
use crate::error::{Error, Result};
use crate::info::SnapshotInfo;
use emberkeep_hot::command::KeyDump;
use xxhash_rust::xxh3::Xxh3;

/// Counts and hashes keys in their order.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
    hash: Xxh3,
    scratch: Vec<u8>,
}

impl Tally {
    pub(crate) fn add(&mut self, key: &KeyDump) {
        self.keys += 1;
        self.bytes += key.bytes() as u64;
        self.scratch.clear();
        push_key(&mut self.scratch, key);
        self.hash.update(&self.scratch);
    }

    pub(crate) fn checksum(&self) -> String {
        format!("{:016x}", self.hash.digest())
    }
}

/// A reader that refuses to end if the keys are not those that were written.
pub(crate) struct VerifiedReader {
    reader: Box<dyn SnapshotReader>,
    tally: Tally,
}

impl VerifiedReader {
    pub(crate) fn new(reader: Box<dyn SnapshotReader>) -> VerifiedReader {
        VerifiedReader { reader, tally: Tally::default() }
    }

    pub(crate) fn info(&self) -> &SnapshotInfo {
        self.reader.info()
    }

    /// The next keys; `None` at the end, if all of them were as written.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<KeyDump>>> {
        tokio::task::yield_now().await;
        if let Some(keys) = self.reader.next().await? {
            keys.iter().for_each(|key| self.tally.add(key));
            return Ok(Some(keys));
        }
        let info = self.reader.info();
        let problem = if self.tally.keys != info.keys {
            format!("{} keys, it was written with {}", self.tally.keys, info.keys)
        } else if self.tally.checksum() != info.checksum {
            format!("checksum {}, it was written with {}", self.tally.checksum(), info.checksum)
        } else {
            return Ok(None);
        };
        Err(Error::Damaged { snapshot: info.id.to_string(), problem })
    }
}
