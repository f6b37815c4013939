//! What every store does with each kind of write: events are in `cases`; here are rows, versions and claims.

use super::cases::all;
use super::{AllTimeBoard, DailyScore, NOW, Name, PlayerSession, Profile, Sample, ZoneMetrics};
use crate::{Applied, History};
use emberkeep_schema::{Table, Timestamp};
use std::collections::BTreeSet;
use std::future::Future;
use uuid::Uuid;

const HOUR_MS: i64 = 3_600_000;

pub(super) fn profile(player_id: i64, username: &str) -> Profile {
    Profile {
        player_id,
        username: username.into(),
        email: format!("{username}@example.org"),
        level: -7,
        settings: Some(vec![0, 255, 0]),
        ban_expires: Some(Timestamp(NOW + 90 * 24 * HOUR_MS)),
        client_versions: BTreeSet::from(["1.0".into(), "2.0".into()]),
        last_known_ip: "2001:db8::1".parse().ok(),
    }
}

pub(super) fn sample(name: &str, id: Uuid) -> Sample {
    Sample {
        name: name.into(),
        id,
        small: i16::MIN,
        tiny: i8::MAX,
        int: i32::MIN,
        big: i64::MAX,
        float: -0.1,
        double: f64::MIN_POSITIVE,
        truth: true,
        bytes: vec![0, 255, 0],
        address: "10.0.0.1".parse().unwrap(),
        texts: BTreeSet::from([String::new(), "é".into()]),
        tuples: vec![(1, "a\0b".into(), 0.5), (i64::MIN, String::new(), -1e300)],
        note: None,
    }
}

fn session(player_id: i64, hours_ago: i64) -> PlayerSession {
    PlayerSession {
        player_id,
        session_start: Timestamp(NOW - hours_ago * HOUR_MS),
        session_end: None,
        kills: 2,
    }
}

pub(super) async fn replaced_rows(history: &History) {
    let first = session(400, 1);
    history.upsert(first.clone()).await.unwrap();
    let last = PlayerSession { session_end: Some(Timestamp(NOW)), kills: 20, ..first };
    history.upsert(last.clone()).await.unwrap();
    assert_eq!(all(history.range(PlayerSession::partition(400)), 9).await, [last]);
}

pub(super) async fn deleted_rows(history: &History) {
    let rows: Vec<_> = (0..3).map(|n| session(410, n)).collect();
    history.upsert_many(rows.clone()).await.unwrap();
    history.delete(rows[1].row_key()).await.unwrap();
    history.delete(session(411, 1).row_key()).await.unwrap();
    assert_eq!(history.get(rows[1].row_key()).await.unwrap(), None);
    let left = all(history.range(PlayerSession::partition(410)), 9).await;
    assert_eq!(left, [rows[0].clone(), rows[2].clone()]);
    history.upsert(rows[1].clone()).await.unwrap();
    assert_eq!(all(history.range(PlayerSession::partition(410)), 9).await, rows);
    history.upsert(profile(412, "deleted")).await.unwrap();
    history.delete(Profile::key(412)).await.unwrap();
    assert_eq!(all(history.range(Profile::by_username("deleted")), 9).await, []);
}

pub(super) async fn optional_columns(history: &History) {
    let full = profile(190, "full");
    let bare = Profile {
        ban_expires: None,
        last_known_ip: None,
        settings: None,
        client_versions: BTreeSet::new(),
        ..full.clone()
    };
    history.upsert(full).await.unwrap();
    history.upsert(bare.clone()).await.unwrap();
    let found = history.get(Profile::key(190)).await.unwrap();
    assert_eq!(found, Some(bare), "an absent value removes the old one");
}

fn score(category: &str, player_id: i64, score: i64) -> DailyScore {
    let (day, player_name) = (Timestamp(NOW).day(), format!("player {player_id}"));
    DailyScore { category: category.into(), day, player_id, player_name, score }
}

async fn scores(history: &History, category: &str) -> Vec<DailyScore> {
    all(history.range(DailyScore::partition(category, Timestamp(NOW).day())), 2).await
}

