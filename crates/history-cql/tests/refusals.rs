//! What is wrong with a URL, a server or a keyspace is a typed error that names it.

mod cassandra;

use cassandra::{keyspace, open, options};
use emberkeep_history::testing::{CombatEvent, NOW, event, schema};
use emberkeep_history::{History, HistorySchema, Source};
use emberkeep_history_cql::schema::{Difference, LiveKeyspace};
use emberkeep_history_cql::{ConnectError, CqlOptions, CqlStore};
use emberkeep_schema::{Table, Timestamp, table};
use emberkeep_testkit::{free_port, shared_cassandra};
use std::sync::Arc;
use std::time::{Duration, Instant};

table! {
    /// Another declaration of a table of the suite.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OtherType = "names" {
        /// The name.
        pub name: String,
        /// Text instead of a number.
        pub player_id: String,
    }
    partition: (name),
    clustering: (),
    ttl: days(1),
    writes: conditional,
    owner: "accounts",
}

table! {
    /// The same with one more column.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LaterName = "names" {
        /// The name.
        pub name: String,
        /// The player.
        pub player_id: i64,
        /// Added later.
        pub note: Option<String>,
    }
    partition: (name),
    clustering: (),
    ttl: days(1),
    writes: conditional,
    owner: "accounts",
}

table! {
    /// The same with another key.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OtherKey = "names" {
        /// The name.
        pub name: String,
        /// The player.
        pub player_id: i64,
    }
    partition: (player_id),
    clustering: (name asc),
    ttl: days(1),
    writes: rows,
    owner: "accounts",
}

table! {
    /// Where players were.
    #[derive(Clone, Debug, PartialEq)]
    pub struct VisitOn = "visits" {
        /// The player.
        pub player_id: i64,
        /// When.
        pub at: Timestamp,
        /// On which device.
        pub device: String,
    }
    partition: (player_id),
    clustering: (),
    ttl: persistent,
    lookups: (by_device(device) index "idx_visits_device"),
    writes: rows,
    owner: "accounts",
}

table! {
    /// The same without the device.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Visit = "visits" {
        /// The player.
        pub player_id: i64,
        /// When.
        pub at: Timestamp,
    }
    partition: (player_id),
    clustering: (),
    ttl: persistent,
    writes: rows,
    deprecated: (device(String, since "2024-01-01")),
    owner: "accounts",
}

