//! The suite of history on a real Cassandra, in both layouts.

mod cassandra;

use cassandra::{keyspace, open};
use emberkeep_history::testing::{CASES, run_all};
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
