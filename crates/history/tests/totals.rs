//! Totals of the embedded store: what was added is there after a crash, rows of closed sources are merged, and the
//! rows in memory are bounded.

mod folders;

use emberkeep_history::testing::{NOW, PlayerStats, kills, schema};
use emberkeep_history::{Embedded, Error, History, HistorySchema, Source, TotalsEntry};
use emberkeep_schema::{Timestamp, totals};
use folders::{Folder, options};
use std::sync::Arc;

fn open(folder: &Folder) -> (Arc<Embedded>, History) {
    let store = Arc::new(Embedded::open(folder.path(), schema(), options()).unwrap());
    (store.clone(), History::new(store))
}

fn source(name: &str) -> Source {
    Source::of_log("s", "l", name)
}

async fn kills_of(history: &History, player: i64) -> i64 {
    history.totals::<PlayerStats>(player).await.unwrap().map_or(0, |totals| totals.sums.total_kills)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_added_is_there_after_it_is_opened_again() {
    let folder = Folder::new();
    for round in 0..6 {
        let (_, history) = open(&folder);
        let first = round * 10 + 1;
        // The last entries of the round before are delivered again.
        let from = (first as u64).saturating_sub(5).max(1);
        let entries = (from..first as u64 + 10).map(|position| kills(position, position as i64 % 3, 1));
        let folded = history.fold(&source("a"), entries.collect::<Vec<_>>()).await.unwrap();
        assert_eq!(folded.added, 10, "round {round}");
        let mut sum = 0;
        for player in 0..3 {
            sum += kills_of(&history, player).await;
        }
        assert_eq!(sum, first + 9, "round {round}");
        // With and without a proper stop.
        if round % 2 == 0 {
            history.close().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_closed_sources_are_merged_and_stay_closed() {
    let folder = Folder::new();
    for round in 0..3 {
        let (store, history) = open(&folder);
        let names = [format!("{round}-a"), format!("{round}-b"), "open".to_owned()];
        for name in &names {
            let position = if name == "open" { round as u64 + 1 } else { 1 };
            history.fold(&source(name), [kills(position, 7, 1), kills(position, 8, 10)]).await.unwrap();
        }
        for name in &names[..2] {
            history.close_source::<PlayerStats>(&source(name)).await.unwrap();
        }
        let expected = (round + 1) * 3;
        assert_eq!((kills_of(&history, 7).await, kills_of(&history, 8).await), (expected, expected * 10));
        for _ in 0..2 {
            store.retain().await.unwrap();
            assert_eq!((kills_of(&history, 7).await, kills_of(&history, 8).await), (expected, expected * 10));
        }
        for name in &names[..2] {
            let error = history.fold(&source(name), [kills(9, 7, 1)]).await.unwrap_err();
            assert!(matches!(error, Error::SourceClosed { .. }), "{error}");
        }
        let replayed = history.fold(&source("open"), [kills(round as u64 + 1, 7, 1)]).await.unwrap();
        assert_eq!(replayed.repeated, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_fails_changes_nothing() {
    let folder = Folder::new();
    let (_, history) = open(&folder);
    history.fold(&source("a"), [kills(1, 1, 5), kills(1, 2, i64::MAX)]).await.unwrap();
    let refused = [kills(2, 1, 1), kills(3, 3, 1), kills(4, 2, 1)];
    let error = history.fold(&source("a"), refused).await.unwrap_err();
    assert_eq!(error.code(), "overflow");
    assert_eq!((kills_of(&history, 1).await, kills_of(&history, 3).await), (5, 0));
    // The positions were not reached.
    let folded = history.fold(&source("a"), [kills(2, 1, 1), kills(3, 3, 1)]).await.unwrap();
    assert_eq!(folded.added, 2);
    drop(history);
    let (_, history) = open(&folder);
    assert_eq!((kills_of(&history, 1).await, kills_of(&history, 3).await), (6, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_keys_than_fit_in_memory_are_exact() {
    let folder = Folder::new();
    let (_, history) = open(&folder);
    let (keys, per_call) = (260_000_i64, 65_000);
    for round in 0..2 {
        for first in (0..keys).step_by(per_call) {
            let entry = |key: i64| kills((round * keys + key + 1) as u64, key, 1);
            let entries = (first..first + per_call as i64).map(entry);
            history.fold(&source("a"), entries.collect::<Vec<_>>()).await.unwrap();
        }
    }
    drop(history);
    let (_, history) = open(&folder);
    for key in [0, 1, 64_999, 65_000, 249_999, 250_000, 259_999] {
        assert_eq!(kills_of(&history, key).await, 2, "{key}");
    }
}

mod older {
    //! The totals with another list of sums.
    use emberkeep_schema::totals;

    totals! {
        /// What a player did.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Score = "scores" by "scores_by_source" {
            key: player_id: i64,
            sums: {
                /// Kills.
                kills,
                /// Deaths.
                deaths,
            },
            owner: "test",
        }
    }
}

totals! {
    /// What a player did: one sum is new, one is gone, and the order is another.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Score = "scores" by "scores_by_source" {
        key: player_id: i64,
        sums: {
            /// Assists.
            assists,
            /// Kills.
            kills,
        },
        owner: "test",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_another_declaration_are_kept() {
    let folder = Folder::new();
    let open = |schema| History::new(Arc::new(Embedded::open(folder.path(), schema, options()).unwrap()));
    let open_old = || open(HistorySchema::new().totals::<older::Score>());
    let open_new = || open(HistorySchema::new().totals::<Score>());
    let at = Timestamp(NOW);
    let old = older::Score { kills: 3, deaths: 5 };
    let entry = TotalsEntry { position: 1, key: 1, at, amounts: old.clone() };
    // Only the log has it when the folder is opened with the other declaration.
    open_old().fold(&source("a"), [entry]).await.unwrap();
    let history = open_new();
    assert_eq!(history.totals::<Score>(1).await.unwrap().unwrap().sums, Score { assists: 0, kills: 3 });
    let amounts = Score { assists: 2, kills: 1 };
    history.fold(&source("a"), [TotalsEntry { position: 2, key: 1, at, amounts }]).await.unwrap();
    history.close().await.unwrap();
    drop(history);
    let found = open_old().totals::<older::Score>(1).await.unwrap().unwrap();
    assert_eq!(found.sums, older::Score { kills: 4, deaths: 5 });
}
