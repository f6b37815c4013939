//! How far sources were applied, as stored beside the state that they feed.

use super::marks::Marks;
use crate::limits::SOURCE_BYTES_MAX;
use emberkeep_hot::store::LogPosition;
use emberkeep_hot::{Error, ReadTx, Result, Scope, Tx};
use emberkeep_schema::{Family, Hash, Json, Key, Log, Newest, Partition, Persistent, Raw, Utf8, record};
use std::collections::HashSet;

record! {
    /// How far a source was applied.
    #[derive(Clone, Debug, PartialEq)]
    pub struct FeedRecord {
        /// The sequence of the last entry.
        pub sequence: u64 => "sequence",
        /// Its mark; absent for a source that is never set back, such as a spool.
        pub mark: Option<u32> => "mark" optional,
    }
}

/// The positions of all sources that feed one partition.
#[derive(Debug, Clone)]
pub struct Feed<S: Family, A: Family> {
    positions: Key<S>,
    applied: Key<A>,
}

impl<P, S, A, const MAX: usize> Feed<S, A>
where
    P: Partition,
    S: Family<Partition = P, Kind = Hash<Utf8, Json<FeedRecord>>, Ttl = Persistent>,
    A: Family<Partition = P, Kind = Log<Raw, Newest<MAX>>, Ttl = Persistent>,
{
    /// The positions at these keys. The log of marks should keep
    /// [`FEED_PAGES_REMEMBERED`](crate::limits::FEED_PAGES_REMEMBERED) entries.
    pub fn new(positions: Key<S>, applied: Key<A>) -> Self {
        Feed { positions, applied }
    }

    /// The last entry of a source that was applied; the start if none was.
    pub fn position(&self, tx: &mut ReadTx<'_, P>, source: &str) -> Result<LogPosition> {
        let record = tx.hget(&self.positions, &source.to_owned())?;
        Ok(record
            .map_or(LogPosition::START, |FeedRecord { sequence, mark, .. }| LogPosition { sequence, mark }))
    }

    /// Moves a source from `expected` to the last of some entries that follow each other; `false` = another process was first,
    /// and the caller must not apply them. Call it in the transaction that applies them.
    pub fn advance(
        &self,
        tx: &mut Tx<'_, P>,
        source: &str,
        expected: LogPosition,
        entries: &[LogPosition],
    ) -> Result<bool> {
        if self.position(tx, source)? != expected {
            return Ok(false);
        }
        let Some(last) = entries.last() else { return Ok(true) };
        self.set(tx, source, *last)?;
        let marks: Option<Vec<u32>> = entries.iter().map(|entry| entry.mark).collect();
        if let Some(marks) = marks {
            let marks = Marks { source: source.to_owned(), first: entries[0].sequence, marks };
            tx.append(&self.applied, &marks.encode())?;
        }
        Ok(true)
    }

    /// Sets the position of a source: after a rebuild of the state, the last entry that is part of it.
    pub fn set(&self, tx: &mut Tx<'_, P>, source: &str, position: LogPosition) -> Result<()> {
        check_source(source)?;
        let LogPosition { sequence, mark } = position;
        let record = FeedRecord { mark, ..FeedRecord::new(sequence) };
        tx.hset(&self.positions, &source.to_owned(), &record)
    }

    /// Sequence and mark of the entries of a source that were applied lately.
    pub(super) async fn remembered(&self, scope: &Scope<P>, source: &str) -> Result<HashSet<(u64, u32)>> {
        let (mut found, mut after) = (HashSet::new(), LogPosition::START);
        loop {
            let page = scope.log_after(&self.applied, after, MARKS_PER_READ).await?;
            let Some(last) = page.entries.last() else { return Ok(found) };
            after = last.position();
            let marks = page.entries.iter().filter_map(|entry| Marks::decode(entry.event.as_ref().ok()?));
            marks.filter(|marks| marks.source == source).for_each(|marks| found.extend(marks.entries()));
        }
    }
}

/// Pages of marks of one read: each has up to 2 KB.
const MARKS_PER_READ: usize = 100;

fn check_source(source: &str) -> Result<()> {
    if (1..=SOURCE_BYTES_MAX).contains(&source.len()) {
        return Ok(());
    }
    let problem = format!("{} bytes, expected 1 to {SOURCE_BYTES_MAX}", source.len());
    Err(Error::Invalid { what: "source of a feed", problem })
}
