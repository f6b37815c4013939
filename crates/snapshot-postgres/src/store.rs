//! The store: lists, generations, removal.

use crate::connect::Connector;
use crate::failure::failed;
use crate::migrate::migrate;
use crate::read::PostgresReader;
use crate::url::Url;
use crate::write::PostgresWriter;
use emberkeep_hot::engine::Pending;
use emberkeep_snapshot::{
    DamagedSnapshot, Listing, Result, SnapshotId, SnapshotInfo, SnapshotReader, SnapshotStore, SnapshotWriter,
};

/// Snapshots in a database of PostgreSQL.
pub struct PostgresStore {
    connector: Connector,
}

impl PostgresStore {
    /// Connects to `postgres://user:password@host:port/database` and brings the tables to the newest version.
    /// `?sslmode=require` encrypts, and checks the certificate against the public authorities or those of `&ca=FILE`.
    pub async fn connect(url: &str) -> Result<PostgresStore> {
        let connector = Connector::new(Url::parse(url)?)?;
        let mut client = connector.connect().await?;
        migrate(&mut client, connector.name()).await?;
        Ok(PostgresStore { connector })
    }

    /// Refuses a URL that [`connect`](PostgresStore::connect) cannot read. The error shows no password.
    pub fn check_url(url: &str) -> Result<()> {
        Url::parse(url).map(drop)
    }

    fn failed(&self, error: &tokio_postgres::Error) -> emberkeep_snapshot::Error {
        failed(self.connector.name(), error)
    }

    async fn list_rows(&self) -> Result<Listing> {
        let client = self.connector.connect().await?;
        let rows = client.query("SELECT id, info FROM ember_snapshot", &[]).await;
        let mut listing = Listing::default();
        for row in rows.map_err(|error| self.failed(&error))? {
            let id: String = row.try_get(0).map_err(|error| self.failed(&error))?;
            let info: String = row.try_get(1).map_err(|error| self.failed(&error))?;
            match serde_json::from_str::<SnapshotInfo>(&info) {
                Ok(info) => listing.snapshots.push(info),
                Err(error) => {
                    let problem = format!("metadata that cannot be read: {error}");
                    listing.damaged.push(DamagedSnapshot { snapshot: id, problem });
                }
            }
        }
        listing.snapshots.sort_by(|a, b| {
            (a.generation, a.tick, a.created_at, &a.id).cmp(&(b.generation, b.tick, b.created_at, &b.id))
        });
        Ok(listing)
    }

    async fn remove_rows(&self, id: &SnapshotId) -> Result<bool> {
        let mut client = self.connector.connect().await?;
        let removed = async {
            let transaction = client.transaction().await?;
            let removed =
                transaction.execute("DELETE FROM ember_snapshot WHERE id = $1", &[&id.as_str()]).await?;
            let keys = "DELETE FROM ember_snapshot_key WHERE snapshot = $1";
            transaction.execute(keys, &[&id.as_str()]).await?;
            transaction.commit().await.map(|()| removed > 0)
        };
        removed.await.map_err(|error| self.failed(&error))
    }

    async fn number(&self, query: &str, partition: &str, at_least: i64) -> Result<u64> {
        let client = self.connector.connect().await?;
        let row = match at_least {
            0.. => client.query_opt(query, &[&partition, &at_least]).await,
            _ => client.query_opt(query, &[&partition]).await,
        };
        let row = row.map_err(|error| self.failed(&error))?;
        let number: i64 = match row {
            Some(row) => row.try_get(0).map_err(|error| self.failed(&error))?,
            None => 0,
        };
        Ok(u64::try_from(number).unwrap_or_default())
    }
}

impl SnapshotStore for PostgresStore {
    fn name(&self) -> String {
        self.connector.name().to_owned()
    }

    fn begin<'a>(&'a self, info: &'a SnapshotInfo) -> Pending<'a, Result<Box<dyn SnapshotWriter>>> {
        Box::pin(async {
            let client = self.connector.connect().await?;
            let writer = PostgresWriter::begin(client, self.connector.name(), info.id.clone()).await?;
            Ok(Box::new(writer) as Box<dyn SnapshotWriter>)
        })
    }

    fn list(&self) -> Pending<'_, Result<Listing>> {
        Box::pin(self.list_rows())
    }

    fn open<'a>(&'a self, id: &'a SnapshotId) -> Pending<'a, Result<Box<dyn SnapshotReader>>> {
        Box::pin(async {
            let client = self.connector.connect().await?;
            let reader = PostgresReader::open(client, self.connector.name(), id).await?;
            Ok(Box::new(reader) as Box<dyn SnapshotReader>)
        })
    }

    fn remove<'a>(&'a self, id: &'a SnapshotId) -> Pending<'a, Result<bool>> {
        Box::pin(self.remove_rows(id))
    }

    fn generation<'a>(&'a self, partition: &'a str) -> Pending<'a, Result<u64>> {
        const QUERY: &str = "SELECT generation FROM ember_snapshot_generation WHERE partition = $1";
        Box::pin(self.number(QUERY, partition, -1))
    }

    fn raise_generation<'a>(&'a self, partition: &'a str, at_least: u64) -> Pending<'a, Result<u64>> {
        const QUERY: &str =
            "INSERT INTO ember_snapshot_generation AS stored VALUES ($1, GREATEST(1, $2::bigint))
            ON CONFLICT (partition) DO UPDATE SET generation = GREATEST(stored.generation + 1, $2::bigint)
            RETURNING generation";
        Box::pin(self.number(QUERY, partition, i64::try_from(at_least).unwrap_or(i64::MAX)))
    }
}
