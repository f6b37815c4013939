//! Random upserts, deletes, ranges and pages beside a plain map.

mod folders;

use emberkeep_history::testing::NOW;
use emberkeep_history::{Embedded, History, HistorySchema, Query};
use emberkeep_schema::{Day, Table as _, Timestamp, table};
use folders::{Folder, options};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

const PROGRAMS: u64 = 12;
const STEPS: usize = 150;

/// The rows in the table's order: newest first, then by id.
type Model = BTreeMap<(Reverse<Timestamp>, Uuid), Hit>;

table! {
    /// Hits that may be corrected and removed: rows with a bucket and lookups.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Hit = "hits" {
        /// When it happened.
        pub timestamp: Timestamp,
        /// Its id.
        pub event_id: Uuid,
        /// The attacker.
        pub attacker_id: i64,
        /// The zone.
        pub zone_id: i32,
        /// Health taken.
        pub damage: i32,
        /// The ability, if one was used.
        pub ability_name: Option<String>,
    }
    partition: (day_bucket = day(timestamp)),
    clustering: (timestamp desc, event_id asc),
    ttl: days(30) of timestamp,
    compaction: time_window(days(1)),
    lookups: (by_attacker(attacker_id, day_bucket), by_zone(zone_id, day_bucket)),
    writes: rows,
    owner: "test",
}

fn random_hit(rng: &mut fastrand::Rng) -> Hit {
    // Few keys, so that most of them are written several times, over four days.
    let ago = rng.i64(0..12) * 8 * 3_600_000 + rng.i64(0..2);
    Hit {
        timestamp: Timestamp(NOW - ago),
        event_id: Uuid::from_u128(rng.u128(0..3)),
        attacker_id: rng.i64(0..4),
        zone_id: rng.i32(0..3),
        damage: rng.i32(..),
        ability_name: rng.bool().then(|| "x".repeat(rng.usize(0..3))),
    }
}

async fn all(query: Query<Hit>, rows_max: usize) -> Vec<Hit> {
    let query = query.rows_max(rows_max);
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..500 {
        let page = query.page(after.as_ref()).await.unwrap();
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
    panic!("a query of more than 500 pages");
}

async fn compare(history: &History, model: &Model, rng: &mut fastrand::Rng) {
    let time = |rng: &mut fastrand::Rng| Timestamp(NOW - rng.i64(0..100) * 3_600_000);
    let (a, b) = (time(rng), time(rng));
    let (low, high) = (a.min(b), a.max(b));
    let days = low.day()..=high.day();
    let (attacker, zone) = (rng.i64(0..4), rng.i32(0..3));
    let choice = rng.u8(0..3);
    let rows = match choice {
        0 => Hit::partition(days.clone()),
        1 => Hit::by_attacker(attacker, days.clone()),
        _ => Hit::by_zone(zone, days.clone()),
    };
    let in_days = |day: Day| days.contains(&day);
    let is_wanted = |row: &&Hit| match choice {
        0 => true,
        1 => row.attacker_id == attacker,
        _ => row.zone_id == zone,
    };
    let is_bounded = rng.bool();
    let found = model.values().filter(is_wanted).filter(|row| in_days(row.timestamp.day()));
    let found = found.filter(|row| !is_bounded || (low..high).contains(&row.timestamp));
    let mut expected: Vec<_> = found.cloned().collect();
    let mut query = history.range(rows);
    if is_bounded {
        query = query.between(low..high);
    }
    if rng.bool() {
        query = query.reversed();
        expected.reverse();
    }
    assert_eq!(all(query, rng.usize(1..8)).await, expected);
}

async fn program(number: u64) {
    let mut rng = fastrand::Rng::with_seed(number);
    let folder = Folder::new();
    let schema = || HistorySchema::new().table::<Hit>();
    let open = || History::new(Arc::new(Embedded::open(folder.path(), schema(), options()).unwrap()));
    let (mut history, mut model) = (open(), Model::new());
    for _ in 0..STEPS {
        match rng.u8(0..12) {
            0..=3 => {
                let key = |row: Hit| ((Reverse(row.timestamp), row.event_id), row);
                let rows: Model = (0..rng.usize(0..6)).map(|_| key(random_hit(&mut rng))).collect();
                history.upsert_many(rows.values().cloned()).await.unwrap();
                model.extend(rows);
            }
            4 => {
                let row = random_hit(&mut rng);
                model.remove(&(Reverse(row.timestamp), row.event_id));
                history.delete(row.row_key()).await.unwrap();
            }
            5 => {
                let row = random_hit(&mut rng);
                let expected = model.get(&(Reverse(row.timestamp), row.event_id));
                assert_eq!(history.get(row.row_key()).await.unwrap().as_ref(), expected);
            }
            6 if rng.u8(0..8) == 0 => {
                if rng.bool() {
                    history.close().await.unwrap();
                }
                drop(history);
                history = open();
            }
            _ => compare(&history, &model, &mut rng).await,
        }
    }
    let everything = Timestamp(NOW - 5 * 86_400_000).day()..=Timestamp(NOW).day();
    assert_eq!(
        all(history.range(Hit::partition(everything)), 7).await,
        model.into_values().collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn does_what_a_map_does() {
    for number in 0..PROGRAMS {
        program(number).await;
    }
}