pub(super) async fn versions_in_any_order(history: &History) {
    let board = |category: &str, best: i64| AllTimeBoard {
        category: category.into(),
        entries: vec![(1, "ann".into(), best)],
    };
    for (number, order) in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [3, 3, 3]].into_iter().enumerate() {
        let category = format!("versions-{number}");
        for version in order {
            history.upsert_at(board(&category, version * 10), version).await.unwrap();
        }
        let found = history.get(AllTimeBoard::key(category.clone())).await.unwrap();
        assert_eq!(found, Some(board(&category, 30)), "{order:?}");
    }
}

pub(super) async fn removals_by_version(history: &History) {
    let row = score("removals", 1, 5);
    history.upsert_at(row.clone(), 10).await.unwrap();
    history.delete_at(row.row_key(), 9).await.unwrap();
    assert_eq!(scores(history, "removals").await, std::slice::from_ref(&row), "an older removal");
    history.delete_at(row.row_key(), 11).await.unwrap();
    assert_eq!(scores(history, "removals").await, []);
    for version in [10, 11] {
        history.upsert_at(row.clone(), version).await.unwrap();
        assert_eq!(scores(history, "removals").await, [], "not above the removal: {version}");
    }
    history.upsert_at(row.clone(), 12).await.unwrap();
    assert_eq!(history.get(row.row_key()).await.unwrap(), Some(row));
    // A removal that arrives before the row that it removes.
    let late = score("removals", 2, 5);
    history.delete_at(late.row_key(), 20).await.unwrap();
    history.upsert_at(late.clone(), 19).await.unwrap();
    assert_eq!(history.get(late.row_key()).await.unwrap(), None);
}

pub(super) async fn rows_replaced_together(history: &History) {
    let (old, new) = (score("together", 1, 5), score("together", 1, 8));
    let other = score("together", 2, 7);
    history.replace_at([], [old.clone(), other.clone()], 1).await.unwrap();
    history.replace_at([old.row_key()], [new.clone()], 2).await.unwrap();
    assert_eq!(scores(history, "together").await, [new.clone(), other.clone()], "in the order of scores");
    // The same key removed and written is written, also when it is delivered again.
    let renamed = DailyScore { player_name: "bob".into(), ..new };
    for _ in 0..2 {
        history.replace_at([renamed.row_key()], [renamed.clone()], 3).await.unwrap();
        assert_eq!(scores(history, "together").await, [renamed.clone(), other.clone()]);
    }
    history.replace_at([old.row_key()], [old.clone()], 1).await.unwrap();
    assert_eq!(scores(history, "together").await, [renamed, other], "an older replacement changes nothing");
}

pub(super) async fn versions_in_windows(history: &History) {
    let row = |hours_ago: i64, players| ZoneMetrics {
        zone_id: 420,
        hour_bucket: Timestamp(NOW - hours_ago * HOUR_MS),
        avg_player_count: players,
        avg_tick_time_ms: 12.5,
        p99_tick_time_ms: (players > 1).then_some(40.25),
        total_packets_sent: 7,
        server_instance: "zone-7".into(),
    };
    // Versions are times in microseconds: that of the hour, and the samples that were merged.
    let version = |hours_ago: i64, samples: i64| (NOW - hours_ago * HOUR_MS) * 1_000 + samples;
    for (hours_ago, samples) in [(0, 3), (0, 1), (30, 1), (30, 2), (0, 2)] {
        history.upsert_at(row(hours_ago, samples as i32), version(hours_ago, samples)).await.unwrap();
    }
    let found = all(history.range(ZoneMetrics::partition(420)), 1).await;
    assert_eq!(found, [row(0, 3), row(30, 2)]);
    let ended = history.upsert_at(row(7 * 24, 1), version(7 * 24, 1)).await.unwrap();
    assert_eq!((ended.rows, ended.expired), (0, 1));
}

fn name(name: &str, player_id: i64) -> Name {
    Name { name: name.into(), player_id, token: None }
}

