//! What every store does with sound input.

use super::{CombatEvent, NOW, Name, PlayerStats, Profile, event};
use crate::{History, Inserted, Query, Source};
use emberkeep_schema::{Day, Table, Timestamp};
use std::collections::BTreeSet;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

fn today() -> Day {
    Timestamp(NOW).day()
}

fn profile(player_id: i64, username: &str) -> Profile {
    Profile {
        player_id,
        username: username.into(),
        level: -7,
        preferred_class: i8::MIN,
        rating: 0.1,
        settings: vec![0, 255, 0],
        is_banned: true,
        ban_expires: Some(Timestamp(NOW + 90 * DAY_MS)),
        client_versions: BTreeSet::from(["1.0".into(), "2.0".into()]),
        last_known_ip: "2001:db8::1".parse().ok(),
        best: vec![(1, "a\0b".into(), i64::MAX), (2, String::new(), i64::MIN)],
    }
}

/// All rows of a query, by pages of a few rows.
async fn all<T: Table>(query: Query<T>, rows_max: usize) -> Vec<T> {
    let query = query.rows_max(rows_max);
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..1_000 {
        let page = query.page(after.as_ref()).await.unwrap();
        assert!(page.rows.len() <= rows_max);
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
    history
        .upsert_many([profile(160, "newer"), profile(160, "newest"), profile(161, "newest")])
        .await
        .unwrap();
    assert_eq!(all(history.range(Profile::by_username("old")), 9).await, []);
    assert_eq!(all(history.range(Profile::by_username("newer")), 9).await, []);
    let newest = all(history.range(Profile::by_username("newest")), 1).await;
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

pub(super) async fn deleted_rows(history: &History) {
    let rows: Vec<_> = (0..3).map(|n| event(180, n, n as u128)).collect();
    history.insert_many(rows.clone()).await.unwrap();
    history.delete(rows[1].row_key()).await.unwrap();
    history.delete(CombatEvent::key(Timestamp(NOW), uuid::Uuid::from_u128(180_180))).await.unwrap();
    assert_eq!(history.get(rows[1].row_key()).await.unwrap(), None);
    let left = all(history.range(CombatEvent::by_zone(180, today())), 9).await;
    assert_eq!(left, [rows[0].clone(), rows[2].clone()]);
    history.insert(rows[1].clone()).await.unwrap();
    assert_eq!(all(history.range(CombatEvent::by_zone(180, today())), 9).await, rows);
}

pub(super) async fn optional_columns(history: &History) {
    let full = profile(190, "full");
    let bare =
        Profile { ban_expires: None, last_known_ip: None, client_versions: BTreeSet::new(), ..full.clone() };
    history.upsert(full).await.unwrap();
    history.upsert(bare.clone()).await.unwrap();
    assert_eq!(
        history.get(Profile::key(190)).await.unwrap(),
        Some(bare),
        "an absent value replaces an old one"
    );
}

pub(super) async fn conditional_inserts(history: &History) {
    let name = |player_id| Name { name: "conditional".into(), player_id };
    assert_eq!(history.insert_if_absent(name(1)).await.unwrap(), Inserted::Yes);
    assert_eq!(history.insert_if_absent(name(2)).await.unwrap(), Inserted::No(name(1)));
    history.delete(Name::key("conditional".into())).await.unwrap();
    assert_eq!(history.insert_if_absent(name(3)).await.unwrap(), Inserted::Yes);
}

pub(super) async fn one_winner(history: &History) {
    let tries: Vec<_> = (0..16)
        .map(|player_id| {
            let history = history.clone();
            tokio::spawn(
                async move { history.insert_if_absent(Name { name: "one".into(), player_id }).await },
            )
        })
        .collect();
    let mut winners = 0;
    for one in tries {
        winners += usize::from(one.await.unwrap().unwrap() == Inserted::Yes);
    }
    assert_eq!(winners, 1);
}

pub(super) async fn expired_rows_are_not_written(history: &History) {
    let (old, last) = (event(200, 30 * DAY_MS, 1), event(200, 30 * DAY_MS - 60_000, 2));
    let written = history.insert_many([old.clone(), last.clone()]).await.unwrap();
    assert_eq!((written.rows, written.expired), (1, 1));
    assert_eq!(history.get(old.row_key()).await.unwrap(), None);
    assert_eq!(history.get(last.row_key()).await.unwrap(), Some(last));
}

fn kills(total_kills: i64) -> PlayerStats {
    PlayerStats { total_kills, ..PlayerStats::default() }
}

async fn kills_of(history: &History, player: i64) -> i64 {
    history.totals::<PlayerStats>(player).await.unwrap().map_or(0, |totals| totals.sums.total_kills)
}

pub(super) async fn totals_add_up(history: &History) {
    let source = Source::of_log("shard-1", "log:combat", "a");
    let played = PlayerStats { total_playtime_minutes: 90_000, ..kills(1) };
    history.fold(&source, [(1, 210, played.clone()), (1, 211, kills(5)), (2, 210, played)]).await.unwrap();
    let other = Source::of_log("shard-2", "log:combat", "a");
    history.fold(&other, [(1, 210, kills(40))]).await.unwrap();
    let totals = history.totals::<PlayerStats>(210).await.unwrap().unwrap();
    assert_eq!((totals.sums.total_kills, totals.sums.total_playtime_minutes), (42, 3));
    assert_eq!(totals.recorded.total_playtime_minutes, 180_000);
    assert_eq!(kills_of(history, 211).await, 5);
    assert_eq!(history.totals::<PlayerStats>(212).await.unwrap(), None);
}

pub(super) async fn totals_are_exact_under_replay(history: &History) {
    let source = Source::of_log("shard-1", "log:replay", "a");
    let entries = |range: std::ops::RangeInclusive<u64>| range.map(|position| (position, 220, kills(1)));
    assert_eq!(history.fold(&source, entries(1..=10)).await.unwrap().added, 10);
    let again = history.fold(&source, entries(5..=15)).await.unwrap();
    assert_eq!((again.added, again.repeated), (5, 6));
    history.fold(&source, entries(1..=15)).await.unwrap();
    assert_eq!(kills_of(history, 220).await, 15);
    // A log that was set back has a new incarnation: its entries are other ones.
    let reset = Source::of_log("shard-1", "log:replay", "b");
    history.fold(&reset, entries(1..=3)).await.unwrap();
    assert_eq!(kills_of(history, 220).await, 18);
}

pub(super) async fn two_deliverers_at_once(history: &History) {
    let source = Source::of_log("shard-1", "log:two", "a");
    let deliverers: Vec<_> = (0..4_u64)
        .map(|_| {
            let (history, source) = (history.clone(), source.clone());
            tokio::spawn(async move {
                for first in (1..=100_u64).step_by(10) {
                    let entries =
                        (first..first + 10).map(|position| (position, 230 + (position % 3) as i64, kills(1)));
                    history.fold(&source, entries.collect::<Vec<_>>()).await.unwrap();
                }
            })
        })
        .collect();
    for deliverer in deliverers {
        deliverer.await.unwrap();
    }
    let sum = kills_of(history, 230).await + kills_of(history, 231).await + kills_of(history, 232).await;
    assert_eq!(sum, 100);
}

pub(super) async fn closed_sources(history: &History) {
    let source = Source::of_log("shard-1", "log:closed", "a");
    history.fold(&source, [(1, 240, kills(1))]).await.unwrap();
    history.close_source::<PlayerStats>(&source).await.unwrap();
    let error = history.fold(&source, [(2, 240, kills(1))]).await.unwrap_err();
    assert_eq!(error.code(), "source_closed");
    assert_eq!(kills_of(history, 240).await, 1);
}
