//! The tables, made and migrated in one transaction under an advisory lock.

use crate::failure::failed;
use emberkeep_snapshot::{Error, Result};
use tokio_postgres::Client;

/// The statements of each version, in order. A version that was released never changes.
const VERSIONS: &[&str] = &["
    CREATE TABLE ember_snapshot (
        id text PRIMARY KEY, partition text NOT NULL, created_at bigint NOT NULL, info text NOT NULL
    );
    CREATE TABLE ember_snapshot_key (
        snapshot text NOT NULL, position bigint NOT NULL, key bytea NOT NULL, kind smallint NOT NULL,
        deadline bigint, value bytea NOT NULL, PRIMARY KEY (snapshot, position)
    );
    CREATE TABLE ember_snapshot_generation (partition text PRIMARY KEY, generation bigint NOT NULL);
"];

/// Two processes that start at once take turns. The number has no meaning.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7165213977245121)";

/// Brings the tables to the newest version.
pub(crate) async fn migrate(client: &mut Client, store: &str) -> Result<()> {
    let run = |error: tokio_postgres::Error| failed(store, &error);
    let transaction = client.transaction().await.map_err(run)?;
    transaction.batch_execute(LOCK).await.map_err(run)?;
    let exists = "SELECT to_regclass('ember_snapshot_version') IS NOT NULL";
    let exists: bool = transaction.query_one(exists, &[]).await.map_err(run)?.try_get(0).map_err(run)?;
    let mut version = 0;
    if exists {
        let row =
            transaction.query_one("SELECT version FROM ember_snapshot_version", &[]).await.map_err(run)?;
        version = row.try_get::<_, i32>(0).map_err(run)?;
    } else {
        let create = "CREATE TABLE ember_snapshot_version (version integer NOT NULL);
            INSERT INTO ember_snapshot_version VALUES (0)";
        transaction.batch_execute(create).await.map_err(run)?;
    }
    let version = usize::try_from(version).unwrap_or_default();
    let Some(missing) = VERSIONS.get(version..) else {
        let snapshot = format!("{store}, table ember_snapshot_version");
        return Err(Error::NewerFormat { snapshot, found: version as u32, max: VERSIONS.len() as u32 });
    };
    for statements in missing {
        transaction.batch_execute(statements).await.map_err(run)?;
    }
    if !missing.is_empty() {
        let update = format!("UPDATE ember_snapshot_version SET version = {}", VERSIONS.len());
        transaction.batch_execute(&update).await.map_err(run)?;
    }
    transaction.commit().await.map_err(run)
}
