//! The writer: one thread that makes every change, behind the queue.
//!
//! The thread takes what waits, up to a number of rows, and commits it together. Calls that read before they
//! write (upsert, delete, versioned and conditional writes) get a commit of their own, after what came before them. After
//! each commit it writes the ledger, then it answers. Once a second it syncs, looks at the free space, and once a
//! minute it drops what has expired. It ends when the store is closed or dropped. An error of a commit or sync
//! ends writing: what the store below has on disk is not certain then.

use super::commit::Commit;
use super::encode::EncodedRows;
use super::flush::flush;
use super::ledger::Ledger;
use super::open::CLEAN_NAME;
use super::options::{Durability, Options};
use super::queue::{Change, Counters, Outcome, Request, WriterHandle};
use super::table::Window;
use super::totals::{Folds, OpenTotals};
use super::{Shared, retention, store_error};
use crate::contract::Write;
use crate::error::{Error, Result};
use crate::limits::{
    COMMIT_ROWS_MAX, FREE_CHECK_EVERY, FREE_CHECKS_PER_MIN, RETENTION_EVERY, STORE_MEMTABLE_BYTES,
    SYNC_EVERY, TOTALS_CACHE_ROWS_MAX,
};
use fjall::{Keyspace, PersistMode};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

/// Starts the writer of a store.
pub(super) fn start(
    shared: Arc<Shared>,
    ledger: Ledger,
    catalog: Keyspace,
    options: &Options,
) -> Result<WriterHandle> {
    let (durability, free_bytes_min) = (options.durability, options.free_bytes_min);
    WriterHandle::start(options, move |requests, counters| {
        let writer = Writer {
            ledger,
            catalog,
            counters,
            durability,
            free_bytes_min,
            stopped: None,
            full: None,
            sweeps: retention::Sweeps::default(),
            merges: HashMap::new(),
            unsynced: false,
            bytes_since_rotation: 0,
            bytes_since_check: 0,
            shared,
        };
        writer.run(requests)
    })
}

struct Writer {
    ledger: Ledger,
    catalog: Keyspace,
    counters: Arc<Counters>,
    durability: Durability,
    free_bytes_min: u64,
    stopped: Option<Error>,
    full: Option<Error>,
    sweeps: retention::Sweeps,
    /// Where the merging of closed sources goes on; `None` = all rows were visited.
    merges: HashMap<&'static str, Option<Vec<u8>>>,
    unsynced: bool,
    bytes_since_rotation: u64,
    bytes_since_check: u64,
    /// Has the folder's lock, so it is released last.
    shared: Arc<Shared>,
}

impl Writer {
    fn run(mut self, requests: &Receiver<Request>) -> Result<()> {
        let (mut synced, mut retained) = (Instant::now(), Instant::now());
        let mut checked = None;
        loop {
            // Also after a part of the space that must stay free was written: a second can be long.
            if checked.is_none_or(|at: Instant| at.elapsed() >= FREE_CHECK_EVERY)
                || self.bytes_since_check > self.free_bytes_min / FREE_CHECKS_PER_MIN
            {
                self.full = self.check_free_space().err();
                (checked, self.bytes_since_check) = (Some(Instant::now()), 0);
            }
            let first = match requests.recv_timeout(SYNC_EVERY.saturating_sub(synced.elapsed())) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            if let Some(first) = first
                && let Some(closed) = self.serve(first, requests)
            {
                return closed;
            }
            if synced.elapsed() >= SYNC_EVERY {
                self.sync();
                synced = Instant::now();
            }
            if retained.elapsed() >= RETENTION_EVERY && self.stopped.is_none() {
                if let Err(error) = self.retain() {
                    tracing::warn!(%error, "retention failed");
                }
                retained = Instant::now();
            }
        }
    }

    /// Serves a request and what waits behind it. `Some` = the store was closed.
    fn serve(&mut self, first: Request, requests: &Receiver<Request>) -> Option<Result<()>> {
        let (mut next, mut group, mut rows) = (Some(first), Vec::new(), 0);
        while let Some(request) = next.take() {
            if matches!(request.change, Change::Close) {
                self.commit_group(std::mem::take(&mut group));
                return Some(self.shut_down());
            }
            if !request.change.is_blind() {
                self.commit_group(std::mem::take(&mut group));
                self.commit_group(vec![request]);
                return None;
            }
            rows += request.size.rows;
            group.push(request);
            if rows < COMMIT_ROWS_MAX {
                next = requests.try_recv().ok();
            }
        }
        self.commit_group(group);
        None
    }

    fn commit_group(&mut self, group: Vec<Request>) {
        if group.is_empty() {
            return;
        }
        let (mut changes, mut callers) = (Vec::with_capacity(group.len()), Vec::with_capacity(group.len()));
        for Request { change, size, reply, places } in group {
            changes.push(change);
            callers.push((reply, size, places));
        }
        let results = self.commit(changes);
        for ((reply, size, places), result) in callers.into_iter().zip(results) {
            self.counters.leave(size);
            drop(places);
            // A caller that has left does not need the reply.
            let _ = reply.send(result);
        }
    }

