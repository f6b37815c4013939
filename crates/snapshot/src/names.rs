//! Names of keys in snapshots: the raw key without the prefix and the Cluster tag of the engine.

use bytes::Bytes;
use emberkeep_hot::store::PartitionKeys;
use emberkeep_schema::{KeyLayout, Topology};

/// What stands before the names of a partition on an engine.
pub(crate) struct Names {
    start: Vec<u8>,
}

impl Names {
    pub(crate) fn of(layout: &KeyLayout, keys: &PartitionKeys) -> Names {
        let mut start = layout.prefix().as_bytes().to_vec();
        if layout.topology() == Topology::Cluster {
            start.push(b'{');
            start.extend_from_slice(keys.partition());
            start.push(b'}');
        }
        Names { start }
    }

    /// The name of a raw key; `None` = it is not laid out like one of this engine.
    pub(crate) fn name(&self, raw: &Bytes) -> Option<Bytes> {
        raw.starts_with(&self.start).then(|| raw.slice(self.start.len()..))
    }

    /// The raw key of a name.
    pub(crate) fn raw(&self, name: &Bytes) -> Bytes {
        if self.start.is_empty() { name.clone() } else { [&self.start[..], name].concat().into() }
    }
}
