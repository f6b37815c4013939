//! The suite of history on a real Cassandra, in both layouts.

mod cassandra;

use cassandra::{keyspace, open};
use emberkeep_history::testing::{CASES, PlayerStats, kills, run_all};
use emberkeep_history::{Error, Source};
use emberkeep_testkit::shared_cassandra;

#[tokio::test(flavor = "multi_thread")]
async fn cassandra_passes_the_suite_in_the_layout_of_the_document() {
    let Some(cassandra) = shared_cassandra() else { return };
    let url = keyspace(cassandra, "document").await;
    run_all(&open(&url).await).await;
    eprintln!("{} cases on Cassandra, layout document", CASES.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn cassandra_passes_the_suite_in_the_scaled_layout() {
    let Some(cassandra) = shared_cassandra() else { return };
    let url = keyspace(cassandra, "scaled").await + "?layout=scaled";
    run_all(&open(&url).await).await;
    eprintln!("{} cases on Cassandra, layout scaled", CASES.len());
}

/// Sources that have ended stay in the sums, and no entry is lost or counted again.
#[tokio::test(flavor = "multi_thread")]
async fn closed_sources_stay_in_the_sums() {
    let Some(cassandra) = shared_cassandra() else { return };
    let history = open(&keyspace(cassandra, "closed").await).await;
    let source = |number: u64| Source::of_log("shard", "log", &number.to_string());
    for number in 0..12 {
        history.fold(&source(number), [kills(1, 7, 1), kills(2 + number, 7, 10)]).await.unwrap();
        if number < 11 {
            history.close_source::<PlayerStats>(&source(number)).await.unwrap();
        }
    }
    let (eleven, twelve) = (source(11), source(12));
    let first = history.fold(&eleven, [kills(14, 7, 100)]);
    let (one, two) = tokio::join!(first, history.fold(&twelve, [kills(1, 7, 1_000)]));
    assert_eq!((one.unwrap().added, two.unwrap().added), (1, 1));
    history.fold(&source(12), [kills(1, 7, 1_000), kills(2, 7, 1_000)]).await.unwrap();
    let totals = history.totals::<PlayerStats>(7).await.unwrap().unwrap();
    assert_eq!(totals.sums.total_kills, 12 * 11 + 100 + 2_000);
    for number in 0..11 {
        let error = history.fold(&source(number), [kills(50, 7, 1)]).await.unwrap_err();
        assert!(matches!(error, Error::SourceClosed { .. }), "{error}");
    }
    let session = cassandra::session(cassandra).await;
    let count = async |statement: &str| {
        let result = session.query_unpaged(statement, ()).await.unwrap().into_rows_result().unwrap();
        result.first_row::<(i64,)>().unwrap().0
    };
    let shown = count("SELECT total_kills FROM closed.player_stats WHERE player_id = 7").await;
    assert_eq!(shown, totals.sums.total_kills, "the projection");
}
