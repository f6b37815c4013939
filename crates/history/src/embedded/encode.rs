//! Rows of a call in their stored form. The caller encodes them, so that the one writer only has to commit.

use super::operations::Operations;
use super::row;
use super::table::OpenTable;
use crate::contract::{RawRow, Written};
use crate::error::Result;

/// What a row and its lookup entries take, so that the buffer grows once.
const ROW_BYTES_GUESS: usize = 384;

/// Inserts in their stored form.
#[derive(Debug)]
pub(super) struct EncodedRows {
    /// The place of an operation is its window, see [`place_of`].
    operations: Operations,
    windows: Vec<i64>,
    pub(super) written: Written,
}

/// The place of an operation: the rows or the lookup entries of a window.
pub(super) fn place_of(window: i64, is_lookup: bool) -> i64 {
    window * 2 + i64::from(is_lookup)
}

impl EncodedRows {
    pub(super) fn new(table: &OpenTable, rows: &[RawRow], now: i64) -> Result<EncodedRows> {
        let count = rows.len() * (1 + table.lookups.len());
        let operations = Operations::with_capacity(count, rows.len() * ROW_BYTES_GUESS);
        let mut encoded = EncodedRows { operations, windows: Vec::new(), written: Written::default() };
        for row in rows {
            match table.expires_after(row, now) {
                Some(expires) => encoded.add(table, row, expires)?,
                None => encoded.written.expired += 1,
            }
        }
        encoded.operations.sort();
        Ok(encoded)
    }

    fn add(&mut self, table: &OpenTable, row: &RawRow, expires: i64) -> Result<()> {
        let window = table.window_of(row);
        if !self.windows.contains(&window) {
            self.windows.push(window);
        }
        let incomplete = || table.damaged("a row without its key reached the store");
        for lookup in &table.lookups {
            let key = |out: &mut Vec<u8>| lookup.push_key_of_row(out, row).ok_or_else(incomplete);
            self.operations.put(place_of(window, true), key, |_, _| {})?;
        }
        let key = |out: &mut Vec<u8>| table.rows.push_key_of_row(out, row).ok_or_else(incomplete);
        self.operations.put(place_of(window, false), key, |out, key_start| {
            row::encode_after_key(out, key_start, expires, table.stored_columns(row), &[]);
        })?;
        self.written.rows += 1;
        Ok(())
    }

    /// The windows that its rows lie in.
    pub(super) fn windows(&self) -> &[i64] {
        &self.windows
    }

    pub(super) fn operations(&self) -> &Operations {
        &self.operations
    }
}
