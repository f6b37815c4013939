//! Pages of a family's keys in one partition.

use super::{Scope, glob_of};
use crate::command::RawKey;
use crate::engine::Cursor;
use crate::error::Result;
use emberkeep_schema::{Family, Key, Partition};

/// A page of a family's keys in one partition.
pub struct PartitionPage<F: Family> {
    /// Keys of this page, possibly none although more follow. A key may appear on two pages.
    pub keys: Vec<Key<F>>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

impl<P: Partition> Scope<P> {
    /// One page of a family's keys in this partition, for tools and sweeps. About `count` keys of the engine
    /// are examined: all of a server, or on a Cluster those of the server that has the partition. An index is
    /// the better way to find keys often. After a server restarts or slots of a Cluster move, the cursor is
    /// refused (`Error::Invalid`): start again without one.
    ///
    /// On one server, keys of a family whose pattern does not contain the partition belong to all of them.
    pub async fn scan<F>(&self, from: Option<Cursor>, count: usize) -> Result<PartitionPage<F>>
    where
        F: Family<Partition = P>,
    {
        let layout = self.caller.store.layout;
        let pattern = glob_of::<F>(layout, Some(&self.caller.text));
        let page = self.caller.store.engine.scan_partition(&self.caller.text, from, &pattern, count).await?;
        // A part may contain what separates parts, so each key is parsed, rendered again and compared.
        let own =
            |raw: &RawKey| F::parse(layout, raw).map(|(_, key)| key).filter(|key| self.raw(key) == *raw);
        Ok(PartitionPage { keys: page.keys.iter().filter_map(own).collect(), next: page.next })
    }
}
