//! Writes a snapshot: keys by COPY, metadata at the end, all in one transaction.

use crate::failure::failed;
use emberkeep_hot::command::KeyDump;
use emberkeep_hot::engine::Pending;
use emberkeep_snapshot::{
    Error, Result, SnapshotId, SnapshotInfo, SnapshotWriter, kind_number, push_content,
};
use std::pin::Pin;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

const COPY: &str =
    "COPY ember_snapshot_key (snapshot, position, key, kind, deadline, value) FROM STDIN BINARY";
const TYPES: [Type; 6] = [Type::TEXT, Type::INT8, Type::BYTEA, Type::INT2, Type::INT8, Type::BYTEA];

/// A snapshot in the making. Dropped before its end its connection is closed, and the server rolls back.
pub(crate) struct PostgresWriter {
    client: Client,
    rows: Pin<Box<BinaryCopyInWriter>>,
    position: i64,
    store: String,
    id: SnapshotId,
    value: Vec<u8>,
}

impl PostgresWriter {
    pub(crate) async fn begin(client: Client, store: &str, id: SnapshotId) -> Result<PostgresWriter> {
        let begun = async {
            client.batch_execute("BEGIN").await?;
            client.copy_in(COPY).await
        };
        let sink = begun.await.map_err(|error| failed(store, &error))?;
        let rows = Box::pin(BinaryCopyInWriter::new(sink, &TYPES));
        Ok(PostgresWriter { client, rows, position: 0, store: store.to_owned(), id, value: Vec::new() })
    }

    async fn write_keys(&mut self, keys: Vec<KeyDump>) -> Result<()> {
        for key in keys {
            self.value.clear();
            push_content(&mut self.value, &key.content);
            let kind = i16::from(kind_number(key.content.kind()));
            let (name, value) = (&key.key[..], &self.value[..]);
            let row: [&(dyn ToSql + Sync); 6] =
                [&self.id.as_str(), &self.position, &name, &kind, &key.deadline, &value];
            let written = self.rows.as_mut().write(&row).await;
            written.map_err(|error| failed(&self.store, &error))?;
            self.position += 1;
        }
        Ok(())
    }

    async fn finish_rows(mut self: Box<Self>, info: SnapshotInfo) -> Result<()> {
        let text = serde_json::to_string(&info).expect("metadata is JSON");
        let stored = async {
            self.rows.as_mut().finish().await?;
            const INSERT: &str =
                "INSERT INTO ember_snapshot (id, partition, created_at, info) VALUES ($1, $2, $3, $4)";
            self.client.execute(INSERT, &[&info.id.as_str(), &info.partition, &info.created_at, &text]).await
        };
        stored.await.map_err(|error| failed(&self.store, &error))?;
        self.client.batch_execute("COMMIT").await.map_err(|error| match failed(&self.store, &error) {
            // The server did not say that it refused: it may have committed before it went away.
            Error::Unavailable { store, reason } if error.as_db_error().is_none() => {
                Error::OutcomeUnknown { store, id: info.id.clone(), reason }
            }
            refused => refused,
        })
    }
}

impl SnapshotWriter for PostgresWriter {
    fn write(&mut self, keys: Vec<KeyDump>) -> Pending<'_, Result<()>> {
        Box::pin(self.write_keys(keys))
    }

    fn finish(self: Box<Self>, info: SnapshotInfo) -> Pending<'static, Result<()>> {
        Box::pin(self.finish_rows(info))
    }
}
