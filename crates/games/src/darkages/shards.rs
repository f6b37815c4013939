//! Which zones a transaction can change together.
//!
//! A shard is a declared group of zones. On a Cluster each shard is a partition of its own, so shards spread over its
//! servers. An engine without slots has the documents' exact keys, which do not name the shard: there all shards are one
//! partition. Which of the two it is follows from the engine's key layout; nothing has to be configured.

use super::error::{Error, Result};
use super::limits::{SHARD_RANGES_MAX, SHARDS_MAX};
use super::model::ZoneId;
use super::schema::Shard;
use emberkeep_schema::{KeyLayout, Topology};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The shards of a game: which zones belong to which. Zones that no range names belong to shard 0, and so does
/// [`ZoneId::NONE`].
///
/// As text, for settings: `1:1-99,2:100-199,2:500`. All services of a game are given the same. A zone changes its shard
/// while it is empty: its members are looked for in its shard only.
///
/// ```
/// use emberkeep_games::darkages::{Shard, Shards, ZoneId};
///
/// let shards: Shards = "1:1-99,2:100-199".parse()?;
/// assert_eq!(shards.of(ZoneId(42)), Shard(1));
/// assert_eq!(shards.of(ZoneId(1_000)), Shard(0));
/// assert_eq!(shards.all(), [Shard(0), Shard(1), Shard(2)]);
/// # Ok::<_, emberkeep_games::darkages::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shards {
    /// In the order of their zones, without overlaps.
    ranges: Vec<(RangeInclusive<i32>, Shard)>,
}

impl Shards {
    /// Shards by ranges of zones. A zone in two ranges, an empty range and zones below 1 are refused.
    pub fn new(ranges: impl IntoIterator<Item = (RangeInclusive<i32>, Shard)>) -> Result<Shards> {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        ranges.sort_by_key(|(zones, _)| *zones.start());
        for (zones, shard) in &ranges {
            if *zones.start() < 1 || zones.is_empty() {
                let problem = format!(
                    "zones {} to {} of shard {shard}, expected 1 or more",
                    zones.start(),
                    zones.end()
                );
                return Err(Error::invalid("shards", problem));
            }
        }
        for pair in ranges.windows(2) {
            if pair[1].0.start() <= pair[0].0.end() {
                let problem = format!("zone {} is in two ranges, expected one", pair[1].0.start());
                return Err(Error::invalid("shards", problem));
            }
        }
        let shards = Shards { ranges };
        let (count, declared) = (shards.all().len(), shards.ranges.len());
        if count > SHARDS_MAX || declared > SHARD_RANGES_MAX {
            let problem = format!(
                "{count} shards in {declared} ranges, expected at most {SHARDS_MAX} in {SHARD_RANGES_MAX}"
            );
            return Err(Error::invalid("shards", problem));
        }
        Ok(shards)
    }

    /// The shard of a zone.
    pub fn of(&self, zone: ZoneId) -> Shard {
        let after = self.ranges.partition_point(|(zones, _)| *zones.start() <= zone.0);
        let found = after.checked_sub(1).map(|index| &self.ranges[index]);
        found.filter(|(zones, _)| zones.contains(&zone.0)).map_or(Shard(0), |(_, shard)| *shard)
    }

    /// Whether two zones are of different shards. A player in no zone is where it was.
    pub(super) fn are_apart(&self, one: ZoneId, other: ZoneId) -> bool {
        one != ZoneId::NONE && other != ZoneId::NONE && self.of(one) != self.of(other)
    }

    /// All shards in order, shard 0 among them.
    pub fn all(&self) -> Vec<Shard> {
        let declared = self.ranges.iter().map(|(_, shard)| *shard);
        declared.chain([Shard(0)]).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The partition of a shard's keys: the shard itself on a Cluster, shard 0 where keys do not name their partition.
    pub(super) fn partition(shard: Shard, layout: &KeyLayout) -> Shard {
        match layout.topology() {
            Topology::Cluster => shard,
            Topology::Single => Shard(0),
        }
    }

    /// The partitions of all shards' keys.
    pub fn partitions(&self, layout: &KeyLayout) -> Vec<Shard> {
        let mut partitions: Vec<_> =
            self.all().into_iter().map(|shard| Shards::partition(shard, layout)).collect();
        partitions.dedup();
        partitions
    }
}

impl FromStr for Shards {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shards> {
        let range = |part: &str| {
            let (shard, zones) = part.split_once(':')?;
            let (first, last) = zones.split_once('-').unwrap_or((zones, zones));
            Some((first.parse().ok()?..=last.parse().ok()?, Shard(shard.parse().ok()?)))
        };
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let ranges = parts.map(|part| {
            range(part).ok_or_else(|| {
                Error::invalid("shards", format!("{part:?}, expected SHARD:FIRST-LAST such as 1:1-99"))
            })
        });
        Shards::new(ranges.collect::<Result<Vec<_>>>()?)
    }
}

impl fmt::Display for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (zones, shard)) in self.ranges.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{shard}:{}-{}", zones.start(), zones.end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        text.parse::<Shards>().unwrap_err().to_string()
    }

    #[test]
    fn a_zone_is_in_one_shard() {
        let shards: Shards = "2:100-199, 1:1-99,2:500,7:2147483647".parse().unwrap();
        let of = |zone| shards.of(ZoneId(zone)).0;
        assert_eq!([of(0), of(1), of(99), of(100), of(199), of(200)], [0, 1, 1, 2, 2, 0]);
        assert_eq!([of(499), of(500), of(501), of(i32::MAX), of(-1)], [0, 2, 0, 7, 0]);
        assert_eq!(shards.to_string(), "1:1-99,2:100-199,2:500-500,7:2147483647-2147483647");
        assert_eq!(shards.to_string().parse(), Ok(shards));
        assert_eq!("".parse(), Ok(Shards::default()));
        assert_eq!(Shards::default().all(), [Shard(0)]);
    }

    #[test]
    fn shards_that_contradict_each_other_are_refused() {
        assert!(problem("1:1-99,2:99-120").contains("zone 99 is in two ranges"));
        assert!(problem("1:9-1").contains("zones 9 to 1 of shard 1, expected 1 or more"));
        assert!(problem("1:0-5").contains("expected 1 or more"));
        for text in ["1", "x:1-2", "1:1-x", "70000:1", "1:-5", "1:1-2-3"] {
            assert!(problem(text).contains("expected"), "{text}");
        }
        let many: Vec<_> = (1..=1_000).map(|zone| (zone..=zone, Shard(zone as u16))).collect();
        assert!(Shards::new(many).unwrap_err().to_string().contains("expected at most"));
    }

    #[test]
    fn only_a_cluster_has_several_partitions() {
        let shards: Shards = "1:1-99,2:100-199".parse().unwrap();
        assert_eq!(shards.partitions(&KeyLayout::single()), [Shard(0)]);
        assert_eq!(shards.partitions(&KeyLayout::cluster()), [Shard(0), Shard(1), Shard(2)]);
    }
}
