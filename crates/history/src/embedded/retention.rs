//! Retention: windows whose rows have all expired are dropped whole; other expired rows are removed in passes.

use super::commit::Commit;
use super::row::Stored;
use super::table::{OpenTable, Window};
use super::{Shared, store_error};
use crate::error::Result;
use crate::limits::{COMMIT_ROWS_MAX, RETENTION_ROWS_PER_PASS_MAX};
use emberkeep_schema::{RowTtl, Writes};
use fjall::Database;
use std::collections::HashMap;
use std::ops::Bound;

/// Where the last pass over each table ended.
pub(super) type Sweeps = HashMap<&'static str, Vec<u8>>;

/// Puts into the commit what has expired, and returns the windows to delete after it.
pub(super) fn collect(
    shared: &Shared,
    commit: &mut Commit<'_>,
    sweeps: &mut Sweeps,
    now: i64,
) -> Result<Vec<Window>> {
    let mut dropped = Vec::new();
    for table in shared.tables.values() {
        let name = table.declaration.name;
        if let Some((_, length)) = table.window {
            let ended = |window: i64| (window + 1).saturating_mul(length).saturating_add(table.ttl_ms) <= now;
            let mut windows = table.windows.write();
            while let Some(window) = windows.keys().next().copied().filter(|window| ended(*window)) {
                commit.remove_window(name, window);
                dropped.extend(windows.remove(&window));
            }
        } else if (matches!(table.declaration.ttl, RowTtl::Written { .. })
            || table.declaration.writes == Writes::Versioned)
            && let Some(window) = table.existing(0)
        {
            sweep(commit, table, &window, sweeps, now)?;
        }
    }
    Ok(dropped)
}

/// Removes expired rows among the next ones of a table; the following pass goes on after them.
fn sweep(
    commit: &mut Commit<'_>,
    table: &OpenTable,
    window: &Window,
    sweeps: &mut Sweeps,
    now: i64,
) -> Result<()> {
    let name = table.declaration.name;
    let start = sweeps.remove(name).map_or(Bound::Unbounded, Bound::Excluded);
    let rows = window.rows.range((start, Bound::Excluded(vec![1]))).take(RETENTION_ROWS_PER_PASS_MAX);
    let (mut last, mut count) = (None, 0);
    for guard in rows {
        let (key, bytes) = guard.into_inner().map_err(|error| store_error(name, &error))?;
        // A row that cannot be read stays for its readers, who are told of it.
        if Stored::read(&key, &bytes).is_some_and(|stored| stored.is_expired(now)) {
            commit.remove_expired(table, window, &key, &bytes);
        }
        count += 1;
        last = Some(key.to_vec());
    }
    if count == RETENTION_ROWS_PER_PASS_MAX
        && let Some(last) = last
    {
        sweeps.insert(name, last);
    }
    Ok(())
}

/// Writes the entries of a lookup that an older declaration did not have. Repeated if the process ends before
/// the catalog has the lookup: entries overwrite themselves.
pub(super) fn build_lookup(database: &Database, table: &OpenTable, lookup: &str) -> Result<()> {
    let (name, order) = (table.declaration.name, table.order(Some(lookup)));
    let failed = |error: fjall::Error| store_error(name, &error);
    for window in table.windows_between(i64::MIN, i64::MAX) {
        let Some(lookups) = &window.lookups else { continue };
        let (mut batch, mut count) = (database.batch(), 0);
        for guard in window.rows.prefix([table.rows.first_byte]) {
            let (key, bytes) = guard.into_inner().map_err(failed)?;
            // Expired rows are left out only when they are read.
            let row = table.read_row(&key, &bytes, i64::MIN);
            // One row that cannot be read must not keep the folder from being opened.
            let row =
                row.inspect_err(|error| tracing::warn!(%error, lookup, "a row is missing from its lookup"));
            if let Some(entry) = row.ok().flatten().and_then(|row| order.key_of_row(&row)) {
                batch.insert(lookups, entry, []);
                count += 1;
            }
            if count == COMMIT_ROWS_MAX {
                std::mem::replace(&mut batch, database.batch()).commit().map_err(failed)?;
                count = 0;
            }
        }
        batch.commit().map_err(failed)?;
    }
    Ok(())
}
