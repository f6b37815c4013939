//! Who plays in which zones of the city: decided once, and the same in every process.

use emberkeep::games::darkages::{DarkAges, Shard, Shards, ZoneId};
use emberkeep::hot::Store;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One process' part of the city.
pub(crate) struct City {
    pub(crate) game: DarkAges,
    pub(crate) plan: CityPlan,
}

impl City {
    pub(crate) fn new(store: Store, plan: CityPlan) -> City {
        let game = DarkAges::new(store, "demo").expect("a short name of letters");
        City { game: game.with_shards(plan.shards()), plan }
    }
}

/// Players and zones of the city.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CityPlan {
    /// The first player; the others follow.
    pub first_player: i64,
    /// Players in all processes.
    pub players: u32,
    /// The first zone; the others follow.
    pub first_zone: i32,
    /// How many zones the city has.
    pub zones: u32,
    /// Shards that the zones are divided into; on a Cluster each is a partition.
    pub shards: u16,
    /// How long a player rests between two turns.
    pub rest: Duration,
}

impl CityPlan {
    /// Players and zones with numbers of their own, so that their counts are exact whatever else the store holds.
    pub fn new() -> CityPlan {
        CityPlan {
            first_player: fastrand::i64(1 << 40..1 << 52) << 10,
            players: 24,
            first_zone: fastrand::i32(1 << 20..1 << 30),
            zones: 4,
            shards: 2,
            rest: Duration::from_millis(5),
        }
    }

    /// The players of one of several processes.
    pub(crate) fn players_of(&self, process: u32, processes: u32) -> Vec<i64> {
        let numbers = (0..self.players).filter(|number| number % processes == process);
        numbers.map(|number| self.first_player + i64::from(number)).collect()
    }

    /// The ids of all players of the plan.
    pub(crate) fn all_players(&self) -> Vec<i64> {
        self.players_of(0, 1)
    }

    /// The shards: an equal part of the zones each. One alone is not declared, so it is shard 0.
    pub(crate) fn shards(&self) -> Shards {
        if self.shards < 2 {
            return Shards::default();
        }
        let zones = self.zones.div_ceil(u32::from(self.shards)) as i32;
        let ranges = (0..self.shards).map(|number| {
            let first = self.first_zone + i32::from(number) * zones;
            (first..=first + zones - 1, Shard(number + 1))
        });
        Shards::new(ranges).expect("ranges without overlaps")
    }

    /// The ids of all zones of the plan.
    pub(crate) fn all_zones(&self) -> Vec<ZoneId> {
        (0..self.zones).map(|number| ZoneId(self.first_zone + number as i32)).collect()
    }
}

impl Default for CityPlan {
    fn default() -> CityPlan {
        CityPlan::new()
    }
}
