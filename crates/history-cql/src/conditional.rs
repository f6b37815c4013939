//! Conditional writes: lightweight transactions, sent once. An unknown outcome is found out by a serial read.

use crate::cluster::{Answer, Cluster, Mode, Statement};
use crate::failure;
use crate::limits::OUTCOME_READS_MAX;
use crate::plan::TablePlan;
use crate::values::{self, Cell};
use emberkeep_history::{Applied, ConditionalWrite, Error, RawRow, Result};
use emberkeep_schema::{Value, cql_name};

/// Executes a conditional write. Its tables have no slices, and no lookups but indexes.
pub(crate) async fn write_if(
    cluster: &Cluster,
    plan: &TablePlan,
    write: ConditionalWrite,
    now_ms: i64,
) -> Result<Applied<RawRow>> {
    let table = plan.declaration.name;
    let statement = statement(plan, &write, now_ms);
    let (key, wanted, expected) = match write {
        ConditionalWrite::InsertIfAbsent(row) => (plan.key_of_row(&row), Some(row), None),
        ConditionalWrite::ReplaceIf { expected, row } => (plan.key_of_row(&row), Some(row), Some(expected)),
        ConditionalWrite::DeleteIf(expected) => (plan.key_of_row(&expected), None, Some(expected)),
    };
    let mut unknown = false;
    for _ in 0..=OUTCOME_READS_MAX {
        let error = match cluster.write_if(table, &statement).await? {
            Ok(answer) if answer.is_applied => return Ok(Applied::Yes),
            Ok(answer) => {
                let current = current(plan, &key, answer)?;
                // A try before this one may have been applied although its answer was lost.
                return Ok(if unknown && current == wanted { Applied::Yes } else { Applied::No(current) });
            }
            Err(error) => error,
        };
        if !failure::is_unknown(&error) {
            return Err(failure::of_write(cluster.name(), table, &error));
        }
        unknown = true;
        // The serial read completes or discards the write that is in progress.
        let Ok(stored) = serial_get(cluster, plan, &key).await else { continue };
        if stored == wanted {
            return Ok(Applied::Yes);
        }
        if stored != expected {
            return Ok(Applied::No(stored));
        }
    }
    Err(Error::OutcomeUnknown {
        reason: format!("{}: a conditional write of {table} got no answer", cluster.name()),
    })
}

async fn serial_get(cluster: &Cluster, plan: &TablePlan, key: &[Value]) -> Result<Option<RawRow>> {
    let cells = key.iter().cloned().map(Cell::Value).collect();
    let statement = Statement { text: plan.rows.get.clone(), cells };
    let table = plan.declaration.name;
    let (rows, _) = cluster.read(table, Mode::SerialRead, &statement, 1, usize::MAX).await?;
    let row = rows.into_iter().next().map(|row| values::read_row(plan.declaration, row)).transpose();
    row.map_err(|(column, reason)| Error::Corrupt { table, column, reason })
}

/// The row in an answer that was not applied. Servers return the columns of the condition, or none if there is no row.
fn current(plan: &TablePlan, key: &[Value], mut answer: Answer) -> Result<Option<RawRow>> {
    let mut row = plan.row_of_key(key);
    let is_absent = answer.columns.values().all(Option::is_none);
    if is_absent && !answer.columns.is_empty() || answer.columns.is_empty() {
        return Ok(None);
    }
    for (place, column) in plan.declaration.columns.iter().enumerate() {
        if let Some(value) = answer.columns.remove(column.name) {
            let value = values::read(value, column.kind);
            let corrupt =
                |reason| Error::Corrupt { table: plan.declaration.name, column: column.name, reason };
            row[place] = value.map_err(corrupt)?.or(row[place].take());
        }
    }
    Ok(Some(row))
}

/// A table of `writes: conditional` has a column that every row has, so a row is never compared with no row by nulls alone.
fn statement(plan: &TablePlan, write: &ConditionalWrite, now_ms: i64) -> Statement {
    let (declaration, name) = (plan.declaration, &plan.rows.name);
    let others =
        || declaration.columns.iter().enumerate().filter(|(_, column)| !declaration.is_key(column.name));
    let list = |separator: &str| {
        others()
            .map(|(_, column)| format!("{} = ?", cql_name(column.name)))
            .collect::<Vec<_>>()
            .join(separator)
    };
    let cells =
        |row: &RawRow| others().map(|(place, _)| Cell::replacing(row[place].clone())).collect::<Vec<_>>();
    let keys = declaration.primary_key();
    let condition =
        keys.iter().map(|(name, _)| format!("{} = ?", cql_name(name))).collect::<Vec<_>>().join(" AND ");
    let key = |row: &RawRow| plan.key_of_row(row).into_iter().map(Cell::Value).collect::<Vec<_>>();
    let ttl = |row: &RawRow| {
        let place = plan.time.filter(|_| plan.ttl_ms.is_some())?;
        let Some(Value::Timestamp(ms)) = row[place] else { return None };
        let seconds = (ms + plan.ttl_ms? - now_ms + 999).div_euclid(1_000);
        Some(Cell::Value(Value::Int(seconds.clamp(1, 630_720_000) as i32)))
    };
    let (text, cells) = match write {
        ConditionalWrite::InsertIfAbsent(row) => {
            let names: Vec<_> = declaration.columns.iter().map(|column| cql_name(column.name)).collect();
            let marks = vec!["?"; names.len()].join(", ");
            let ttl = ttl(row);
            let using = if ttl.is_some() { " USING TTL ?" } else { "" };
            let text =
                format!("INSERT INTO {name} ({}) VALUES ({marks}) IF NOT EXISTS{using}", names.join(", "));
            // Absent columns are left out: there is no row that they could be removed from.
            (text, row.iter().cloned().map(Cell::adding).chain(ttl).collect())
        }
        ConditionalWrite::ReplaceIf { expected, row } => {
            let ttl = ttl(row);
            let using = if ttl.is_some() { " USING TTL ?" } else { "" };
            let text =
                format!("UPDATE {name}{using} SET {} WHERE {condition} IF {}", list(", "), list(" AND "));
            let cells = ttl.into_iter().chain(cells(row)).chain(key(row)).chain(cells(expected));
            (text, cells.collect())
        }
        ConditionalWrite::DeleteIf(expected) => {
            let text = format!("DELETE FROM {name} WHERE {condition} IF {}", list(" AND "));
            (text, key(expected).into_iter().chain(cells(expected)).collect())
        }
    };
    Statement { text: text.into(), cells }
}
