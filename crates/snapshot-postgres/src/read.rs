//! Reads a snapshot by COPY, in the order in which it was written.

use crate::failure::failed;
use bytes::Bytes;
use emberkeep_hot::command::KeyDump;
use emberkeep_hot::engine::Pending;
use emberkeep_snapshot::limits::BLOCK_BYTES;
use emberkeep_snapshot::{Error, Result, SnapshotId, SnapshotInfo, SnapshotReader, content_from, kind_from};
use futures_util::StreamExt;
use std::pin::Pin;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::{BinaryCopyOutRow, BinaryCopyOutStream};
use tokio_postgres::types::Type;

const TYPES: [Type; 4] = [Type::BYTEA, Type::INT2, Type::INT8, Type::BYTEA];

/// A snapshot that is being read.
pub(crate) struct PostgresReader {
    info: SnapshotInfo,
    rows: Pin<Box<BinaryCopyOutStream>>,
    is_over: bool,
    store: String,
    /// The rows come over its connection.
    _client: Client,
}

impl PostgresReader {
    pub(crate) async fn open(client: Client, store: &str, id: &SnapshotId) -> Result<PostgresReader> {
        let run = |error: tokio_postgres::Error| failed(store, &error);
        // One moment for the metadata and the keys: a snapshot that is removed meanwhile is read to its end.
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(run)?;
        let select = "SELECT info FROM ember_snapshot WHERE id = $1";
        let Some(row) = client.query_opt(select, &[&id.as_str()]).await.map_err(run)? else {
            return Err(Error::NotFound { id: id.to_string(), store: store.to_owned() });
        };
        let info: String = row.try_get(0).map_err(run)?;
        let info = serde_json::from_str(&info).map_err(|error| Error::Damaged {
            snapshot: id.to_string(),
            problem: format!("metadata that cannot be read: {error}"),
        })?;
        // An id has digits, letters and a dash, nothing that would end the text.
        let copy = format!(
            "COPY (SELECT key, kind, deadline, value FROM ember_snapshot_key WHERE snapshot = '{id}'
             ORDER BY position) TO STDOUT BINARY"
        );
        let rows = client.copy_out(copy.as_str()).await.map_err(run)?;
        let rows = Box::pin(BinaryCopyOutStream::new(rows, &TYPES));
        Ok(PostgresReader { info, rows, is_over: false, store: store.to_owned(), _client: client })
    }

    async fn next_keys(&mut self) -> Result<Option<Vec<KeyDump>>> {
        let (mut keys, mut bytes) = (Vec::new(), 0);
        while !self.is_over && bytes < BLOCK_BYTES {
            match self.rows.next().await {
                None => self.is_over = true,
                Some(row) => {
                    let row = row.map_err(|error| failed(&self.store, &error))?;
                    let key = self.key_of(&row)?;
                    bytes += key.bytes();
                    keys.push(key);
                }
            }
        }
        Ok((!keys.is_empty()).then_some(keys))
    }

    fn key_of(&self, row: &BinaryCopyOutRow) -> Result<KeyDump> {
        let column = |error: tokio_postgres::Error| self.damaged(&error.to_string());
        let key = Bytes::copy_from_slice(row.try_get::<&[u8]>(0).map_err(column)?);
        let kind: i16 = row.try_get(1).map_err(column)?;
        let deadline: Option<i64> = row.try_get(2).map_err(column)?;
        let value = Bytes::copy_from_slice(row.try_get::<&[u8]>(3).map_err(column)?);
        let kind = u8::try_from(kind).ok().and_then(kind_from);
        let kind = kind.ok_or_else(|| self.damaged("a type that does not exist"))?;
        let content = content_from(kind, value).map_err(|problem| self.damaged(problem))?;
        Ok(KeyDump { key, content, deadline })
    }

    fn damaged(&self, problem: &str) -> Error {
        Error::Damaged {
            snapshot: format!("{} in {}", self.info.id, self.store),
            problem: problem.to_owned(),
        }
    }
}

impl SnapshotReader for PostgresReader {
    fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    fn next(&mut self) -> Pending<'_, Result<Option<Vec<KeyDump>>>> {
        Box::pin(self.next_keys())
    }
}
