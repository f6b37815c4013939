//! The rewrite: a base file with the state of one moment replaces the history before it.
//!
//! 1. `prepare`: a new increment is created and added to the manifest, while transactions still go to the
//!    old one.
//! 2. `cut`: under all shard locks transactions switch to the new increment. This changes only memory. The
//!    writer syncs the old increment before anything in the new one counts as synced.
//! 3. The caller writes the state at the cut into the base, which no manifest names yet.
//! 4. `finish`: the base is synced, a manifest with the base and the new increment is stored, then old files
//!    are removed.
//!
//! A crash before the last manifest leaves the old files and an unnamed base without an end; a crash after
//! it leaves old files that no manifest names. Both load to the same state.

use super::active_file::ActiveFile;
use super::files::{OpenFile, append_all};
use super::format::{FileHeader, FileKind, Line, RecordHeader, encode_command, new_salt};
use super::manifest::{Entry, Manifest};
use super::state::{FolderState, JournalState, catch_panic};
use super::{create_file, folder_error};
use crate::command::Write;
use crate::error::{Error, Result};
use crate::limits::{JOURNAL_BASE_RECORD_BYTES, JOURNAL_BASE_SYNC_BYTES};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A rewrite whose files are ready. Dropped without [`cut`](PreparedRewrite::cut) it leaves an empty
/// increment.
pub struct PreparedRewrite {
    running: RewriteGuard,
    tail: ActiveFile,
    number: u64,
}

/// There is one rewrite at a time.
struct RewriteGuard {
    state: Arc<JournalState>,
    finished: bool,
}

impl Drop for RewriteGuard {
    fn drop(&mut self) {
        if !self.finished {
            // Wherever it failed: it is tried again when the files have grown further.
            let above = self.state.log.lock().disk_bytes() + self.state.rewrite_bytes_min;
            self.state.rewrite_above.store(above, Ordering::Relaxed);
        }
        self.state.rewriting.store(false, Ordering::Release);
    }
}

/// A base file in the making. Dropped without [`finish`](Rewrite::finish) it leaves everything as it was.
pub struct Rewrite {
    state: Arc<JournalState>,
    /// The increment that follows the base. The base has the same number.
    increment: u64,
    after: u64,
    salt: u32,
    base: Entry,
    /// Bytes of all files that the base replaces.
    bytes_before: u64,
    file: Option<Box<dyn OpenFile>>,
    /// The base may exist, and no manifest can name it.
    leftover: bool,
    /// Commands of the record that is being filled.
    body: Vec<u8>,
    records: u64,
    bytes: u64,
    unsynced: usize,
    failed: Option<Error>,
    /// Ends with the rewrite.
    running: RewriteGuard,
}

/// Begins a new increment for what is committed during the rewrite; see [`Journal::prepare_rewrite`](super::Journal::prepare_rewrite).
pub(super) fn prepare(state: &Arc<JournalState>) -> Result<PreparedRewrite> {
    state.takes_records(&state.log.lock())?;
    if state.rewriting.swap(true, Ordering::AcqRel) {
        return Err(busy());
    }
    let running = RewriteGuard { state: Arc::clone(state), finished: false };
    let number = state.next_number.fetch_add(1, Ordering::AcqRel);
    let entry = Entry::ours(FileKind::Increment, number);
    let path = state.dir.join(&entry.name);
    let mut layout = state.layout.lock();
    if layout.lock.is_none() {
        return Err(Error::Closed);
    }
    let mut manifest = layout.manifest.clone();
    manifest.entries.push(entry.clone());
    let tail = begin_increment(state, &entry, &manifest).inspect_err(|_| {
        // No manifest can name it.
        let _ = state.files.remove(&path);
    })?;
    // Should this fail, either manifest may survive. The file is empty and stays, so both are true.
    Manifest::publish(&*state.files, &state.dir).map_err(|error| folder_error(&path, error))?;
    layout.manifest = manifest;
    drop(layout);
    Ok(PreparedRewrite { running, tail, number })
}

/// Makes an increment with space in it, and a manifest that names it and does not count yet.
fn begin_increment(state: &JournalState, entry: &Entry, manifest: &Manifest) -> Result<ActiveFile> {
    let (kind, number, salt) = (entry.kind, entry.number, new_salt());
    // What is synced is proved: a start that finds less in the files before is looking at damage.
    let header = FileHeader { kind, number, after: state.synced.load(Ordering::Acquire), salt };
    let path = state.dir.join(&entry.name);
    let failed = |error| folder_error(&path, error);
    let end = create_file(&*state.files, &state.dir, entry, header)?.size().map_err(failed)?;
    let mut tail = ActiveFile::new(state.files.open_log(&path).map_err(failed)?, end, salt);
    tail.reserve(0).map_err(failed)?;
    manifest.stage(&*state.files, &state.dir).map_err(failed)?;
    Ok(tail)
}

