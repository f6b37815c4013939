//! Which snapshots are kept.

use crate::id::SnapshotId;
use crate::info::SnapshotInfo;
use std::collections::HashSet;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Which snapshots of a partition are kept: what any of the rules keeps stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// The newest ones, so many.
    pub last: usize,
    /// The newest of each of so many hours that have one, the latest hours first.
    pub hourly: usize,
    /// The same by days (UTC).
    pub daily: usize,
}

impl Retention {
    /// Whether nothing would be kept.
    pub fn is_empty(&self) -> bool {
        *self == Retention::default()
    }

    /// Those of a partition's snapshots that no rule keeps, the oldest first.
    pub fn to_remove(&self, snapshots: &[SnapshotInfo]) -> Vec<SnapshotId> {
        let mut newest: Vec<&SnapshotInfo> = snapshots.iter().collect();
        newest.sort_by(|a, b| b.order().cmp(&a.order()));
        let mut kept: HashSet<&SnapshotId> = newest.iter().take(self.last).map(|info| &info.id).collect();
        for (most, length) in [(self.hourly, HOUR_MS), (self.daily, DAY_MS)] {
            let mut by_time = newest.clone();
            by_time.sort_by_key(|info| std::cmp::Reverse(info.created_at));
            by_time.dedup_by_key(|info| info.created_at.div_euclid(length));
            kept.extend(by_time.iter().take(most).map(|info| &info.id));
        }
        newest.iter().rev().filter(|info| !kept.contains(&info.id)).map(|info| info.id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn taken(created_at: i64) -> SnapshotInfo {
        SnapshotInfo {
            id: SnapshotId::new(created_at, created_at as u64),
            name: String::new(),
            partition: "Room:r".into(),
            created_at,
            generation: 0,
            tick: None,
            one_moment: true,
            keys: 0,
            bytes: 0,
            families: BTreeMap::new(),
            checksum: String::new(),
        }
    }

    fn left(retention: Retention, times: &[i64]) -> Vec<i64> {
        let snapshots: Vec<SnapshotInfo> = times.iter().map(|at| taken(*at)).collect();
        let removed = retention.to_remove(&snapshots);
        snapshots.iter().filter(|info| !removed.contains(&info.id)).map(|info| info.created_at).collect()
    }

    #[test]
    fn the_newest_are_kept_and_the_newest_of_hours_and_days() {
        let minute = 60_000;
        let times = [0, minute, HOUR_MS, HOUR_MS + minute, DAY_MS, DAY_MS + minute, DAY_MS + 2 * minute];
        assert_eq!(left(Retention { last: 2, ..Retention::default() }, &times), times[5..]);
        assert_eq!(left(Retention { hourly: 2, ..Retention::default() }, &times), [times[3], times[6]]);
        assert_eq!(left(Retention { daily: 5, ..Retention::default() }, &times), [times[3], times[6]]);
        let all = Retention { last: 1, hourly: 3, daily: 1 };
        assert_eq!(left(all, &times), [times[1], times[3], times[6]]);
        assert_eq!(left(Retention::default(), &times), [] as [i64; 0]);
    }

    #[test]
    fn a_newer_generation_is_newer_whatever_its_time() {
        let (old, new) = (taken(2 * HOUR_MS), SnapshotInfo { generation: 1, ..taken(HOUR_MS) });
        let removed = Retention { last: 1, ..Retention::default() }.to_remove(&[old.clone(), new]);
        assert_eq!(removed, [old.id]);
    }
}
