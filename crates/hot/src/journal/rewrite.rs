//! Rewriting: a base file with the state of one moment replaces the history that led to it.
//!
//! 1. `begin`: under all shard locks a mark is set in the buffer. What is appended later goes to a new increment.
//! 2. The writer reaches the mark: syncs the old increment, creates the new one, names it in the manifest as the last.
//! 3. The caller writes the state as it was at the mark into the base, which no manifest names yet.
//! 4. `finish`: the base is synced, then one manifest names base and new increment; then the old files go.
//!
//! A crash before the last manifest leaves the old files and an unnamed base, which the next start removes; a crash
//! after it leaves old files that nobody names. Both load to the same state.

use super::files::{OpenFile, append_all};
use super::format::{FileHeader, FileKind, Line, RecordHeader, encode_command, new_salt};
use super::manifest::{Entry, Manifest};
use super::shared::{Layout, Shared, Switch};
use super::{create_file, folder_error};
use crate::command::Write;
use crate::error::{Error, Result};
use crate::limits::{JOURNAL_BASE_RECORD_BYTES, JOURNAL_BASE_SYNC_BYTES};
use parking_lot::MutexGuard;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A base file in the making. Dropped without [`finish`](Rewrite::finish) it leaves everything as it was.
pub struct Rewrite {
    shared: Arc<Shared>,
    /// The increment that follows the base. The base has the same number.
    increment: u64,
    after: u64,
    salt: u32,
    base: Entry,
    file: Option<Box<dyn OpenFile>>,
    /// The base may exist, and no manifest can name it.
    leftover: bool,
    /// Commands of the record that is being filled.
    body: Vec<u8>,
    records: u64,
    bytes: u64,
    unsynced: usize,
    failed: Option<Error>,
    finished: bool,
}

/// See [`Journal::begin_rewrite`](super::Journal::begin_rewrite).
pub(super) fn begin(shared: &Arc<Shared>) -> Result<Rewrite> {
    let mut buffer = shared.buffer.lock();
    if let Some(stopped) = shared.stopped.get() {
        return Err(stopped.clone());
    }
    if buffer.closing {
        return Err(Error::Closed);
    }
    if buffer.switch.is_some() || shared.rewriting.swap(true, Ordering::AcqRel) {
        return Err(busy());
    }
    let number = shared.next_number.fetch_add(1, Ordering::AcqRel);
    let (after, salt) = (buffer.sequence, new_salt());
    buffer.switch = Some(Switch { bytes_before: buffer.bytes.len(), after, number, salt });
    buffer.salt = salt;
    shared.wake_writer(buffer, true);
    Ok(Rewrite {
        shared: Arc::clone(shared),
        increment: number,
        after,
        salt: new_salt(),
        base: Entry::ours(FileKind::Base, number),
        file: None,
        leftover: false,
        body: Vec::new(),
        records: 0,
        bytes: 0,
        unsynced: 0,
        failed: None,
        finished: false,
    })
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
        let mut layout = self.await_switch(&shared)?;
        let old = self.take_over(&mut layout)?;
        self.remove_old(&layout, old);
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

    /// Waits until the writer has named the new increment in the manifest.
    fn await_switch<'a>(&self, shared: &'a Shared) -> Result<MutexGuard<'a, Layout>> {
        let mut layout = shared.layout.lock();
        loop {
            if let Some(stopped) = shared.stopped.get() {
                return Err(stopped.clone());
            }
            if layout.current >= self.increment {
                return Ok(layout);
            }
            shared.switched.wait(&mut layout);
        }
    }

    /// Stores the manifest that begins with our base; answers the files it no longer names.
    fn take_over(&mut self, layout: &mut Layout) -> Result<Vec<Entry>> {
        let follows = |entry: &Entry| entry.kind == FileKind::Increment && entry.number >= self.increment;
        let (new, old): (Vec<_>, Vec<_>) = layout.manifest.entries.iter().cloned().partition(follows);
        let mut manifest = Manifest { entries: vec![self.base.clone()] };
        manifest.entries.extend(new);
        self.leftover = false;
        if let Err(error) = manifest.store(&*self.shared.files, &self.shared.dir) {
            // Which of the two manifests survives is unknown, so neither set of files may be touched again.
            self.shared.stopped_by(format!("cannot replace the manifest: {error}"));
            return Err(folder_error(&self.shared.dir, error));
        }
        layout.manifest = manifest;
        Ok(old)
    }

    fn remove_old(&mut self, layout: &Layout, old: Vec<Entry>) {
        for entry in old {
            if let Err(error) = self.shared.files.remove(&self.shared.dir.join(&entry.name)) {
                tracing::warn!(name = %entry.name, %error, "cannot remove a file that the journal no longer needs");
            }
        }
        self.finished = true;
        self.shared.rewrite_above.store(self.shared.rewrite_bytes_min, Ordering::Relaxed);
        self.shared.base_bytes.store(self.bytes, Ordering::Relaxed);
        self.shared.disk_bytes.fetch_add(self.bytes, Ordering::Relaxed);
        self.shared.disk_bytes.fetch_sub(layout.bytes_at_switch, Ordering::Relaxed);
    }
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        // Under the lock that closing takes: once the folder is free, the name may be another journal's.
        let layout = self.shared.layout.lock();
        if self.leftover && layout.lock.is_some() {
            let _ = self.shared.files.remove(&self.shared.dir.join(&self.base.name));
        }
        if !self.finished {
            let above = self.shared.disk_bytes.load(Ordering::Relaxed) + self.shared.rewrite_bytes_min;
            self.shared.rewrite_above.store(above, Ordering::Relaxed);
        }
        self.shared.rewriting.store(false, Ordering::Release);
    }
}
