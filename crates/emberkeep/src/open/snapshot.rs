//! URLs of stores of snapshots: a folder, or PostgreSQL.

use emberkeep_hot::engine::Pending;
use emberkeep_snapshot::{Error, FileStore, SnapshotStore};
#[cfg(feature = "postgres")]
use emberkeep_snapshot_postgres::PostgresStore;
use std::path::PathBuf;
use std::sync::Arc;

/// What a URL of PostgreSQL begins with.
const POSTGRES: [&str; 2] = ["postgres://", "postgresql://"];

/// Where snapshots are.
///
/// | URL | store |
/// |---|---|
/// | `file:snapshots`, `snapshots`, `/var/lib/game/snapshots` | this folder; several processes may use it |
/// | `postgres://user:password@host:5432/database` | PostgreSQL, with the feature `postgres`; `?sslmode=require&ca=FILE` for TLS |
#[derive(Clone)]
pub struct SnapshotUrl(Target);

#[derive(Clone)]
enum Target {
    Folder(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(String),
}

impl SnapshotUrl {
    /// Reads a URL, without opening anything. The error shows no password.
    pub fn parse(text: &str) -> Result<SnapshotUrl, Error> {
        if POSTGRES.iter().any(|scheme| text.starts_with(scheme)) {
            return postgres(text);
        }
        let folder = text.strip_prefix("file:").unwrap_or(text);
        if folder.is_empty() || folder.contains("://") {
            let problem = "expected a folder, file:DIR or postgres://user:password@host/database".to_owned();
            return Err(Error::Invalid { what: "URL of snapshots", problem });
        }
        Ok(SnapshotUrl(Target::Folder(folder.into())))
    }

    /// Opens the store: a folder is made if it does not exist, and the tables of a database too.
    pub fn open(self) -> Pending<'static, Result<Arc<dyn SnapshotStore>, Error>> {
        Box::pin(async move {
            match self.0 {
                Target::Folder(folder) => FileStore::open(folder).map(SnapshotStore::shared),
                #[cfg(feature = "postgres")]
                Target::Postgres(url) => PostgresStore::connect(&url).await.map(SnapshotStore::shared),
            }
        })
    }
}

#[cfg(feature = "postgres")]
fn postgres(text: &str) -> Result<SnapshotUrl, Error> {
    PostgresStore::check_url(text).map(|()| SnapshotUrl(Target::Postgres(text.to_owned())))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<SnapshotUrl, Error> {
    let problem = "this program was built without PostgreSQL; build it with --features postgres".to_owned();
    Err(Error::Invalid { what: "URL of snapshots", problem })
}
