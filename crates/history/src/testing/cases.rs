//! What every store returns: rows, ranges, lookups, pages.

use super::writes::{profile, sample};
use super::{CombatEvent, NOW, Profile, Sample, event};
use crate::{History, Query};
use emberkeep_schema::{Day, Table, Timestamp};
use uuid::Uuid;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

fn today() -> Day {
    Timestamp(NOW).day()
}

/// All rows of a query, by pages of a few rows.
pub(super) async fn all<T: Table>(query: Query<T>, rows_max: usize) -> Vec<T> {
    let query = query.rows_max(rows_max);
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..1_000 {
        let page = query.page(after.as_ref()).await.unwrap();
        assert!(page.rows.len() <= rows_max);
        assert_eq!(page.unreadable, []);
        rows.extend(page.rows);
        let Some(next) = page.next else { return rows };
        // A cursor passes through text, as it does between two requests of a client.
        after = Some(next.to_string().parse().unwrap());
    }
    panic!("a query of more than 1,000 pages");
}

pub(super) async fn rows_come_back_whole(history: &History) {
    let row = CombatEvent { ability_name: Some("fire é\0ball".into()), ..event(100, 5, 1) };
    let written = history.insert(row.clone()).await.unwrap();
    assert_eq!((written.rows, written.expired), (1, 0));
    assert_eq!(history.get(row.row_key()).await.unwrap(), Some(row));
    let player = profile(101, "ann");
    history.upsert(player.clone()).await.unwrap();
    assert_eq!(history.get(Profile::key(101)).await.unwrap(), Some(player));
    assert_eq!(history.get(Profile::key(102)).await.unwrap(), None);
    let sample = sample("whole", Uuid::from_u128(7));
    history.upsert(sample.clone()).await.unwrap();
    assert_eq!(history.get(sample.row_key()).await.unwrap(), Some(sample));
}

pub(super) async fn a_row_written_again_is_one_row(history: &History) {
    let rows = [event(110, 5, 1), event(110, 6, 2)];
    for _ in 0..3 {
        history.insert_many(rows.clone()).await.unwrap();
    }
    assert_eq!(all(history.range(CombatEvent::by_attacker(110, today())), 10).await, rows);
}

pub(super) async fn ranges_in_both_directions(history: &History) {
    // Two events of one millisecond are ordered by id.
    let mut rows: Vec<_> = (0..20).map(|n| event(120, n / 2 * MINUTE_MS, n as u128)).collect();
    history.insert_many(rows.iter().rev().cloned()).await.unwrap();
    let range = || history.range(CombatEvent::by_zone(120, today()));
    assert_eq!(all(range(), 1_000).await, rows);
    assert_eq!(all(range(), 3).await, rows);
    rows.reverse();
    assert_eq!(all(range().reversed(), 3).await, rows);
    assert_eq!(all(range().reversed(), 1_000).await, rows);
}

pub(super) async fn bounds_of_time(history: &History) {
    let rows: Vec<_> = (0..10).map(|n| event(130, n * MINUTE_MS, n as u128)).collect();
    history.insert_many(rows.clone()).await.unwrap();
    let range = || history.range(CombatEvent::by_target(1_000_130, today()));
    let at = |minutes: i64| Timestamp(NOW - minutes * MINUTE_MS);
    assert_eq!(all(range().between(at(5)..at(2)), 2).await, rows[3..=5]);
    assert_eq!(all(range().between(at(5)..=at(2)), 2).await, rows[2..=5]);
    assert_eq!(all(range().between(at(2)..), 2).await, rows[0..=2]);
    let reversed: Vec<_> = rows[6..].iter().rev().cloned().collect();
    assert_eq!(all(range().between(..at(5)).reversed(), 2).await, reversed);
    assert_eq!(all(range().between(at(2)..at(5)), 2).await, []);
    assert_eq!(all(range().equal(at(4)), 2).await, rows[4..=4]);
}

pub(super) async fn days_follow_each_other(history: &History) {
    let mut rows: Vec<_> = (0..12).map(|n| event(140, n * 7 * 3_600_000, n as u128)).collect();
    history.insert_many(rows.clone()).await.unwrap();
    let days = || rows[11].timestamp.day()..=today();
    let range = || history.range(CombatEvent::by_attacker(140, days()));
    assert_eq!(all(range(), 5).await, rows);
    let between = range().between(rows[8].timestamp..rows[2].timestamp);
    assert_eq!(all(between, 2).await, rows[3..=8]);
    let of_table = all(history.range(CombatEvent::partition(days())), 7).await;
    assert!(of_table.is_sorted_by(|a, b| a.timestamp >= b.timestamp), "the newest is first over all days");
    let of_table: Vec<_> = of_table.into_iter().filter(|row| row.attacker_id == 140).collect();
    assert_eq!(of_table, rows);
    assert_eq!(all(range().reversed(), 5).await, {
        rows.reverse();
        rows
    });
}

