//! What every store does with totals: each entry counts once.

use super::{NOW, PlayerStats, Visits, kills};
use crate::{Fold, FoldEntry, History, Source, TotalsEntry};
use emberkeep_schema::{Timestamp, Totals as _, Value};

async fn kills_of(history: &History, player: i64) -> i64 {
    history.totals::<PlayerStats>(player).await.unwrap().map_or(0, |totals| totals.sums.total_kills)
}

pub(super) async fn totals_add_up(history: &History) {
    let source = Source::of_log("shard-1", "log:combat", "a");
    let amounts = PlayerStats { total_kills: 1, total_playtime_minutes: 90_000, ..PlayerStats::default() };
    let played = |position| TotalsEntry { amounts: amounts.clone(), ..kills(position, 210, 0) };
    history.fold(&source, [played(1), kills(1, 211, 5), played(2)]).await.unwrap();
    let other = Source::of_log("shard-2", "log:combat", "a");
    history.fold(&other, [kills(1, 210, 40)]).await.unwrap();
    let totals = history.totals::<PlayerStats>(210).await.unwrap().unwrap();
    assert_eq!((totals.sums.total_kills, totals.sums.total_playtime_minutes), (42, 3));
    assert_eq!(totals.recorded.total_playtime_minutes, 180_000);
    assert_eq!(kills_of(history, 211).await, 5);
    assert_eq!(history.totals::<PlayerStats>(212).await.unwrap(), None);
}

pub(super) async fn totals_are_exact_under_replay(history: &History) {
    let source = Source::of_log("shard-1", "log:replay", "a");
    let entries = |range: std::ops::RangeInclusive<u64>| range.map(|position| kills(position, 220, 1));
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
                        (first..first + 10).map(|position| kills(position, 230 + (position % 3) as i64, 1));
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
    let source = |name| Source::of_log("shard-1", "log:closed", name);
    for name in ["a", "b"] {
        history.fold(&source(name), [kills(1, 240, 1), kills(2, 241, 1), kills(3, 240, 1)]).await.unwrap();
        // Closing again changes nothing.
        for _ in 0..2 {
            history.close_source::<PlayerStats>(&source(name)).await.unwrap();
        }
        for position in [3, 4] {
            let error = history.fold(&source(name), [kills(position, 240, 1)]).await.unwrap_err();
            assert_eq!(error.code(), "source_closed");
        }
    }
    history.fold(&source("c"), [kills(1, 240, 1)]).await.unwrap();
    assert_eq!((kills_of(history, 240).await, kills_of(history, 241).await), (5, 2));
    // A source may be closed before its first entry.
    history.close_source::<PlayerStats>(&source("d")).await.unwrap();
    assert_eq!(history.fold(&source("d"), [kills(1, 240, 1)]).await.unwrap_err().code(), "source_closed");
}

pub(super) async fn last_updated_is_that_of_the_entries(history: &History) {
    let entry = |position, ago| TotalsEntry { at: Timestamp(NOW - ago), ..kills(position, 250, 1) };
    let source = Source::of_log("shard-1", "log:times", "a");
    history.fold(&source, [entry(1, 500), entry(2, 100), entry(3, 300)]).await.unwrap();
    let other = Source::of_log("shard-2", "log:times", "a");
    history.fold(&other, [entry(1, 200)]).await.unwrap();
    // A replay gives the same row, whenever it comes.
    history.fold(&source, [entry(1, 500), entry(2, 0)]).await.unwrap();
    let totals = history.totals::<PlayerStats>(250).await.unwrap().unwrap();
    assert_eq!((totals.sums.total_kills, totals.last_updated), (4, Timestamp(NOW - 100)));
}

/// What one of several totals refuses is added to none of them.
pub(super) async fn several_totals_together(history: &History) {
    let source = Source::of_log("shard-1", "log:together", "a");
    let fold = |totals, position, amounts| {
        let entry = FoldEntry { position, key: Value::BigInt(260), amounts, at_ms: NOW };
        Fold { totals, source: source.clone(), entries: vec![entry] }
    };
    let both = |position, visits| {
        let kill = PlayerStats { total_kills: 1, ..PlayerStats::default() };
        let kill = fold(PlayerStats::DECLARATION, position, kill.amounts());
        history.store().fold(vec![kill, fold(Visits::DECLARATION, position, vec![visits])])
    };
    assert_eq!(both(1, i64::MAX).await.unwrap().added, 2);
    for _ in 0..2 {
        assert_eq!(both(2, 1).await.unwrap_err().code(), "overflow");
        assert_eq!(kills_of(history, 260).await, 1);
    }
    assert_eq!(both(3, 0).await.unwrap().added, 2);
    history.close_source::<Visits>(&source).await.unwrap();
    assert_eq!(both(4, 0).await.unwrap_err().code(), "source_closed");
    assert_eq!(kills_of(history, 260).await, 2);
    let visits = history.totals::<Visits>(260).await.unwrap().unwrap();
    assert_eq!(visits.sums.visits, i64::MAX);
}
