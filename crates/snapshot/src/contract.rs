//! The contract of a store of snapshots.

use crate::error::Result;
use crate::id::SnapshotId;
use crate::info::{DamagedSnapshot, SnapshotInfo};
use emberkeep_hot::command::KeyDump;
use emberkeep_hot::engine::Pending;
use std::sync::Arc;

/// All snapshots of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Those that can be read, the newest last.
    pub snapshots: Vec<SnapshotInfo>,
    /// Those that cannot.
    pub damaged: Vec<DamagedSnapshot>,
}

impl Listing {
    /// The greatest generation that a snapshot of a partition has.
    pub fn greatest_generation(&self, partition: &str) -> Option<u64> {
        let of_partition = self.snapshots.iter().filter(|info| info.partition == partition);
        of_partition.map(|info| info.generation).max()
    }
}

/// A place for snapshots. Keys are named without the prefix and the Cluster tag of the engine that they came from, so
/// that a snapshot fits every engine.
pub trait SnapshotStore: Send + Sync + 'static {
    /// Its name in messages, without credentials.
    fn name(&self) -> String;

    /// Begins a snapshot. It is listed when its writer has finished, and never before; a writer that is dropped, or
    /// whose process ends, leaves nothing that is listed.
    fn begin<'a>(&'a self, info: &'a SnapshotInfo) -> Pending<'a, Result<Box<dyn SnapshotWriter>>>;

    /// All snapshots, by their metadata alone.
    fn list(&self) -> Pending<'_, Result<Listing>>;

    /// Opens a snapshot for reading.
    fn open<'a>(&'a self, id: &'a SnapshotId) -> Pending<'a, Result<Box<dyn SnapshotReader>>>;

    /// Removes a snapshot. `false` = there was none.
    fn remove<'a>(&'a self, id: &'a SnapshotId) -> Pending<'a, Result<bool>>;

    /// The generation of a partition: 0 until it was raised.
    fn generation<'a>(&'a self, partition: &'a str) -> Pending<'a, Result<u64>>;

    /// Raises the generation of a partition by at least one, to `at_least` or more, and returns it once it is durable.
    fn raise_generation<'a>(&'a self, partition: &'a str, at_least: u64) -> Pending<'a, Result<u64>>;

    /// The same store, shared.
    fn shared(self) -> Arc<dyn SnapshotStore>
    where
        Self: Sized,
    {
        Arc::new(self)
    }
}

/// A snapshot in the making.
pub trait SnapshotWriter: Send {
    /// Adds keys.
    fn write(&mut self, keys: Vec<KeyDump>) -> Pending<'_, Result<()>>;

    /// Ends the snapshot with its final metadata. Once this returns it is durable and listed.
    fn finish(self: Box<Self>, info: SnapshotInfo) -> Pending<'static, Result<()>>;
}

/// A snapshot that is read from its first key to its last. The caller compares the checksum.
pub trait SnapshotReader: Send {
    /// What is known of it.
    fn info(&self) -> &SnapshotInfo;

    /// The next keys; `None` at the end.
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<KeyDump>>>>;
}