pub(super) async fn lookups(history: &History) {
    let (mut one, two) = (event(150, 1, 1), event(151, 2, 2));
    one.target_id = 151;
    history.insert_many([one.clone(), two.clone()]).await.unwrap();
    assert_eq!(all(history.range(CombatEvent::by_attacker(150, today())), 9).await, [one.clone()]);
    assert_eq!(all(history.range(CombatEvent::by_target(151, today())), 9).await, [one]);
    assert_eq!(all(history.range(CombatEvent::by_attacker(151, today())), 9).await, [two]);
    assert_eq!(all(history.range(CombatEvent::by_attacker(152, today())), 9).await, []);
}

pub(super) async fn lookups_follow_an_upsert(history: &History) {
    history.upsert(profile(160, "old")).await.unwrap();
    history.upsert(profile(160, "newer")).await.unwrap();
    history.upsert_many([profile(160, "newest"), profile(161, "newest")]).await.unwrap();
    assert_eq!(all(history.range(Profile::by_username("old")), 9).await, []);
    assert_eq!(all(history.range(Profile::by_username("newer")), 9).await, []);
    let mut newest = all(history.range(Profile::by_username("newest")), 1).await;
    // Partitions of an index have no order on CQL.
    newest.sort_by_key(|row| row.player_id);
    assert_eq!(newest, [profile(160, "newest"), profile(161, "newest")]);
}

pub(super) async fn pages(history: &History) {
    let rows: Vec<_> = (0..25).map(|n| event(170, n, n as u128)).collect();
    history.insert_many(rows.clone()).await.unwrap();
    let query = history.range(CombatEvent::by_attacker(170, today())).rows_max(10);
    let first = query.page(None).await.unwrap();
    assert_eq!(first.rows, rows[..10]);
    // What is written before the position does not move the next page.
    history.insert(event(170, -5, 99)).await.unwrap();
    let second = query.page(first.next.as_ref()).await.unwrap();
    assert_eq!(second.rows, rows[10..20]);
    let third = query.page(second.next.as_ref()).await.unwrap();
    assert_eq!((third.rows.as_slice(), third.next), (&rows[20..], None));
    let exact = history.range(CombatEvent::by_attacker(170, today())).between(..=Timestamp(NOW)).rows_max(25);
    assert_eq!(exact.page(None).await.unwrap().next, None, "a full last page has no cursor");
}

pub(super) async fn uuids_sort_as_in_cql(history: &History) {
    // By version; those of version 1 by time, whose low part stands first; others by their bytes.
    let ordered = [
        "ffffffff-ffff-0fff-0000-000000000000",
        "ffffffff-0001-1000-8000-000000000001",
        "00000000-0002-1000-8000-000000000000",
        "00000000-0000-1001-8000-000000000000",
        "00000000-0000-1001-ff00-000000000000",
        "00000000-ffff-4000-8000-000000000000",
        "80000000-0000-4000-8000-000000000000",
        "00000000-0000-7000-8000-000000000000",
    ];
    let rows: Vec<_> = ordered.iter().map(|text| sample("uuids", text.parse().unwrap())).collect();
    history.upsert_many(rows.iter().rev().cloned()).await.unwrap();
    let range = || history.range(Sample::partition("uuids"));
    assert_eq!(all(range(), 3).await, rows);
    assert_eq!(all(range().between(rows[2].id..rows[5].id), 2).await, rows[2..5]);
    assert_eq!(all(range().reversed(), 3).await, rows.into_iter().rev().collect::<Vec<_>>());
}

pub(super) async fn expired_rows_are_not_written(history: &History) {
    let (old, last) = (event(200, 30 * DAY_MS, 1), event(200, 30 * DAY_MS - 60_000, 2));
    let written = history.insert_many([old.clone(), last.clone()]).await.unwrap();
    assert_eq!((written.rows, written.expired), (1, 1));
    assert_eq!(history.get(old.row_key()).await.unwrap(), None);
    assert_eq!(history.get(last.row_key()).await.unwrap(), Some(last));
}