pub(super) async fn claims(history: &History) {
    assert_eq!(history.insert_if_absent(name("claims", 1)).await.unwrap(), Applied::Yes);
    let second = history.insert_if_absent(name("claims", 2)).await.unwrap();
    assert_eq!(second, Applied::No(Some(name("claims", 1))));
    assert_eq!(history.delete_if(name("claims", 1)).await.unwrap(), Applied::Yes);
    assert_eq!(history.get(Name::key("claims".into())).await.unwrap(), None);
    assert_eq!(history.insert_if_absent(name("claims", 3)).await.unwrap(), Applied::Yes);
}

pub(super) async fn claims_that_are_replaced(history: &History) {
    let pending = Name { token: Some(Uuid::from_u128(5)), ..name("replaced", 1) };
    let confirmed = name("replaced", 1);
    let absent = history.replace_if(pending.clone(), confirmed.clone()).await.unwrap();
    assert_eq!(absent, Applied::No(None));
    history.insert_if_absent(pending.clone()).await.unwrap();
    let other = Name { token: Some(Uuid::from_u128(6)), ..pending.clone() };
    for wrong in [other, confirmed.clone()] {
        let refused = history.replace_if(wrong, confirmed.clone()).await.unwrap();
        assert_eq!(refused, Applied::No(Some(pending.clone())));
    }
    assert_eq!(history.replace_if(pending.clone(), confirmed.clone()).await.unwrap(), Applied::Yes);
    assert_eq!(history.get(confirmed.row_key()).await.unwrap(), Some(confirmed.clone()));
    // Once more, from an absent value.
    assert_eq!(history.replace_if(confirmed, pending.clone()).await.unwrap(), Applied::Yes);
    assert_eq!(history.get(pending.row_key()).await.unwrap(), Some(pending));
}

pub(super) async fn claims_that_are_removed(history: &History) {
    assert_eq!(history.delete_if(name("removed", 1)).await.unwrap(), Applied::No(None));
    history.insert_if_absent(name("removed", 1)).await.unwrap();
    let refused = history.delete_if(name("removed", 2)).await.unwrap();
    assert_eq!(refused, Applied::No(Some(name("removed", 1))));
    assert_eq!(history.delete_if(name("removed", 1)).await.unwrap(), Applied::Yes);
    assert_eq!(history.delete_if(name("removed", 1)).await.unwrap(), Applied::No(None));
}

pub(super) async fn indexes_of_claims(history: &History) {
    let (one, two) = (name("indexed", 9_001), name("indexed", 9_002));
    let of = |player| history.range(Name::by_player(player));
    history.insert_if_absent(one.clone()).await.unwrap();
    assert_eq!(all(of(9_001), 5).await, std::slice::from_ref(&one));
    history.replace_if(one, two.clone()).await.unwrap();
    assert_eq!(all(of(9_001), 5).await, [], "the index follows the row");
    assert_eq!(all(of(9_002), 5).await, std::slice::from_ref(&two));
    history.delete_if(two).await.unwrap();
    assert_eq!(all(of(9_002), 5).await, []);
}

async fn winners<F>(tries: impl Iterator<Item = F>) -> usize
where
    F: Future<Output = crate::Result<Applied<Name>>> + Send + 'static,
{
    let tries: Vec<_> = tries.map(tokio::spawn).collect();
    let mut winners = 0;
    for one in tries {
        winners += usize::from(one.await.unwrap().unwrap() == Applied::Yes);
    }
    winners
}

pub(super) async fn one_winner(history: &History) {
    let tries = (0..16).map(|player_id| {
        let history = history.clone();
        async move { history.insert_if_absent(name("one", player_id)).await }
    });
    assert_eq!(winners(tries).await, 1);
}

pub(super) async fn one_winner_of_a_replacement(history: &History) {
    history.insert_if_absent(name("heir", 0)).await.unwrap();
    let tries = (1..=16).map(|player_id| {
        let history = history.clone();
        async move { history.replace_if(name("heir", 0), name("heir", player_id)).await }
    });
    assert_eq!(winners(tries).await, 1);
}
