//! Random inserts, upserts, deletes, ranges and pages beside a plain map.

mod folders;

use emberkeep_history::testing::{CombatEvent, NOW, event, schema};
use emberkeep_history::{Embedded, History, Query};
use emberkeep_schema::{Day, Table as _, Timestamp};
use folders::{Folder, options};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

const PROGRAMS: u64 = 12;
const STEPS: usize = 150;

/// The rows in the table's order: newest first, then by id.
type Model = BTreeMap<(Reverse<Timestamp>, Uuid), CombatEvent>;

fn random_event(rng: &mut fastrand::Rng) -> CombatEvent {
    // Few keys, so that most of them are written several times, over four days.
    let ago = rng.i64(0..12) * 8 * 3_600_000 + rng.i64(0..2);
    let mut row = event(rng.i64(0..4), ago, rng.u128(0..3));
    (row.zone_id, row.damage) = (rng.i32(0..3), rng.i32(..));
    row.ability_name = rng.bool().then(|| "x".repeat(rng.usize(0..3)));
    row
}

async fn all(query: Query<CombatEvent>, rows_max: usize) -> Vec<CombatEvent> {
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
        0 => CombatEvent::partition(days.clone()),
        1 => CombatEvent::by_attacker(attacker, days.clone()),
        _ => CombatEvent::by_zone(zone, days.clone()),
    };
    let in_days = |day: Day| days.contains(&day);
    let is_wanted = |row: &&CombatEvent| match choice {
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
    let open = || History::new(Arc::new(Embedded::open(folder.path(), schema(), options()).unwrap()));
    let (mut history, mut model) = (open(), Model::new());
    for _ in 0..STEPS {
        match rng.u8(0..12) {
            0..=3 => {
                let rows: Vec<_> = (0..rng.usize(0..6)).map(|_| random_event(&mut rng)).collect();
                model.extend(rows.iter().map(|row| ((Reverse(row.timestamp), row.event_id), row.clone())));
                match rng.bool() {
                    true => history.insert_many(rows).await.unwrap(),
                    false => history.upsert_many(rows).await.unwrap(),
                };
            }
            4 => {
                let row = random_event(&mut rng);
                model.remove(&(Reverse(row.timestamp), row.event_id));
                history.delete(row.row_key()).await.unwrap();
            }
            5 => {
                let row = random_event(&mut rng);
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
        all(history.range(CombatEvent::partition(everything)), 7).await,
        model.into_values().collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn does_what_a_map_does() {
    for number in 0..PROGRAMS {
        program(number).await;
    }
}
