//! The session with its prepared statements: every request to the cluster goes through here.

use crate::back_pressure::BackPressure;
use crate::failure;
use crate::limits::FETCH_ROWS_MAX;
use crate::values::Cell;
use emberkeep_history::{Error, Result};
use parking_lot::RwLock;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::batch::{Batch, BatchStatement, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::{CqlValue, Row};
use std::collections::HashMap;
use std::sync::Arc;

/// How a statement is executed. It is part of its key in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// Repeating it changes nothing, so the driver may send it to another node.
    Idempotent,
    /// A condition: sent once, an unknown outcome is ours to find out.
    Conditional,
    /// A read that completes conditional writes in progress.
    SerialRead,
}

/// A write: the text of its statement and its values.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) text: Arc<str>,
    pub(crate) cells: Vec<Cell>,
}

/// The session of a store.
pub(crate) struct Cluster {
    session: Session,
    /// Of the cluster in messages, without credentials.
    name: String,
    serial: SerialConsistency,
    prepared: RwLock<HashMap<(Mode, Arc<str>), PreparedStatement>>,
    pub(crate) bounds: BackPressure,
}

/// The answer to a conditional write.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) is_applied: bool,
    /// The other columns of the answer by name.
    pub(crate) columns: HashMap<String, Option<CqlValue>>,
}

impl Cluster {
    pub(crate) fn new(
        session: Session,
        name: String,
        serial: SerialConsistency,
        bounds: BackPressure,
    ) -> Cluster {
        Cluster { session, name, serial, prepared: RwLock::default(), bounds }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The statement, prepared by its first use.
    async fn prepared(&self, table: &str, mode: Mode, text: &Arc<str>) -> Result<PreparedStatement> {
        let key = (mode, text.clone());
        if let Some(prepared) = self.prepared.read().get(&key) {
            return Ok(prepared.clone());
        }
        let prepared = self.session.prepare(text.as_ref()).await;
        let mut prepared = prepared.map_err(|error| failure::of_prepare(&self.name, table, error))?;
        prepared.set_is_idempotent(mode != Mode::Conditional);
        match mode {
            Mode::Idempotent => {}
            Mode::Conditional => {
                prepared.set_serial_consistency(Some(self.serial));
                prepared.set_retry_policy(Some(Arc::new(FallthroughRetryPolicy::new())));
            }
            Mode::SerialRead => prepared.set_consistency(match self.serial {
                SerialConsistency::Serial => Consistency::Serial,
                SerialConsistency::LocalSerial => Consistency::LocalSerial,
            }),
        }
        self.prepared.write().insert(key, prepared.clone());
        Ok(prepared)
    }

    /// Writes of one partition, which take effect together.
    pub(crate) async fn write(&self, table: &str, mut statements: Vec<Statement>, rows: usize) -> Result<()> {
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in &statements {
            prepared.push(self.prepared(table, Mode::Idempotent, &statement.text).await?);
        }
        let _place = self.bounds.request().await?;
        let sent = match (prepared.as_slice(), statements.as_mut_slice()) {
            ([], _) => return Ok(()),
            ([one], [statement]) => {
                self.session.execute_unpaged(one, std::mem::take(&mut statement.cells)).await
            }
            _ => {
                let all = prepared.into_iter().map(BatchStatement::PreparedStatement).collect();
                let mut batch = Batch::new_with_statements(BatchType::Unlogged, all);
                batch.set_is_idempotent(true);
                let values: Vec<Vec<Cell>> =
                    statements.into_iter().map(|statement| statement.cells).collect();
                self.session.batch(&batch, values).await
            }
        };
        sent.map_err(|error| failure::of_write(&self.name, table, &error))?;
        self.bounds.count_commit(rows);
        Ok(())
    }

    /// Rows of a statement, at most so many and about so many bytes; `true` = there are more because of the bytes.
    pub(crate) async fn read(
        &self,
        table: &str,
        mode: Mode,
        statement: &Statement,
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Row>, bool)> {
        let mut prepared = self.prepared(table, mode, &statement.text).await?;
        prepared.set_page_size(rows_max.clamp(1, FETCH_ROWS_MAX) as i32);
        let (mut rows, mut bytes, mut state) = (Vec::new(), 0, PagingState::start());
        loop {
            let (result, next) = {
                let _place = self.bounds.request().await?;
                let page = self.session.execute_single_page(&prepared, &statement.cells, state).await;
                page.map_err(|error| failure::of_read(&self.name, table, &error))?
            };
            bytes += self.add_rows(table, result, &mut rows)?;
            match next {
                PagingStateResponse::HasMorePages { state: after } if rows.len() < rows_max => {
                    if bytes >= bytes_max {
                        return Ok((rows, true));
                    }
                    state = after;
                }
                _ => {
                    rows.truncate(rows_max);
                    return Ok((rows, false));
                }
            }
        }
    }

    fn add_rows(&self, table: &str, result: QueryResult, rows: &mut Vec<Row>) -> Result<usize> {
        let result = result.into_rows_result().map_err(|error| self.unexpected(table, &error))?;
        let bytes = result.rows_bytes_size();
        for row in result.rows::<Row>().map_err(|error| self.unexpected(table, &error))? {
            rows.push(row.map_err(|error| self.unexpected(table, &error))?);
        }
        Ok(bytes)
    }

    /// One conditional write. The driver's error is passed on: the caller finds out what became of it.
    pub(crate) async fn write_if(
        &self,
        table: &str,
        statement: &Statement,
    ) -> Result<std::result::Result<Answer, ExecutionError>> {
        let prepared = self.prepared(table, Mode::Conditional, &statement.text).await?;
        let _place = self.bounds.request().await?;
        let result = match self.session.execute_unpaged(&prepared, &statement.cells).await {
            Ok(result) => result,
            Err(error) => return Ok(Err(error)),
        };
        let result = result.into_rows_result().map_err(|error| self.unexpected(table, &error))?;
        let names: Vec<String> = result.column_specs().iter().map(|spec| spec.name().to_owned()).collect();
        let row = result.first_row::<Row>().map_err(|error| self.unexpected(table, &error))?;
        // The first column tells whether it was applied. The others differ between servers.
        let is_applied = matches!(row.columns.first(), Some(Some(CqlValue::Boolean(true))));
        self.bounds.count_commit(usize::from(is_applied));
        let columns = names.into_iter().zip(row.columns).skip(1).collect();
        Ok(Ok(Answer { is_applied, columns }))
    }

    /// A statement without values, such as one that changes the schema.
    pub(crate) async fn execute(&self, text: &str) -> std::result::Result<(), ExecutionError> {
        self.session.query_unpaged(text, ()).await.map(drop)
    }

    /// Learns about keyspaces and nodes again.
    pub(crate) async fn refresh(&self) {
        if let Err(error) = self.session.refresh_metadata().await {
            tracing::warn!(%error, "the nodes of the cluster are not known again yet");
        }
    }

    fn unexpected(&self, table: &str, error: &dyn std::fmt::Display) -> Error {
        Error::Internal { reason: format!("{}, table {table}: {error}", self.name) }
    }
}
