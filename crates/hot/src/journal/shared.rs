//! What appenders, waiters, the writer thread and a rewrite share.
//!
//! Invariants:
//! 1. Sequence numbers are given under the buffer's lock, in the order in which the bytes enter the buffer.
//! 2. `synced <= appended`, and `synced` moves only after the bytes are on disk.
//! 3. Once `stopped` is set nothing more is written, and no number above `synced` is ever called settled.
//! 4. Locks are taken in the order layout, buffer, waiters.

use super::files::Files;
use super::format::{RecordHeader, encode_body};
use super::lock::FolderLock;
use super::manifest::Manifest;
use super::settle::Waiters;
use super::{Delivery, Durability};
use crate::command::{RawKey, Write};
use crate::error::{Error, Result};
use crate::limits::JOURNAL_SCRATCH_BYTES_MAX;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Transactions that wait for the writer.
#[derive(Default)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// Number of the last transaction in the buffer, or before it.
    pub(super) sequence: u64,
    /// Salt of the file that `bytes` go to.
    pub(super) salt: u32,
    pub(super) deliveries: Vec<Delivery>,
    /// Where the bytes go on in a new file.
    pub(super) switch: Option<Switch>,
    /// The writer sleeps and wants to be woken when this many bytes wait.
    pub(super) wake_at: usize,
    pub(super) closing: bool,
}

impl Buffer {
    /// Whether the writer has anything to do.
    pub(super) fn is_idle(&self) -> bool {
        self.bytes.is_empty() && self.deliveries.is_empty() && self.switch.is_none() && !self.closing
    }
}

/// The place in the buffer where a new increment begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Switch {
    pub(super) bytes_before: usize,
    /// The last transaction of the old file.
    pub(super) after: u64,
    pub(super) number: u64,
    pub(super) salt: u32,
}

/// Which files there are.
pub(super) struct Layout {
    pub(super) manifest: Manifest,
    /// Number of the increment that is being written.
    pub(super) current: u64,
    /// Bytes of all files when it began.
    pub(super) bytes_at_switch: u64,
    /// The folder is ours while this is here.
    pub(super) lock: Option<FolderLock>,
}

/// See the file's head.
pub(super) struct Shared {
    pub(super) files: Arc<dyn Files>,
    pub(super) dir: PathBuf,
    pub(super) durability: Durability,
    pub(super) buffer_bytes_max: usize,
    pub(super) buffer: Mutex<Buffer>,
    /// The writer waits here for bytes.
    pub(super) work: Condvar,
    /// Appenders wait here for room.
    pub(super) room: Condvar,
    pub(super) layout: Mutex<Layout>,
    /// A rewrite waits here, with `layout`, for its increment to be in use.
    pub(super) switched: Condvar,
    pub(super) appended: AtomicU64,
    pub(super) synced: AtomicU64,
    /// Bytes that the writer has taken and not yet written.
    pub(super) in_flight: AtomicU64,
    /// The next file's number.
    pub(super) next_number: AtomicU64,
    /// A rewrite has begun and is neither finished nor abandoned.
    pub(super) rewriting: AtomicBool,
    pub(super) disk_bytes: AtomicU64,
    pub(super) base_bytes: AtomicU64,
    pub(super) rewrite_bytes_min: u64,
    /// No rewrite is asked for below this size; raised when one fails, so that failing is not all that is done.
    pub(super) rewrite_above: AtomicU64,
    pub(super) waiters: Waiters,
    pub(super) stopped: OnceLock<Error>,
}

