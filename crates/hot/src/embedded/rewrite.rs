//! The journal's rewrite: a snapshot of the keyspace at one moment, taken while transactions continue.
//!
//! The cut is made under all locks: the journal switches to a new file, and the shards begin to copy (see
//! `copies`). Then each shard is walked, and what it has is written to the base. Expired entries are left out: a
//! later write of such a key begins with a DEL or replaces the value.
//!
//! Budget: every [`SWEEP_PAUSE`] the walk pauses for an expiry sweep, which runs on the same thread, and writes out
//! all copies, which wait in memory.

use super::Inner;
use super::copies::{self, EndCopies, PendingCopies};
use super::expire;
use super::locks::{ALL, Locked};
use crate::command::KeyDump;
use crate::error::{Error, Result};
use crate::journal::{Journal, Rewrite};
use crate::limits::{SHARDS, SWEEP_BUDGET, SWEEP_PAUSE};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Replaces the journal's history by the state of this moment.
pub(super) fn rewrite(inner: &Inner) -> Result<()> {
    let Some(journal) = inner.journal() else { return Ok(()) };
    let _one = inner.copying.try_lock().map_err(|_| busy())?;
    // Before the cut, so that it is dropped last: however the walk ends, by a panic too.
    let _copies = EndCopies(inner);
    let mut snapshot = Snapshot { inner, base: cut(inner, journal)?, rested: Instant::now() };
    (0..SHARDS).try_for_each(|index| snapshot.save_shard(index))?;
    snapshot.base.finish()
}

/// The moment that the snapshot shows.
fn cut(inner: &Inner, journal: &Journal) -> Result<Rewrite> {
    // Its files are made before the locks are taken: that takes some syncs.
    let prepared = journal.prepare_rewrite()?;
    let mut locked = Locked::take(inner, ALL);
    let base = prepared.cut()?;
    copies::begin(&mut locked, None);
    Ok(base)
}

fn busy() -> Error {
    Error::Unavailable {
        backend: "journal".to_owned(),
        reason: "another rewrite or a snapshot is running".to_owned(),
        advice: "call again when it is finished",
    }
}

/// A snapshot in the making.
struct Snapshot<'a> {
    inner: &'a Inner,
    base: Rewrite,
    /// When it last gave way to the sweep.
    rested: Instant,
}

impl Snapshot<'_> {
    fn save_shard(&mut self, index: usize) -> Result<()> {
        let mut from = usize::MAX;
        while from > 0 {
            let copied =
                copies::walk(&mut self.inner.shards[index].lock(), &mut from, self.inner.ticker.now());
            self.write_out(copied)?;
            if self.rested.elapsed() >= SWEEP_PAUSE {
                self.rest()?;
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<()> {
        if self.inner.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        expire::cycle(self.inner, SWEEP_BUDGET);
        for shard in &self.inner.shards {
            let copied = shard.lock().pending_copies.as_mut().map(PendingCopies::fetch);
            self.write_out(copied.unwrap_or_default())?;
        }
        self.rested = Instant::now();
        Ok(())
    }

    fn write_out(&mut self, copied: Vec<KeyDump>) -> Result<()> {
        copied.iter().try_for_each(|copy| self.base.write(&copy.key, &copy.writes()))
    }
}