    /// Makes the changes and commits them: one result for each.
    fn commit(&mut self, changes: Vec<Change>) -> Vec<Result<Outcome>> {
        let count = changes.len();
        if let Some(error) = self.stopped.as_ref().or(self.full.as_ref()) {
            return (0..count).map(|_| Err(error.clone())).collect();
        }
        match changes.first() {
            Some(Change::Retain) => return vec![self.retain().map(|()| Outcome::default())],
            Some(Change::Sync) => return vec![self.sync_now().map(|()| Outcome::default())],
            _ => {}
        }
        let (shared, catalog) = (self.shared.clone(), self.catalog.clone());
        let mut commit = Commit::new(&shared, &catalog);
        let mut folds = Folds::default();
        let now = shared.ticker.now();
        let mut results = Vec::with_capacity(count);
        for change in changes {
            let (mark, fold_mark) = (commit.mark(), folds.mark());
            let result = guarded(|| make(&mut commit, &mut folds, &shared, change, now));
            let result = result.and_then(|outcome| commit.check_keys(mark).map(|()| outcome));
            if result.is_err() {
                commit.undo(mark);
                folds.undo(&fold_mark);
            }
            results.push(result);
        }
        if commit.is_empty() {
            return results;
        }
        match self.finish(commit) {
            Ok(()) => {
                folds.committed();
                self.write_totals();
                results
            }
            // Those that had failed before keep their own error.
            Err(error) => results.into_iter().map(|result| result.and(Err(error.clone()))).collect(),
        }
    }

    fn finish(&mut self, commit: Commit<'_>) -> Result<()> {
        let mode = match self.durability {
            Durability::Always => PersistMode::SyncData,
            Durability::EverySec => PersistMode::Buffer,
        };
        let rows = commit.rows as u64;
        self.bytes_since_rotation += commit.bytes();
        self.bytes_since_check += commit.bytes();
        let last = self.ledger.last();
        // What a commit that panicked has written is not certain.
        let finished = catch_unwind(AssertUnwindSafe(|| commit.finish(last, mode))).map_err(|panic| {
            Error::Stopped { reason: format!("a commit panicked: {}", panic_text(&*panic)) }
        });
        let finished = finished.and_then(|result| result.map_err(|error| store_error("a commit", &error)));
        let batch = finished.map_err(|error| self.stop(error))?;
        let noted = match self.durability {
            Durability::Always => self.ledger.committed(batch).and_then(|()| self.ledger.synced()),
            Durability::EverySec => self.ledger.committed(batch),
        };
        noted.map_err(|error| self.stop(Error::Stopped { reason: format!("LEDGER: {error}") }))?;
        self.unsynced = true;
        self.rotate_catalog();
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the rows of totals whose log has grown.
    fn write_totals(&mut self) {
        let shared = self.shared.clone();
        for totals in shared.totals.values().filter(|totals| totals.is_due()) {
            if let Err(error) = self.write_rows_of(totals) {
                tracing::warn!(%error, "the rows of totals were not written; their log has them");
            }
        }
    }

    fn write_rows_of(&mut self, totals: &OpenTotals) -> Result<()> {
        let (shared, catalog) = (self.shared.clone(), self.catalog.clone());
        let mut cache = totals.cache.write();
        let mut commit = Commit::new(&shared, &catalog);
        totals.write_rows(&mut commit, &cache);
        if !commit.is_empty() {
            self.finish(commit)?;
            cache.written();
        }
        if cache.rows() >= TOTALS_CACHE_ROWS_MAX {
            cache.clear();
        }
        Ok(())
    }

    /// Merges some rows of closed sources.
    fn merge_closed(&mut self) -> Result<()> {
        let (shared, catalog) = (self.shared.clone(), self.catalog.clone());
        for totals in shared.totals.values().filter(|totals| totals.has_closed()) {
            let from = match self.merges.remove(totals.name()) {
                Some(Some(from)) => from,
                // All rows were visited, and no source was closed since.
                Some(None) if !totals.take_newly_closed() => {
                    self.merges.insert(totals.name(), None);
                    continue;
                }
                Some(None) => Vec::new(),
                None => {
                    totals.take_newly_closed();
                    Vec::new()
                }
            };
            self.write_rows_of(totals)?;
            let mut cache = totals.cache.write();
            cache.clear();
            let mut commit = Commit::new(&shared, &catalog);
            let next = totals.merge_closed(&mut commit, &cache, from)?;
            if !commit.is_empty() {
                self.finish(commit)?;
            }
            self.merges.insert(totals.name(), next);
        }
        Ok(())
    }

    /// Every commit writes a few bytes of the catalog. Its memory would never be full, and would hold on to all of
    /// the journal, until the store below makes writers wait.
    fn rotate_catalog(&mut self) {
        if self.bytes_since_rotation < STORE_MEMTABLE_BYTES {
            return;
        }
        self.bytes_since_rotation = 0;
        if let Err(error) = self.catalog.rotate_memtable() {
            tracing::warn!(?error, "the catalog's memory was not written to a file; it stays in the journal");
        }
    }

    /// Ends writing for good; the first error stays the reason.
    fn stop(&mut self, error: Error) -> Error {
        tracing::error!(%error, "the history store takes no more writes");
        self.stopped.get_or_insert(error).clone()
    }

    fn sync(&mut self) {
        if !self.unsynced || self.stopped.is_some() {
            return;
        }
        if let Err(error) = self.sync_all() {
            self.stop(error);
        }
    }

    /// Makes what was committed durable, if it is not.
    fn sync_now(&mut self) -> Result<()> {
        if self.unsynced { self.sync_all().map_err(|error| self.stop(error)) } else { Ok(()) }
    }

    fn sync_all(&mut self) -> Result<()> {
        let persisted = self.shared.database.persist(PersistMode::SyncData);
        persisted.map_err(|error| store_error("a sync", &error))?;
        let noted = self.ledger.synced();
        noted.map_err(|error| Error::Stopped { reason: format!("LEDGER: {error}") })?;
        self.unsynced = false;
        Ok(())
    }

    fn retain(&mut self) -> Result<()> {
        guarded(|| {
            self.drop_expired()?;
            self.merge_closed()
        })
    }

    fn drop_expired(&mut self) -> Result<()> {
        let (shared, catalog) = (self.shared.clone(), self.catalog.clone());
        let mut sweeps = std::mem::take(&mut self.sweeps);
        let now = shared.ticker.now();
        let mut commit = Commit::new(&shared, &catalog);
        let found = retention::collect(&shared, &mut commit, &mut sweeps, now);
        self.sweeps = sweeps;
        let windows = found?;
        if !commit.is_empty() {
            self.finish(commit)?;
        }
        // The files of a window are removed at once: a power failure must not leave a catalog that still names it.
        if !windows.is_empty() {
            self.sync_all().map_err(|error| self.stop(error))?;
        }
        self.counters.windows_dropped.fetch_add(windows.len() as u64, Ordering::Relaxed);
        for keyspace in windows.into_iter().flat_map(Window::keyspaces) {
            let name = keyspace.name().to_string();
            let deleted = shared.database.delete_keyspace(keyspace);
            deleted.map_err(|error| store_error(&name, &error))?;
        }
        Ok(())
    }

    fn shut_down(&mut self) -> Result<()> {
        guarded(|| self.write_everything())
    }

    /// Writes what is in memory to files, so that the next open has no journal to read.
    fn write_everything(&mut self) -> Result<()> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        // First, because it shows whether the store below has failed.
        self.sync_all()?;
        let shared = self.shared.clone();
        shared.totals.values().try_for_each(|totals| self.write_rows_of(totals))?;
        let windows = self.shared.tables.values().flat_map(|table| {
            let windows = table.windows.read();
            windows.values().cloned().flat_map(Window::keyspaces).collect::<Vec<_>>()
        });
        let totals = self.shared.totals.values().map(|totals| totals.keyspace.clone());
        let keyspaces: Vec<_> = windows.chain(totals).chain([self.catalog.clone()]).collect();
        flush(&self.shared.database, &keyspaces)?;
        self.sync_all()?;
        let clean = self.shared.folder.join(CLEAN_NAME);
        std::fs::write(&clean, b"").map_err(|error| super::ledger::folder_error(&clean, &error))
    }

