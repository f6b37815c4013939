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
    /// Whether a snapshot is due: the newest one is older than the interval, or of the future.
    pub fn is_due(&self, newest: Option<i64>, now: i64) -> bool {
        let every = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX);
        newest.is_none_or(|newest| now < newest || now - newest >= every)
    }

    /// Makes a snapshot if one is due, and prunes. Several processes with one schedule may make one each.
    pub async fn run_due(&self, snapshots: &Snapshots, keys: &PartitionKeys) -> Result<Option<SnapshotInfo>> {
        let (label, now) = (keys.label(), snapshots.hot().now().await?);
        let listing = snapshots.list().await?;
        let own = |info: &&SnapshotInfo| info.partition == label && info.name == self.name;
        let newest = listing.snapshots.iter().filter(own).map(|info| info.created_at).max();
        if !self.is_due(newest, now) {
            return Ok(None);
        }
        let taken = snapshots.create(keys, Label::named(&self.name), &mut |_| ()).await?;
        if !self.keep.is_empty() {
            snapshots.prune(&label, Some(&self.name), self.keep).await?;
        }
        Ok(Some(taken))
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
        let due = [(None, 0), (Some(0), 999), (Some(0), 1_000), (Some(5_000), 4_999)];
        assert_eq!(due.map(|(newest, now)| schedule.is_due(newest, now)), [true, false, true, true]);
    }
}
