//! Totals by source: one row per key and source with the position that it has reached.
//!
//! An entry is added only if its position is above the row's. The position and the sums change in one commit, so
//! an entry counts once, however often it is delivered. Readers add up the rows of all sources.

use super::catalog::Entry;
use super::commit::Commit;
use super::row::{self, Stored};
use super::store_error;
use crate::contract::{Fold, Folded, RawTotals, Source};
use crate::error::{Error, Result};
use crate::key_encoding;
use emberkeep_schema::{ColumnType, Order, TotalsDeclaration, Value};
use fjall::Keyspace;
use std::collections::HashMap;

/// First byte of a row's key.
const ROWS: u8 = 0;
/// First byte of a closed source's key.
const CLOSED: u8 = 1;
/// Ids of columns that all totals have; those of sums count up from 1.
const POSITION_ID: u16 = u16::MAX;
const UPDATED_ID: u16 = u16::MAX - 1;

/// Open totals.
pub(super) struct OpenTotals {
    declaration: &'static TotalsDeclaration,
    ids: Vec<u16>,
    pub(super) keyspace: Keyspace,
}

/// The row of a key and source.
#[derive(Debug, Clone, PartialEq)]
struct SourceRow {
    position: i64,
    updated: i64,
    sums: Vec<i64>,
    /// Sums that this declaration does not know.
    unknown: Vec<u8>,
}

impl OpenTotals {
    pub(super) fn new(
        declaration: &'static TotalsDeclaration,
        entry: &Entry,
        keyspace: Keyspace,
    ) -> OpenTotals {
        let id = |name| entry.column_id(name).expect("the entry has every declared sum");
        OpenTotals { declaration, ids: declaration.sums.iter().map(|sum| id(sum.name)).collect(), keyspace }
    }

    fn prefix(key: &Value) -> Vec<u8> {
        let mut out = vec![ROWS];
        key_encoding::push(&mut out, key, Order::Ascending);
        out
    }

    fn row_key(key: &Value, source: &Source) -> Vec<u8> {
        let mut out = Self::prefix(key);
        key_encoding::push(&mut out, &Value::Text(source.text().to_owned()), Order::Ascending);
        out
    }

    fn closed_key(source: &Source) -> Vec<u8> {
        let mut out = vec![CLOSED];
        key_encoding::push(&mut out, &Value::Text(source.text().to_owned()), Order::Ascending);
        out
    }

    fn damaged(&self) -> Error {
        Error::Damaged {
            place: format!("table {}", self.declaration.by_source),
            problem: "a row does not have its checksum".into(),
            remedy: super::ledger::REMEDY,
        }
    }

    fn error(&self, error: &fjall::Error) -> Error {
        store_error(self.declaration.by_source, error)
    }

    fn parse(&self, key: &[u8], bytes: &[u8]) -> Option<SourceRow> {
        let stored = Stored::read(key, bytes)?;
        let mut values = vec![None; self.ids.len() + 2];
        let find = |id: u16| match id {
            POSITION_ID => Some((0, ColumnType::BigInt)),
            UPDATED_ID => Some((1, ColumnType::Timestamp)),
            id => self.ids.iter().position(|known| *known == id).map(|place| (place + 2, ColumnType::BigInt)),
        };
        stored.values(find, &mut values)?;
        let number = |value: &Option<Value>| match value {
            Some(Value::BigInt(number) | Value::Timestamp(number)) => *number,
            _ => 0,
        };
        Some(SourceRow {
            position: number(&values[0]),
            updated: number(&values[1]),
            sums: values[2..].iter().map(number).collect(),
            unknown: stored.unknown(|id| id >= UPDATED_ID || self.ids.contains(&id))?,
        })
    }

    fn get(&self, key: &[u8]) -> Result<SourceRow> {
        match self.keyspace.get(key).map_err(|error| self.error(&error))? {
            Some(bytes) => self.parse(key, &bytes).ok_or_else(|| self.damaged()),
            None => {
                Ok(SourceRow { position: 0, updated: 0, sums: vec![0; self.ids.len()], unknown: Vec::new() })
            }
        }
    }

    /// The sums of a key over all sources.
    pub(super) fn read(&self, key: &Value) -> Result<Option<RawTotals>> {
        let mut totals: Option<RawTotals> = None;
        for guard in self.keyspace.prefix(Self::prefix(key)) {
            let (key, bytes) = guard.into_inner().map_err(|error| self.error(&error))?;
            let row = self.parse(&key, &bytes).ok_or_else(|| self.damaged())?;
            let all =
                totals.get_or_insert_with(|| RawTotals { sums: vec![0; self.ids.len()], last_updated: 0 });
            add(self.declaration, &mut all.sums, &row.sums)?;
            all.last_updated = all.last_updated.max(row.updated);
        }
        Ok(totals)
    }

    pub(super) fn close(&self, commit: &mut Commit<'_>, source: &Source) {
        commit.put(&self.keyspace, &Self::closed_key(source), &[]);
    }
}

fn add(declaration: &'static TotalsDeclaration, sums: &mut [i64], amounts: &[i64]) -> Result<()> {
    for ((sum, amount), declared) in sums.iter_mut().zip(amounts).zip(declaration.sums) {
        let overflow = || Error::Overflow { table: declaration.name, sum: declared.name };
        *sum = sum.checked_add(*amount).ok_or_else(overflow)?;
    }
    Ok(())
}

/// Adds the entries that are above the position of their row.
pub(super) fn fold(commit: &mut Commit<'_>, totals: &OpenTotals, fold: &Fold) -> Result<Folded> {
    let closed =
        totals.keyspace.get(OpenTotals::closed_key(&fold.source)).map_err(|error| totals.error(&error))?;
    if closed.is_some() {
        let name = fold.source.text().to_owned();
        return Err(Error::SourceClosed { table: totals.declaration.name, name });
    }
    let mut rows: HashMap<Vec<u8>, (SourceRow, bool)> = HashMap::new();
    let mut folded = Folded::default();
    for entry in &fold.entries {
        let key = OpenTotals::row_key(&entry.key, &fold.source);
        let (row, is_changed) = match rows.entry(key) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let row = totals.get(vacant.key())?;
                vacant.insert((row, false))
            }
        };
        if entry.position as i64 <= row.position {
            folded.repeated += 1;
            continue;
        }
        add(totals.declaration, &mut row.sums, &entry.amounts)?;
        (row.position, *is_changed) = (entry.position as i64, true);
        row.updated = row.updated.max(entry.at_ms);
        folded.added += 1;
    }
    for (key, (row, is_changed)) in rows {
        if is_changed {
            let numbers = row.sums.iter().map(|sum| Value::BigInt(*sum)).collect::<Vec<_>>();
            let head =
                [(POSITION_ID, Value::BigInt(row.position)), (UPDATED_ID, Value::Timestamp(row.updated))];
            let columns = totals.ids.iter().copied().zip(&numbers);
            let columns = columns.chain(head.iter().map(|(id, value)| (*id, value)));
            let mut value = Vec::new();
            row::encode(&mut value, &key, 0, columns, &row.unknown);
            commit.put(&totals.keyspace, &key, &value);
            commit.rows += 1;
        }
    }
    Ok(folded)
}