    fn check_free_space(&self) -> Result<()> {
        let folder = &self.shared.folder;
        let Ok(space) = rustix::fs::statvfs(folder) else { return Ok(()) };
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        if free_bytes >= self.free_bytes_min {
            return Ok(());
        }
        Err(Error::DiskFull {
            path: folder.display().to_string(),
            free_bytes,
            min_bytes: self.free_bytes_min,
        })
    }
}

/// Runs a part of the writer's work whose panic leaves nothing behind.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(Error::Internal { reason: panic_text(&*panic) }))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a text").to_owned()
}

fn make<'s>(
    commit: &mut Commit<'_>,
    folds: &mut Folds<'s>,
    shared: &'s Shared,
    change: Change,
    now: i64,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    match change {
        Change::Insert { table, rows } => outcome.written = commit.insert(shared.table(table)?, &rows)?,
        Change::Write { table, write } => {
            let table = shared.table(table)?;
            outcome.written = match &write {
                Write::Insert(rows) => commit.insert(table, &EncodedRows::new(table, rows, now)?)?,
                Write::Upsert(rows) => commit.upsert(table, rows, now)?,
                Write::Delete(key) => commit.delete(table, key)?,
                Write::Replace { version, removed, rows } => {
                    commit.replace(table, *version, removed, rows, now)?
                }
            };
        }
        Change::WriteIf { table, write } => {
            outcome.applied = Some(commit.write_if(shared.table(table)?, &write, now)?);
        }
        Change::Fold(all) => {
            for fold in all {
                let folded = folds.add(commit, shared.totals(fold.totals)?, &fold)?;
                outcome.folded.added += folded.added;
                outcome.folded.repeated += folded.repeated;
            }
        }
        Change::CloseSource { totals, source } => folds.close(commit, shared.totals(totals)?, &source),
        Change::Retain | Change::Sync | Change::Close => {}
    }
    Ok(outcome)
}
