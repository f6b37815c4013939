//! A dump: the chosen keys as they are at one moment, in steps between which transactions run.

use super::Inner;
use super::copies::{self, EndCopies};
use super::locks::{ALL, Locked};
use crate::command::KeyDump;
use crate::engine::{DumpSteps, KeyFilter, Lsn, Pending};
use crate::error::Result;
use crate::limits::SHARDS;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

/// A dump under way.
pub(super) struct EmbeddedDump {
    inner: Arc<Inner>,
    /// The moment that it shows.
    at: i64,
    /// What was written before the cut.
    lsn: Lsn,
    /// The shard that is walked, and the positions of it that are to come.
    shard: usize,
    from: usize,
    /// No rewrite and no other dump meanwhile.
    _one: OwnedMutexGuard<()>,
}

/// Makes the cut, when no rewrite and no other dump runs.
pub(super) async fn begin(inner: &Arc<Inner>, chosen: KeyFilter) -> Result<Box<dyn DumpSteps>> {
    inner.check_callable()?;
    let one = inner.copying.clone().lock_owned().await;
    inner.check_callable()?;
    let mut locked = Locked::take(inner, ALL);
    copies::begin(&mut locked, Some(chosen));
    let (at, lsn) = (inner.ticker.now(), inner.read_lsn());
    drop(locked);
    Ok(Box::new(EmbeddedDump { inner: inner.clone(), at, lsn, shard: 0, from: usize::MAX, _one: one }))
}

impl EmbeddedDump {
    /// One step: some entries of a shard under its lock. `None` after the last shard.
    fn step(&mut self) -> Option<Vec<KeyDump>> {
        let shard = self.inner.shards.get(self.shard)?;
        let copied = copies::walk(&mut shard.lock(), &mut self.from, self.at);
        if self.from == 0 {
            (self.shard, self.from) = (self.shard + 1, usize::MAX);
        }
        Some(copied)
    }
}

impl DumpSteps for EmbeddedDump {
    fn at(&self) -> i64 {
        self.at
    }

    fn next(&mut self) -> Pending<'_, Result<Option<Vec<KeyDump>>>> {
        Box::pin(async move {
            self.inner.check_callable()?;
            // Nothing leaves the engine before it is durable.
            self.inner.wait_durable(std::mem::take(&mut self.lsn)).await?;
            for _ in 0..SHARDS {
                match self.step() {
                    None => return Ok(None),
                    Some(copied) if copied.is_empty() => {}
                    Some(copied) => return Ok(Some(copied)),
                }
            }
            Ok(Some(Vec::new()))
        })
    }
}

impl Drop for EmbeddedDump {
    fn drop(&mut self) {
        drop(EndCopies(&self.inner));
    }
}
