//! The whole keyspace as plain data, to compare one with another.

use crate::command::KeyDump;
use crate::embedded::Inner;
use crate::embedded::copies::dump_of;
use crate::embedded::locks::{ALL, Locked};

/// All live keys, sorted, at one moment.
pub(super) fn dump(inner: &Inner) -> Vec<KeyDump> {
    let mut locked = Locked::take(inner, ALL);
    let now = inner.ticker.now();
    let mut records = Vec::new();
    for shard in locked.shards() {
        let living =
            (0..shard.len()).map(|position| shard.at(position)).filter(|entry| !entry.is_expired(now));
        records.extend(living.map(dump_of));
    }
    drop(locked);
    records.sort_by(|a, b| a.key.cmp(&b.key));
    records
}