impl PreparedRewrite {
    /// Turns transactions to the new increment. Called while none can be appended (all shard locks held).
    pub fn cut(self) -> Result<Rewrite> {
        let PreparedRewrite { running, tail, number } = self;
        let state = Arc::clone(&running.state);
        let mut log = state.log.lock();
        if let Some(stopped) = state.stopped.get() {
            return Err(stopped.clone());
        }
        if log.closing {
            return Err(Error::Closed);
        }
        let (after, bytes_before) = (log.sequence, log.disk_bytes());
        let old = std::mem::replace(&mut log.tail, tail);
        log.retired.push(old);
        log.other_bytes = bytes_before;
        state.wake_writer(log, true);
        Ok(Rewrite {
            state,
            increment: number,
            after,
            salt: new_salt(),
            base: Entry::ours(FileKind::Base, number),
            bytes_before,
            file: None,
            leftover: false,
            body: Vec::new(),
            records: 0,
            bytes: 0,
            unsynced: 0,
            failed: None,
            running,
        })
    }
}

fn busy() -> Error {
    Error::Unavailable {
        backend: "journal".to_owned(),
        reason: "a rewrite is running".to_owned(),
        advice: "call again when it is finished",
    }
}

impl Rewrite {
    /// Writes the commands that make one key what it was when the rewrite began.
    pub fn write(&mut self, key: &[u8], writes: &[Write]) -> Result<()> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        for write in writes {
            encode_command(&mut self.body, key, write);
        }
        if self.body.len() >= JOURNAL_BASE_RECORD_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends the base and lets it take the place of what came before. Blocks until the new files are durable.
    pub fn finish(mut self) -> Result<()> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        self.flush()?;
        let mut line = Vec::new();
        Line::End(self.records).encode(&mut line, self.salt);
        self.append(&line)?;
        self.sync()?;
        let state = Arc::clone(&self.state);
        let mut layout = state.layout.lock();
        if let Some(stopped) = state.stopped.get() {
            return Err(stopped.clone());
        }
        let old = self.take_over(&mut layout)?;
        self.remove_old(old);
        Ok(())
    }

    /// Puts the gathered commands under a checksum and writes them.
    fn flush(&mut self) -> Result<()> {
        if self.body.is_empty() {
            return self.open();
        }
        self.records += 1;
        let mut record = Vec::with_capacity(self.body.len() + 64);
        RecordHeader::encode(
            self.records,
            self.body.len(),
            crc32c::crc32c(&self.body),
            self.salt,
            &mut record,
        );
        record.append(&mut self.body);
        self.append(&record)
    }

    fn open(&mut self) -> Result<()> {
        if self.file.is_none() {
            let header = FileHeader {
                kind: FileKind::Base,
                number: self.base.number,
                after: self.after,
                salt: self.salt,
            };
            self.leftover = true;
            let file = create_file(&*self.state.files, &self.state.dir, &self.base, header)?;
            self.bytes = file.size().map_err(|error| self.base_error(error))?;
            self.file = Some(file);
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let appended = self.open().and_then(|()| {
            let file = self.file.as_mut().expect("open has just put it there");
            append_all(&mut **file, bytes).map_err(|error| self.base_error(error))
        });
        if let Err(error) = appended {
            // A base with a hole must never be finished.
            self.failed = Some(error.clone());
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        self.unsynced += bytes.len();
        // In portions: one sync of gigabytes would hold up the syncs of the increment.
        if self.unsynced >= JOURNAL_BASE_SYNC_BYTES { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<()> {
        self.unsynced = 0;
        let synced = self.file.as_mut().map_or(Ok(()), |file| file.sync());
        synced.map_err(|error| {
            let error = self.base_error(error);
            self.failed = Some(error.clone());
            error
        })
    }

    fn base_error(&self, error: io::Error) -> Error {
        folder_error(&self.state.dir.join(&self.base.name), error)
    }

    /// Stores the manifest that begins with our base; answers the files it no longer names.
    fn take_over(&mut self, layout: &mut FolderState) -> Result<Vec<Entry>> {
        let follows = |entry: &Entry| entry.kind == FileKind::Increment && entry.number >= self.increment;
        let (new, old): (Vec<_>, Vec<_>) = layout.manifest.entries.iter().cloned().partition(follows);
        let mut manifest = Manifest { entries: vec![self.base.clone()], ..Manifest::default() };
        manifest.entries.extend(new);
        self.leftover = false;
        // Should this fail, either manifest may survive. Both lead to the same state as long as the files of
        // both stay, and both end with the increment that is being written.
        manifest
            .store(&*self.state.files, &self.state.dir)
            .map_err(|error| folder_error(&self.state.dir, error))?;
        layout.manifest = manifest;
        Ok(old)
    }

    fn remove_old(&mut self, old: Vec<Entry>) {
        for entry in old {
            if let Err(error) = self.state.files.remove(&self.state.dir.join(&entry.name)) {
                let name = entry.name;
                catch_panic(
                    || tracing::warn!(%name, %error, "cannot remove a file that the journal no longer needs"),
                );
            }
        }
        self.running.finished = true;
        self.state.rewrite_above.store(self.state.rewrite_bytes_min, Ordering::Relaxed);
        self.state.base_bytes.store(self.bytes, Ordering::Relaxed);
        let mut log = self.state.log.lock();
        log.other_bytes = log.other_bytes - self.bytes_before + self.bytes;
    }
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        // Under the lock that closing takes: once the folder is free, the name may be another journal's.
        let layout = self.state.layout.lock();
        if self.leftover && layout.lock.is_some() {
            let _ = self.state.files.remove(&self.state.dir.join(&self.base.name));
        }
    }
}
