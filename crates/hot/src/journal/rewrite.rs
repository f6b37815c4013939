//! Rewriting: a base file with the state of one moment replaces the history that led to it.
//!
//! 1. `prepare`: a new increment is created and named in the manifest as the last one, while the old one is written on.
//! 2. `cut`: under all shard locks transactions turn to the new increment. Nothing but memory is touched. The writer
//!    syncs the old one before anything in the new one counts as synced.
//! 3. The caller writes the state as it was at the cut into the base, which no manifest names yet.
//! 4. `finish`: the base is synced, then one manifest names base and new increment; then the old files go.
//!
//! A crash before the last manifest leaves the old files and an unnamed base without an end; a crash after it leaves
//! old files that no manifest names. Both load to the same state.

use super::files::{OpenFile, append_all};
use super::format::{FileHeader, FileKind, Line, RecordHeader, encode_command, new_salt};
use super::manifest::{Entry, Manifest};
use super::shared::{Layout, Shared, quietly};
use super::tail::Tail;
use super::{create_file, folder_error};
use crate::command::Write;
use crate::error::{Error, Result};
use crate::limits::{JOURNAL_BASE_RECORD_BYTES, JOURNAL_BASE_SYNC_BYTES};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A rewrite whose files are ready. Dropped without [`cut`](Prepared::cut) it leaves an empty increment.
pub struct Prepared {
    running: Running,
    tail: Tail,
    number: u64,
}

/// There is one rewrite at a time.
struct Running {
    shared: Arc<Shared>,
    finished: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished {
            // Wherever it failed: it is tried again when the files have grown further.
            let above = self.shared.log.lock().disk_bytes() + self.shared.rewrite_bytes_min;
            self.shared.rewrite_above.store(above, Ordering::Relaxed);
        }
        self.shared.rewriting.store(false, Ordering::Release);
    }
}

/// A base file in the making. Dropped without [`finish`](Rewrite::finish) it leaves everything as it was.
pub struct Rewrite {
    shared: Arc<Shared>,
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
    running: Running,
}

/// See [`Journal::prepare_rewrite`](super::Journal::prepare_rewrite).
pub(super) fn prepare(shared: &Arc<Shared>) -> Result<Prepared> {
    shared.takes_records(&shared.log.lock())?;
    if shared.rewriting.swap(true, Ordering::AcqRel) {
        return Err(busy());
    }
    let running = Running { shared: Arc::clone(shared), finished: false };
    let number = shared.next_number.fetch_add(1, Ordering::AcqRel);
    let entry = Entry::ours(FileKind::Increment, number);
    let path = shared.dir.join(&entry.name);
    let mut layout = shared.layout.lock();
    if layout.lock.is_none() {
        return Err(Error::Closed);
    }
    let mut manifest = layout.manifest.clone();
    manifest.entries.push(entry.clone());
    let tail = begin_increment(shared, &entry, &manifest).inspect_err(|_| {
        // No manifest can name it.
        let _ = shared.files.remove(&path);
    })?;
    // Should this fail, either manifest may survive. The file is empty and stays, so both are true.
    Manifest::publish(&*shared.files, &shared.dir).map_err(|error| folder_error(&path, error))?;
    layout.manifest = manifest;
    drop(layout);
    Ok(Prepared { running, tail, number })
}

/// Makes an increment with space in it, and a manifest that names it and does not count yet.
fn begin_increment(shared: &Shared, entry: &Entry, manifest: &Manifest) -> Result<Tail> {
    let (kind, number, salt) = (entry.kind, entry.number, new_salt());
    // What is synced is proved: a start that finds less in the files before is looking at damage.
    let header = FileHeader { kind, number, after: shared.synced.load(Ordering::Acquire), salt };
    let path = shared.dir.join(&entry.name);
    let failed = |error| folder_error(&path, error);
    let end = create_file(&*shared.files, &shared.dir, entry, header)?.size().map_err(failed)?;
    let mut tail = Tail::new(shared.files.open_log(&path).map_err(failed)?, end, salt);
    tail.reserve(0).map_err(failed)?;
    manifest.stage(&*shared.files, &shared.dir).map_err(failed)?;
    Ok(tail)
}

impl Prepared {
    /// Turns transactions to the new increment. Called while none can be appended (all shard locks held).
    pub fn cut(self) -> Result<Rewrite> {
        let Prepared { running, tail, number } = self;
        let shared = Arc::clone(&running.shared);
        let mut log = shared.log.lock();
        if let Some(stopped) = shared.stopped.get() {
            return Err(stopped.clone());
        }
        if log.closing {
            return Err(Error::Closed);
        }
        let (after, bytes_before) = (log.sequence, log.disk_bytes());
        let old = std::mem::replace(&mut log.tail, tail);
        log.retired.push(old);
        log.other_bytes = bytes_before;
        shared.wake_writer(log, true);
        Ok(Rewrite {
            shared,
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
        let shared = Arc::clone(&self.shared);
        let mut layout = shared.layout.lock();
        if let Some(stopped) = shared.stopped.get() {
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
            let file = create_file(&*self.shared.files, &self.shared.dir, &self.base, header)?;
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
        folder_error(&self.shared.dir.join(&self.base.name), error)
    }

    /// Stores the manifest that begins with our base; answers the files it no longer names.
    fn take_over(&mut self, layout: &mut Layout) -> Result<Vec<Entry>> {
        let follows = |entry: &Entry| entry.kind == FileKind::Increment && entry.number >= self.increment;
        let (new, old): (Vec<_>, Vec<_>) = layout.manifest.entries.iter().cloned().partition(follows);
        let mut manifest = Manifest { entries: vec![self.base.clone()], ..Manifest::default() };
        manifest.entries.extend(new);
        self.leftover = false;
        // Should this fail, either manifest may survive. Both lead to the same state as long as the files of both
        // stay, and both end with the increment that is being written.
        manifest
            .store(&*self.shared.files, &self.shared.dir)
            .map_err(|error| folder_error(&self.shared.dir, error))?;
        layout.manifest = manifest;
        Ok(old)
    }

    fn remove_old(&mut self, old: Vec<Entry>) {
        for entry in old {
            if let Err(error) = self.shared.files.remove(&self.shared.dir.join(&entry.name)) {
                let name = entry.name;
                quietly(
                    || tracing::warn!(%name, %error, "cannot remove a file that the journal no longer needs"),
                );
            }
        }
        self.running.finished = true;
        self.shared.rewrite_above.store(self.shared.rewrite_bytes_min, Ordering::Relaxed);
        self.shared.base_bytes.store(self.bytes, Ordering::Relaxed);
        let mut log = self.shared.log.lock();
        log.other_bytes = log.other_bytes - self.bytes_before + self.bytes;
    }
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        // Under the lock that closing takes: once the folder is free, the name may be another journal's.
        let layout = self.shared.layout.lock();
        if self.leftover && layout.lock.is_some() {
            let _ = self.shared.files.remove(&self.shared.dir.join(&self.base.name));
        }
    }
}
