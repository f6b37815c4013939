//! The thread that writes: takes the whole buffer, writes it at once, syncs when it is time.
//!
//! * `Always`: group commit. While one sync runs, the next group gathers in the buffer.
//! * `EverySec`: writes every few milliseconds or when enough has gathered, syncs once a second.
//! * `No`: writes in the same way, leaves syncing to the operating system.
//!
//! Budget: at most two buffers of memory; asleep when there is nothing to do. Ends when the journal is closed (after
//! a last write and sync) or when a write or sync fails. A failed sync is never tried again: the kernel may have
//! dropped the pages and would report success.

use super::files::{OpenFile, append_all};
use super::format::{FileHeader, FileKind, Line};
use super::manifest::Entry;
use super::shared::{Buffer, Shared, Switch};
use super::{Delivery, Durability};
use crate::limits::*;
use parking_lot::MutexGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Why writing ended.
type Reason = String;

/// The writing end of the journal. In tests it is driven by hand, turn by turn, with the time injected.
pub(super) struct Writer {
    shared: Arc<Shared>,
    file: Box<dyn OpenFile>,
    salt: u32,
    /// Last transaction in the file, on disk or not.
    written: u64,
    /// When the last sync ended, on the clock of `turn`.
    synced_at: Duration,
    /// Last transaction that was in the file at `synced_at`. Without syncs this is what grows old.
    synced: u64,
    /// Taken from the buffer; kept for its allocation.
    batch: Batch,
}

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    deliveries: Vec<Delivery>,
    switch: Option<Switch>,
    sequence: u64,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, file: Box<dyn OpenFile>, salt: u32) -> Writer {
        let written = shared.appended.load(Ordering::Acquire);
        let synced_at = Duration::ZERO;
        Writer { shared, file, salt, written, synced_at, synced: written, batch: Batch::default() }
    }

    /// The thread's body.
    pub(super) fn run(mut self) {
        // A panic here must not leave appenders and waiters hanging.
        let shared = Arc::clone(&self.shared);
        if catch_unwind(AssertUnwindSafe(|| self.work())).is_err() {
            shared.stop("its writer panicked".to_owned());
        }
    }

    fn work(&mut self) {
        let started = Instant::now();
        loop {
            let closing = self.wait(started);
            let result = self.turn(started.elapsed());
            if result.is_err() || closing {
                if result.is_ok() {
                    let _ = self.finish();
                }
                return;
            }
        }
    }

    /// Sleeps until there is something to write, to sync, or to end. Answers whether it is the end.
    fn wait(&self, started: Instant) -> bool {
        let mut buffer = self.shared.buffer.lock();
        while buffer.is_idle() {
            let now = started.elapsed();
            buffer.wake_at = 1;
            match self.sync_due() {
                Some(due) if due <= now => break,
                Some(due) => {
                    self.shared.work.wait_for(&mut buffer, due - now);
                }
                None => self.shared.work.wait(&mut buffer),
            }
        }
        if self.shared.durability != Durability::Always {
            self.gather(&mut buffer);
        }
        buffer.wake_at = usize::MAX;
        buffer.closing
    }

    /// Lets more come together, so that a write is worth its system call.
    fn gather(&self, buffer: &mut MutexGuard<'_, Buffer>) {
        let enough = JOURNAL_WRITE_BYTES_WANTED.min(self.shared.buffer_bytes_max / 2);
        if buffer.bytes.len() < enough && buffer.switch.is_none() && !buffer.closing {
            buffer.wake_at = enough;
            self.shared.work.wait_for(buffer, JOURNAL_WRITE_PAUSE);
        }
    }

    /// When the next sync (or, without syncs, the next mark) is due, if anything waits for one.
    fn sync_due(&self) -> Option<Duration> {
        let every = match self.shared.durability {
            Durability::Always => return None,
            Durability::EverySec => JOURNAL_SYNC_EVERY,
            Durability::No => JOURNAL_WRITEBACK_EXPECTED,
        };
        (self.written > self.synced).then(|| self.synced_at + every)
    }

    /// Writes what waits and syncs if it is time. After an error the journal has stopped.
    pub(super) fn turn(&mut self, now: Duration) -> Result<(), Reason> {
        if let Some(stopped) = self.shared.stopped.get() {
            return Err(stopped.to_string());
        }
        let result = self.write_and_sync(now);
        self.batch.bytes.clear();
        self.shared.in_flight.store(0, Ordering::Release);
        if let Err(reason) = &result {
            self.batch.deliveries.clear();
            self.shared.stop(reason.clone());
            return result;
        }
        for deliver in self.batch.deliveries.drain(..) {
            // A message is the caller's code; the journal outlives its panic.
            if catch_unwind(AssertUnwindSafe(deliver)).is_err() {
                tracing::error!("a message handler panicked");
            }
        }
        Ok(())
    }

    fn write_and_sync(&mut self, now: Duration) -> Result<(), Reason> {
        self.take();
        let mut bytes = std::mem::take(&mut self.batch.bytes);
        let mut rest = bytes.as_slice();
        if let Some(switch) = self.batch.switch.take() {
            let (before, after) = rest.split_at(switch.bytes_before);
            self.append(before)?;
            self.written = switch.after;
            self.switch(switch)?;
            rest = after;
        }
        self.append(rest)?;
        self.written = self.batch.sequence;
        bytes.clear();
        self.batch.bytes = bytes;
        match self.shared.durability {
            Durability::Always if self.written > self.synced => self.sync(now),
            Durability::EverySec if self.sync_due().is_some_and(|due| due <= now) => self.sync(now),
            Durability::No if self.sync_due().is_some_and(|due| due <= now) => self.mark_aged(now),
            _ => Ok(()),
        }
    }

    /// Exchanges the full buffer for an empty one.
    fn take(&mut self) {
        let mut buffer = self.shared.buffer.lock();
        std::mem::swap(&mut buffer.bytes, &mut self.batch.bytes);
        std::mem::swap(&mut buffer.deliveries, &mut self.batch.deliveries);
        self.batch.switch = buffer.switch.take();
        self.batch.sequence = buffer.sequence;
        self.shared.in_flight.store(self.batch.bytes.len() as u64, Ordering::Release);
        drop(buffer);
        self.shared.room.notify_all();
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Reason> {
        append_all(&mut *self.file, bytes).map_err(|error| format!("cannot write: {error}"))?;
        self.shared.disk_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Syncs, tells the waiters, and leaves a mark behind what is now safe.
    fn sync(&mut self, now: Duration) -> Result<(), Reason> {
        self.file.sync().map_err(|error| format!("cannot sync: {error}"))?;
        (self.synced, self.synced_at) = (self.written, now);
        self.shared.advance(self.written);
        self.mark(self.written)
    }

    /// Without syncs: what has lain in the file for that long, the operating system has written.
    fn mark_aged(&mut self, now: Duration) -> Result<(), Reason> {
        let aged = self.synced;
        (self.synced, self.synced_at) = (self.written, now);
        self.mark(aged)
    }

    fn mark(&mut self, through: u64) -> Result<(), Reason> {
        let mut line = Vec::new();
        Line::Synced(through).encode(&mut line, self.salt);
        self.append(&line)
    }

    /// Ends the old increment and begins the new one. The old one is synced to its end before the manifest names
    /// the new one, and the new one has its header before that; so whichever manifest a crash leaves, it is true.
    fn switch(&mut self, switch: Switch) -> Result<(), Reason> {
        self.file.sync().map_err(|error| format!("cannot sync: {error}"))?;
        self.synced = self.written;
        self.shared.advance(self.written);
        let entry = Entry::ours(FileKind::Increment, switch.number);
        let shared = Arc::clone(&self.shared);
        let (files, dir) = (&*shared.files, &*shared.dir);
        let header = FileHeader {
            kind: FileKind::Increment,
            number: switch.number,
            after: switch.after,
            salt: switch.salt,
        };
        let bytes_at_switch = shared.disk_bytes.load(Ordering::Relaxed);
        self.file = super::create_file(files, dir, &entry, header).map_err(|error| error.to_string())?;
        self.salt = switch.salt;
        let header_bytes =
            self.file.size().map_err(|error| format!("cannot look at {}: {error}", entry.name))?;
        shared.disk_bytes.fetch_add(header_bytes, Ordering::Relaxed);
        let mut layout = shared.layout.lock();
        let mut manifest = layout.manifest.clone();
        manifest.entries.push(entry);
        manifest.store(files, dir).map_err(|error| format!("cannot replace the manifest: {error}"))?;
        layout.manifest = manifest;
        layout.current = switch.number;
        layout.bytes_at_switch = bytes_at_switch;
        drop(layout);
        shared.switched.notify_all();
        Ok(())
    }

    /// The last sync, whatever the durability.
    pub(super) fn finish(&mut self) -> Result<(), Reason> {
        let unsynced = self.shared.synced.load(Ordering::Acquire) < self.written;
        let result = if unsynced { self.sync(self.synced_at) } else { Ok(()) };
        if let Err(reason) = &result {
            self.shared.stop(reason.clone());
        }
        result
    }
}
