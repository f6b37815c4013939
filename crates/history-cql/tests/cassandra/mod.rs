//! Keyspaces and stores of the tests.

#![allow(dead_code)]

use emberkeep_history::testing::{NOW, schema};
use emberkeep_history::{Clock, History, ManualClock};
use emberkeep_history_cql::schema::{LiveKeyspace, Replication};
use emberkeep_history_cql::{CqlOptions, CqlStore, SchemaMode};
use emberkeep_testkit::CassandraCluster;
use std::sync::Arc;

/// A new keyspace of one replica; its URL.
pub(crate) async fn keyspace(cassandra: &CassandraCluster, name: &str) -> String {
    let url = cassandra.url(name);
    LiveKeyspace::connect(&url).await.unwrap().create(&Replication::Simple(1)).await.unwrap();
    url
}

/// Options of the suite: its clock, and tables that are created.
pub(crate) fn options() -> CqlOptions {
    let clock = Clock::Manual(ManualClock::at(NOW));
    CqlOptions { schema: SchemaMode::Apply, clock, ..CqlOptions::default() }
}

/// History with the tables of the suite.
pub(crate) async fn open(url: &str) -> History {
    History::new(Arc::new(CqlStore::connect(url, schema(), options()).await.unwrap()))
}

/// A plain session, as another program has it.
pub(crate) async fn session(cassandra: &CassandraCluster) -> scylla::client::session::Session {
    let builder = scylla::client::session_builder::SessionBuilder::new();
    builder.known_nodes(cassandra.addresses()).user("cassandra", "cassandra").build().await.unwrap()
}
