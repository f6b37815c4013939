//! An archive on each store, with a clock that the test moves.

use emberkeep_games::darkages::archive::{Archive, PageRequest};
use emberkeep_games::darkages::history::schema;
use emberkeep_history::embedded::Options;
use emberkeep_history::{Clock, Cursor, Embedded, History, ManualClock, Page};
use emberkeep_history_cql::schema::{LiveKeyspace, Replication};
use emberkeep_history_cql::{CqlOptions, CqlStore, SchemaMode};
use emberkeep_testkit::{CassandraCluster, Scratch, scratch};
use std::future::Future;
use std::sync::Arc;

/// Noon of 2024-01-10.
pub(crate) const NOW: i64 = 1_704_888_000_000;
pub(crate) const MINUTE_MS: i64 = 60_000;
pub(crate) const DAY_MS: i64 = 86_400_000;

pub(crate) struct World {
    pub(crate) archive: Archive,
    pub(crate) clock: ManualClock,
    _folder: Option<Scratch>,
}

impl World {
    pub(crate) fn embedded() -> World {
        let (folder, clock) = (scratch(), ManualClock::at(NOW));
        let options =
            Options { clock: Clock::Manual(clock.clone()), free_bytes_min: 0, ..Options::default() };
        let store = Embedded::open(folder.path(), schema(), options).unwrap();
        World { archive: Archive::new(History::new(Arc::new(store))), clock, _folder: Some(folder) }
    }

    pub(crate) async fn cassandra(cassandra: &CassandraCluster, keyspace: &str, layout: &str) -> World {
        let clock = ManualClock::at(NOW);
        let url = cassandra.url(keyspace);
        LiveKeyspace::connect(&url).await.unwrap().create(&Replication::Simple(1)).await.unwrap();
        let options = CqlOptions {
            schema: SchemaMode::Apply,
            clock: Clock::Manual(clock.clone()),
            ..CqlOptions::default()
        };
        let store = CqlStore::connect(&format!("{url}?layout={layout}"), schema(), options).await.unwrap();
        World { archive: Archive::new(History::new(Arc::new(store))), clock, _folder: None }
    }
}

/// The rows of all pages, read by pages of so many rows.
pub(crate) async fn all<T, F>(
    rows_max: usize,
    request: PageRequest,
    read: impl Fn(PageRequest) -> F,
) -> Vec<T>
where
    F: Future<Output = emberkeep_games::darkages::archive::Result<Page<T>>>,
{
    let (mut found, mut after) = (Vec::new(), None::<Cursor>);
    loop {
        let page = read(PageRequest { rows_max, after: after.take(), ..request.clone() }).await.unwrap();
        assert!(page.rows.len() <= rows_max && page.unreadable.is_empty());
        found.extend(page.rows);
        // A cursor is passed on as text.
        after = page.next.map(|next| next.to_string().parse().unwrap());
        if after.is_none() {
            return found;
        }
    }
}
