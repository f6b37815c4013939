//! Creates snapshots.

use crate::contract::{SnapshotStore, SnapshotWriter};
use crate::encode::stored_bytes;
use crate::error::{Error, Result};
use crate::id::SnapshotId;
use crate::info::{Label, SnapshotInfo};
use crate::limits::{BLOCK_BYTES, BLOCK_BYTES_MAX};
use crate::names::Names;
use crate::verify::Tally;
use emberkeep_hot::Store;
use emberkeep_hot::command::KeyDump;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::{Dump, PartitionKeys};
use std::collections::BTreeMap;

/// How far a snapshot or a restore is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Keys so far.
    pub keys: u64,
    /// Bytes of keys and values so far.
    pub bytes: u64,
    /// Keys in all, where that is known.
    pub total: Option<u64>,
}

/// Where the keys of a snapshot come from: a [`Dump`], or a game that pins a moment of its own.
pub trait KeySource: Send {
    /// The moment that it shows, or when it began, in milliseconds since 1970.
    fn at(&self) -> i64;

    /// Whether all keys are as of [`at`](KeySource::at).
    fn is_one_moment(&self) -> bool;

    /// The next keys, as the engine stores them; `None` at the end. Each comes once.
    fn next(&mut self) -> Pending<'_, emberkeep_hot::Result<Option<Vec<KeyDump>>>>;
}

impl KeySource for Dump {
    fn at(&self) -> i64 {
        Dump::at(self)
    }

    fn is_one_moment(&self) -> bool {
        Dump::is_one_moment(self)
    }

    fn next(&mut self) -> Pending<'_, emberkeep_hot::Result<Option<Vec<KeyDump>>>> {
        Box::pin(Dump::next(self))
    }
}

/// Stores what a source has.
pub(crate) async fn create(
    hot: &Store,
    store: &dyn SnapshotStore,
    (keys, source): (&PartitionKeys, &mut dyn KeySource),
    label: Label,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<SnapshotInfo> {
    label.check()?;
    let mut info = begun(hot, store, keys, (source.at(), source.is_one_moment()), label).await?;
    let (names, layout) = (Names::of(hot.key_layout(), keys), hot.key_layout());
    let mut blocks = Blocks::of(store.begin(&info).await?);
    let mut tally = Tally::default();
    while let Some(dumps) = source.next().await? {
        for dump in dumps {
            let family = keys.family_of(layout, &dump.key).map_or("", |family| family.name);
            *info.families.entry(family.to_owned()).or_default() += 1;
            let dump = KeyDump { key: names.name(&dump.key).unwrap_or(dump.key), ..dump };
            tally.add(&dump);
            blocks.add(dump).await?;
        }
        progress(Progress { keys: tally.keys, bytes: tally.bytes, total: None });
    }
    let writer = blocks.end().await?;
    (info.keys, info.bytes, info.checksum) = (tally.keys, tally.bytes, tally.checksum());
    writer.finish(info.clone()).await?;
    Ok(info)
}

/// Keys on their way to a writer, by blocks.
struct Blocks {
    writer: Box<dyn SnapshotWriter>,
    keys: Vec<KeyDump>,
    bytes: usize,
}

impl Blocks {
    fn of(writer: Box<dyn SnapshotWriter>) -> Blocks {
        Blocks { writer, keys: Vec::new(), bytes: 0 }
    }

    /// Adds a key, and writes the block when it is full: what a source returns at once may be much more than a block.
    async fn add(&mut self, key: KeyDump) -> Result<()> {
        let bytes = stored_bytes(&key);
        check_size(&key, bytes, BLOCK_BYTES_MAX)?;
        if self.bytes + bytes > BLOCK_BYTES {
            self.flush().await?;
        }
        self.bytes += bytes;
        self.keys.push(key);
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        match std::mem::take(&mut self.keys) {
            keys if keys.is_empty() => Ok(()),
            keys => self.writer.write(keys).await,
        }
    }

    async fn end(mut self) -> Result<Box<dyn SnapshotWriter>> {
        self.flush().await?;
        Ok(self.writer)
    }
}

/// Refuses a key that no reader would take.
fn check_size(key: &KeyDump, bytes: usize, max: usize) -> Result<()> {
    if bytes > max {
        return Err(Error::KeyTooLarge { key: emberkeep_hot::show(&key.key), bytes, max });
    }
    Ok(())
}

async fn begun(
    hot: &Store,
    store: &dyn SnapshotStore,
    keys: &PartitionKeys,
    (at, one_moment): (i64, bool),
    label: Label,
) -> Result<SnapshotInfo> {
    let partition = keys.label();
    let generation = match label.generation {
        Some(generation) => generation,
        // A store that lost its generations has those of its snapshots still.
        None => {
            let listed = store.list().await?.greatest_generation(&partition);
            store.generation(&partition).await?.max(listed.unwrap_or_default())
        }
    };
    Ok(SnapshotInfo {
        id: SnapshotId::new(at, mixed(hot.engine().seed())),
        name: label.name,
        partition,
        created_at: at,
        generation,
        tick: label.tick,
        one_moment,
        keys: 0,
        bytes: 0,
        families: BTreeMap::new(),
        checksum: String::new(),
    })
}

/// Seeds of an engine may differ in few bits.
fn mixed(seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&seed.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_hot::command::Content;

    #[test]
    fn a_key_that_no_block_takes_is_refused() {
        let key = KeyDump { key: "k".into(), content: Content::Text("text".into()), deadline: None };
        let bytes = stored_bytes(&key);
        assert_eq!(check_size(&key, bytes, bytes), Ok(()));
        let refused = check_size(&key, bytes, bytes - 1);
        assert!(matches!(refused, Err(Error::KeyTooLarge { .. })), "{refused:?}");
    }
}