async fn refused(url: &str, schema: HistorySchema, options: CqlOptions) -> ConnectError {
    CqlStore::connect(url, schema, options).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_keyspaces_that_are_not_there() {
    let began = Instant::now();
    let absent = format!("cql://user:secret@127.0.0.1:{}/k", free_port());
    let error = refused(&absent, schema(), options()).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("secret"));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let Some(cassandra) = shared_cassandra() else { return };
    let url = cassandra.url("nowhere");
    let error = refused(&url, schema(), options()).await;
    assert!(matches!(&error, ConnectError::Keyspace { keyspace } if keyspace == "nowhere"), "{error:?}");
    for wrong in
        [url.replace("cassandra:cassandra@", "cassandra:secret@"), url.replace("cassandra:cassandra@", "")]
    {
        let error = refused(&wrong, schema(), options()).await;
        assert!(matches!(error, ConnectError::Credentials { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}

/// A private authority is trusted if the URL names it, and refused if it does not.
#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread")]
async fn connections_with_tls() {
    let Some(cassandra) = shared_cassandra() else { return };
    keyspace(cassandra, "secret_talk").await;
    let url = cassandra.tls_url("secret_talk").expect("openssl made a certificate");
    let history = open(&url).await;
    history.insert(event(1, 1, 1)).await.unwrap();
    assert_eq!(history.get(event(1, 1, 1).row_key()).await.unwrap(), Some(event(1, 1, 1)));
    let public = url.split('?').next().unwrap();
    let error = refused(public, schema(), options()).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
    let error = refused(&format!("{public}?ca=/nowhere.pem"), schema(), options()).await;
    assert!(matches!(error, ConnectError::Tls { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_differ() {
    let Some(cassandra) = shared_cassandra() else { return };
    let url = keyspace(cassandra, "differing").await;
    let live = LiveKeyspace::connect(&url).await.unwrap();
    let missing = live.diff(&schema()).await.unwrap();
    assert!(missing.iter().all(Difference::is_addable), "{missing:?}");
    let error = refused(&url, schema(), CqlOptions::default()).await;
    assert!(error.to_string().contains("table combat_events is missing"), "{error}");
    assert!(error.to_string().contains("schema apply"), "{error}");
    assert_eq!(live.apply(&schema()).await.unwrap(), missing);
    assert_eq!(live.diff(&schema()).await.unwrap(), [], "everything that was created is as declared");
    assert_eq!(live.apply(&schema()).await.unwrap(), []);
    CqlStore::connect(&url, schema(), CqlOptions::default()).await.unwrap();

    let error = refused(&url, HistorySchema::new().table::<OtherType>(), options()).await;
    assert!(error.to_string().contains("column player_id is bigint, declared text"), "{error}");
    let error = refused(&url, HistorySchema::new().table::<OtherKey>(), options()).await;
    assert!(error.to_string().contains("its key is ((name)), declared ((player_id), name ASC)"), "{error}");
    let scaled = refused(&format!("{url}?layout=scaled"), schema(), options()).await;
    assert!(scaled.to_string().contains("is it the other layout?"), "{scaled}");

    let later = HistorySchema::new().table::<LaterName>();
    let error = refused(&url, later.clone(), CqlOptions::default()).await;
    assert!(error.to_string().contains("table names: column note text is missing"), "{error}");
    assert_eq!(live.apply(&later).await.unwrap().len(), 1);
    CqlStore::connect(&url, later, CqlOptions::default()).await.unwrap();
    CqlStore::connect(&url, schema(), CqlOptions::default())
        .await
        .expect("an older program takes a newer column");
}

/// The SELECTs of the storage document, as another program sends them.
#[tokio::test(flavor = "multi_thread")]
async fn the_document_layout_answers_the_statements_of_the_document() {
    let Some(cassandra) = shared_cassandra() else { return };
    let url = keyspace(cassandra, "external").await;
    let history = open(&url).await;
    history.insert_many((0..5).map(|n| event(7, n * 1_000, n as u128))).await.unwrap();
    history.fold(&Source::of_log("s", "l", "i"), [emberkeep_history::testing::kills(1, 7, 3)]).await.unwrap();
    let session = cassandra::session(cassandra).await;
    let day = Timestamp(NOW).day();
    for (statement, rows) in [
        (
            format!(
                "SELECT * FROM external.combat_events WHERE day_bucket = '{day}' AND timestamp > '{day}T10:00:00Z' AND timestamp < '{day}T13:00:00Z'"
            ),
            5,
        ),
        (format!("SELECT * FROM external.combat_events WHERE attacker_id = 7 AND day_bucket = '{day}'"), 5),
        (
            format!(
                "SELECT * FROM external.combat_events WHERE target_id = 1000007 AND day_bucket = '{day}'"
            ),
            5,
        ),
        (
            "SELECT * FROM external.player_stats WHERE player_id = 7 AND total_kills = 3 ALLOW FILTERING"
                .into(),
            1,
        ),
    ] {
        let result = session.query_unpaged(statement.as_str(), ()).await.unwrap().into_rows_result().unwrap();
        assert_eq!(result.rows_num(), rows, "{statement}");
    }
    // An event is written with its own time, and ends 30 days after it.
    let statement = format!(
        "SELECT writetime(damage), ttl(damage) FROM external.combat_events WHERE day_bucket = '{day}' LIMIT 1"
    );
    let result = session.query_unpaged(statement, ()).await.unwrap().into_rows_result().unwrap();
    let (written, ttl) = result.first_row::<(i64, i32)>().unwrap();
    assert_eq!(written, NOW * 1_000);
    assert!((30 * 86_400 - 600..=30 * 86_400).contains(&ttl), "{ttl}");
    assert_eq!(CombatEvent::DECLARATION.name, "combat_events");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deprecated_column_stays_until_it_may_be_removed() {
    let Some(cassandra) = shared_cassandra() else { return };
    let url = keyspace(cassandra, "deprecating").await;
    let (former, present) = (HistorySchema::new().table::<VisitOn>(), HistorySchema::new().table::<Visit>());
    let old = History::new(Arc::new(CqlStore::connect(&url, former, options()).await.unwrap()));
    let visit = |player_id, at| Visit { player_id, at: Timestamp(at) };
    old.upsert(VisitOn { player_id: 1, at: Timestamp(NOW), device: "pad".into() }).await.unwrap();

    let store = CqlStore::connect(&url, present.clone(), CqlOptions::default()).await;
    let new = History::new(Arc::new(store.expect("a column that is still there is no difference")));
    new.upsert(visit(1, NOW + 1)).await.unwrap();
    new.upsert(visit(2, NOW)).await.unwrap();
    let session = cassandra::session(cassandra).await;
    let devices = async || {
        let statement = "SELECT player_id, device FROM deprecating.visits";
        let rows = session.query_unpaged(statement, ()).await.ok()?.into_rows_result().unwrap();
        let mut rows: Vec<_> = rows.rows::<(i64, Option<String>)>().unwrap().map(Result::unwrap).collect();
        rows.sort();
        Some(rows)
    };
    assert_eq!(devices().await, Some(vec![(1, Some("pad".into())), (2, None)]), "kept, and not written");

    let live = LiveKeyspace::connect(&url).await.unwrap();
    let found = live.diff(&present).await.unwrap();
    assert_eq!(
        found[0].to_string(),
        "table visits: column device is deprecated since 2024-01-01 (schema apply --drop removes it from 2024-01-31 on)"
    );
    assert!(found.len() == 1 && found[0].is_deprecation(), "{found:?}");
    assert_eq!(live.apply(&present).await.unwrap(), []);
    let early = live.drop_deprecated(&present, "2024-01-30".parse().unwrap()).await.unwrap();
    assert_eq!(early, (vec![], found.clone()));
    assert!(devices().await.is_some());
    let removed = live.drop_deprecated(&present, "2024-01-31".parse().unwrap()).await.unwrap();
    assert_eq!(removed, (found, vec![]));
    assert_eq!((live.diff(&present).await.unwrap(), devices().await), (vec![], None));
    assert_eq!(new.get(Visit::key(1)).await.unwrap(), Some(visit(1, NOW + 1)));
}
