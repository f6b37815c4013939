//! The schema of a keyspace: what is declared, what is there, what differs, and adding what is missing.

mod ddl;
mod declared;
mod diff;
mod live;

pub use ddl::{Replication, ReplicationError, script};
pub use diff::Difference;

use crate::cluster::Cluster;
use crate::connect::{self, ConnectError};
use crate::options::{CqlOptions, SchemaMode};
use crate::url::CqlUrl;
use declared::DeclaredTable;
use emberkeep_history::HistorySchema;
use emberkeep_schema::Day;

/// A live keyspace, opened to compare and change its schema.
pub struct LiveKeyspace {
    cluster: Cluster,
    url: CqlUrl,
}

impl LiveKeyspace {
    /// Connects to the keyspace of a URL.
    pub async fn connect(url: &str) -> Result<LiveKeyspace, ConnectError> {
        let url = CqlUrl::parse(url)?;
        let cluster = connect::connect(&url, &CqlOptions::default()).await?;
        Ok(LiveKeyspace { cluster, url })
    }

    /// Creates the keyspace if it does not exist.
    pub async fn create(&self, replication: &Replication) -> Result<(), ConnectError> {
        let keyspace = self.url.keyspace();
        let text = format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}");
        self.cluster.execute(&text).await.map_err(|error| failed(&self.url, &error))?;
        self.cluster.refresh().await;
        Ok(())
    }

    /// What differs from the declared tables, in the layout of the URL. Tables and columns that are not declared are not
    /// a difference: other programs may have them.
    pub async fn diff(&self, schema: &HistorySchema) -> Result<Vec<Difference>, ConnectError> {
        differences(&self.cluster, &self.url, schema).await
    }

    /// Adds missing tables, columns and indexes, and returns what was added. If anything else differs, nothing is
    /// changed and the error names it. Deprecated columns stay.
    pub async fn apply(&self, schema: &HistorySchema) -> Result<Vec<Difference>, ConnectError> {
        apply(&self.cluster, &self.url, schema).await
    }

    /// Removes deprecated columns, with their values and indexes, if `today` is late enough. Returns them, and those for
    /// which it is too early.
    pub async fn drop_deprecated(
        &self,
        schema: &HistorySchema,
        today: Day,
    ) -> Result<(Vec<Difference>, Vec<Difference>), ConnectError> {
        let found = differences(&self.cluster, &self.url, schema).await?;
        let deprecated = found.into_iter().filter(Difference::is_deprecation);
        let (removable, early): (Vec<_>, Vec<_>) =
            deprecated.partition(|difference| difference.is_removable(today));
        execute(&self.cluster, &self.url, &removable).await?;
        Ok((removable, early))
    }
}

/// Compares or changes the keyspace when a store is opened.
pub(crate) async fn prepare(
    cluster: &Cluster,
    url: &CqlUrl,
    schema: &HistorySchema,
    mode: SchemaMode,
) -> Result<(), ConnectError> {
    if mode == SchemaMode::Apply {
        return apply(cluster, url, schema).await.map(drop);
    }
    let found = differences(cluster, url, schema).await?.into_iter();
    let (harmless, harmful): (Vec<_>, Vec<_>) =
        found.filter(|difference| !difference.is_deprecation()).partition(Difference::is_harmless);
    for difference in harmless {
        tracing::warn!(keyspace = url.keyspace(), %difference, "the keyspace differs from the declared tables");
    }
    if harmful.is_empty() { Ok(()) } else { Err(schema_error(url, &harmful)) }
}

async fn differences(
    cluster: &Cluster,
    url: &CqlUrl,
    schema: &HistorySchema,
) -> Result<Vec<Difference>, ConnectError> {
    let live = live::read(cluster, url.keyspace()).await?;
    let declared = declared::tables(schema, url.layout());
    Ok(declared.iter().flat_map(|table: &DeclaredTable| diff::compare(table, &live)).collect())
}

async fn apply(
    cluster: &Cluster,
    url: &CqlUrl,
    schema: &HistorySchema,
) -> Result<Vec<Difference>, ConnectError> {
    let mut found = differences(cluster, url, schema).await?;
    found.retain(|difference| !difference.is_deprecation());
    let refused: Vec<_> = found.iter().filter(|difference| !difference.is_addable()).cloned().collect();
    if !refused.is_empty() {
        return Err(schema_error(url, &refused));
    }
    execute(cluster, url, &found).await?;
    Ok(found)
}

/// Removes differences, in their order.
async fn execute(cluster: &Cluster, url: &CqlUrl, differences: &[Difference]) -> Result<(), ConnectError> {
    for difference in differences {
        for statement in difference.statements(url.keyspace()) {
            cluster.execute(&statement).await.map_err(|error| failed(url, &error))?;
        }
    }
    if !differences.is_empty() {
        cluster.refresh().await;
    }
    Ok(())
}

fn failed(url: &CqlUrl, error: &dyn std::fmt::Display) -> ConnectError {
    ConnectError::Statement { keyspace: url.keyspace().to_owned(), reason: error.to_string() }
}

fn schema_error(url: &CqlUrl, differences: &[Difference]) -> ConnectError {
    let texts: Vec<_> = differences.iter().map(ToString::to_string).collect();
    ConnectError::Schema { keyspace: url.keyspace().to_owned(), differences: texts.join("; ") }
}
