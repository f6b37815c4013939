//! Automatic snapshots.

use crate::error::Result;
use crate::info::{Label, SnapshotInfo};
use crate::prune::Retention;
use crate::snapshots::Snapshots;
use emberkeep_hot::store::PartitionKeys;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// Snapshots of a partition at intervals, and which of them are kept. Only those with the schedule's name are counted
/// and pruned, so that snapshots made by hand stay.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Time from one snapshot to the next.
    pub every: Duration,
    /// Which are kept; an empty one keeps all.
    pub keep: Retention,
    /// Their name.
    pub name: String,
}

impl Schedule {
    /// Whether a snapshot is due: there is none of the last interval. Those of the future do not count: they were taken
    /// before the clock went back.
    pub fn is_due(&self, taken: impl IntoIterator<Item = i64>, now: i64) -> bool {
        let every = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX);
        let newest = taken.into_iter().filter(|at| *at <= now).max();
        newest.is_none_or(|newest| now.saturating_sub(newest) >= every)
    }

    /// Makes a snapshot if one is due, and prunes. Several processes with one schedule may make one each.
    pub async fn run_due(&self, snapshots: &Snapshots, keys: &PartitionKeys) -> Result<Option<SnapshotInfo>> {
        let (label, now) = (keys.label(), snapshots.hot().now().await?);
        let listing = snapshots.list().await?;
        let own = |info: &&SnapshotInfo| info.partition == label && info.name == self.name;
        let times = listing.snapshots.iter().filter(own).map(|info| info.created_at);
        if !self.is_due(times, now) {
            return Ok(None);
        }
        let taken = snapshots.create(keys, Label::named(&self.name), &mut |_| ()).await?;
        if !self.keep.is_empty() {
            self.prune(snapshots, &taken).await?;
        }
        Ok(Some(taken))
    }

    /// Prunes. Those of the future neither count nor go, and the one just taken stays.
    async fn prune(&self, snapshots: &Snapshots, taken: &SnapshotInfo) -> Result<()> {
        let mut own = snapshots.list().await?.snapshots;
        own.retain(|info| info.partition == taken.partition && info.name == self.name);
        own.retain(|info| info.created_at <= taken.created_at);
        for id in self.keep.to_remove(&own).iter().filter(|id| **id != taken.id) {
            snapshots.store().remove(id).await?;
        }
        Ok(())
    }

    /// Makes snapshots until `stop` is ready. Failures are logged, and tried again at the next look.
    pub async fn run(&self, snapshots: &Snapshots, keys: &PartitionKeys, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        // Often enough that a snapshot is late by little.
        let pause = (self.every / 10).clamp(Duration::from_millis(10), Duration::from_secs(60));
        loop {
            if let Err(error) = self.run_due(snapshots, keys).await {
                tracing::warn!(partition = %keys.label(), %error, "a snapshot that was due was not made");
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_after_the_interval_and_after_a_clock_that_went_back() {
        let schedule =
            Schedule { every: Duration::from_secs(1), keep: Retention::default(), name: "auto".into() };
        let due = |taken: &[i64], now| schedule.is_due(taken.iter().copied(), now);
        assert!(due(&[], 0) && !due(&[0], 999) && due(&[0], 1_000));
        assert!(due(&[5_000], 4_999), "of the future alone");
        assert!(!due(&[5_000, 4_000], 4_999), "one was taken since the clock went back");
    }
}