thread_local! {
    /// Transactions are encoded outside the buffer's lock.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Shared {
    /// See [`Journal::append`](super::Journal::append).
    pub(super) fn append(&self, writes: &[(RawKey, Write)], messages: Vec<Delivery>) -> Result<u64> {
        if writes.is_empty() {
            return self.deliver_after(messages);
        }
        SCRATCH.with_borrow_mut(|body| {
            body.clear();
            encode_body(body, writes);
            let crc = crc32c::crc32c(body);
            let sequence = self.push(body, crc, messages);
            if body.capacity() > JOURNAL_SCRATCH_BYTES_MAX {
                *body = Vec::new();
            }
            sequence
        })
    }

    fn push(&self, body: &[u8], crc: u32, messages: Vec<Delivery>) -> Result<u64> {
        let mut buffer = self.room_for(body.len())?;
        let sequence = buffer.sequence + 1;
        let salt = buffer.salt;
        RecordHeader::encode(sequence, body.len(), crc, salt, &mut buffer.bytes);
        buffer.bytes.extend_from_slice(body);
        buffer.sequence = sequence;
        buffer.deliveries.extend(messages);
        self.appended.store(sequence, Ordering::Release);
        self.wake_writer(buffer, false);
        Ok(sequence)
    }

    /// Messages of a transaction that writes nothing: told after all that was appended before.
    fn deliver_after(&self, messages: Vec<Delivery>) -> Result<u64> {
        let mut buffer = self.room_for(0)?;
        let sequence = buffer.sequence;
        if !messages.is_empty() {
            buffer.deliveries.extend(messages);
            self.wake_writer(buffer, true);
        }
        Ok(sequence)
    }

    /// The locked buffer, with room for a record, or the reason why there will be none.
    fn room_for(&self, bytes: usize) -> Result<MutexGuard<'_, Buffer>> {
        let mut buffer = self.buffer.lock();
        loop {
            if let Some(stopped) = self.stopped.get() {
                return Err(stopped.clone());
            }
            if buffer.closing {
                return Err(Error::Closed);
            }
            // A record that is larger than the whole buffer goes in alone.
            if buffer.bytes.is_empty() || buffer.bytes.len() + bytes <= self.buffer_bytes_max {
                return Ok(buffer);
            }
            self.room.wait(&mut buffer);
        }
    }

    /// Wakes the writer if it asked to be woken at this many bytes, or if it must not be waited for.
    pub(super) fn wake_writer(&self, mut buffer: MutexGuard<'_, Buffer>, at_once: bool) {
        if at_once || buffer.bytes.len() >= buffer.wake_at {
            // Once is enough: the writer says anew what it wants when it sleeps again.
            buffer.wake_at = usize::MAX;
            drop(buffer);
            self.work.notify_one();
        }
    }

    /// Everything up to `sequence` is on disk.
    pub(super) fn advance(&self, sequence: u64) {
        self.synced.store(sequence, Ordering::Release);
        self.waiters.wake(sequence);
    }

    /// What [`Journal::settle`](super::Journal::settle) can already answer.
    pub(super) fn settled(&self, sequence: u64) -> Option<Result<()>> {
        if self.synced.load(Ordering::Acquire) >= sequence {
            return Some(Ok(()));
        }
        match (self.stopped.get(), self.durability) {
            (Some(stopped), _) => Some(Err(stopped.clone())),
            (None, Durability::Always) => None,
            (None, _) => Some(Ok(())),
        }
    }

    /// Ends writing, loudly and for good.
    pub(super) fn stop(&self, reason: String) {
        self.stopped_by(reason);
        // Through the lock, so that a rewrite between its look at `stopped` and its wait is not missed.
        drop(self.layout.lock());
        self.switched.notify_all();
    }

    /// The same for who holds the layout.
    pub(super) fn stopped_by(&self, reason: String) {
        tracing::error!(folder = %self.dir.display(), %reason, "the journal stopped; writes are refused until a restart");
        self.refuse(Error::JournalStopped { reason });
    }

    /// Answers everyone, now and later, with this error; nothing that waits is written.
    pub(super) fn refuse(&self, error: Error) {
        // Only the first reason counts.
        let _ = self.stopped.set(error);
        let dropped = {
            let mut buffer = self.buffer.lock();
            (std::mem::take(&mut buffer.deliveries), std::mem::take(&mut buffer.bytes))
        };
        // Outside the lock: what a message captured is dropped with it.
        drop(dropped);
        self.room.notify_all();
        self.work.notify_one();
        self.waiters.wake(u64::MAX);
    }
}
