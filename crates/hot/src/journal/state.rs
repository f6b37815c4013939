//! The state of an open journal, shared by appenders, waiters, the writer thread and a rewrite.
//!
//! Invariants:
//! 1. Sequence numbers are assigned under the log's lock, in the order of the records in the file.
//! 2. A record is in the file before its caller gets the number, so the death of the process loses nothing
//!    that was answered. Its space is reserved before, so a full disk refuses it while it has no effect.
//! 3. `synced <= appended`, and `synced` moves only after the bytes are on disk.
//! 4. Once `stopped` is set nothing more is written, and no number above `synced` is ever reported as
//!    durable.
//! 5. Locks are taken in the order layout, log, waiters.

use super::active_file::ActiveFile;
use super::files::Files;
use super::format::{LINE_BYTES_MAX, RecordHeader, encode_body};
use super::lock::FolderLock;
use super::manifest::Manifest;
use super::wait_durable::Waiters;
use super::{Delivery, Durability};
use crate::command::{RawKey, Write};
use crate::error::{Error, Result};
use crate::limits::JOURNAL_SCRATCH_BYTES_MAX;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The log: the file that takes transactions, and what waits for the writer thread.
pub(super) struct Log {
    /// Number of the last transaction.
    pub(super) sequence: u64,
    pub(super) tail: ActiveFile,
    /// Bytes of all other files.
    pub(super) other_bytes: u64,
    /// Increments that a rewrite has ended. They are synced before anything in `tail` counts as synced.
    pub(super) retired: Vec<ActiveFile>,
    pub(super) deliveries: Vec<Delivery>,
    /// The disk has no space: transactions are refused until the writer could reserve some.
    pub(super) full: Option<Error>,
    /// The writer reserves space at the end of `tail`; other threads must wait.
    pub(super) reserving: bool,
    /// The writer sleeps and has to be woken.
    pub(super) asleep: bool,
    /// The next append must wake it, not only a shortage of space.
    pub(super) wake_on_append: bool,
    pub(super) closing: bool,
}

impl Log {
    pub(super) fn new(sequence: u64, tail: ActiveFile, other_bytes: u64) -> Log {
        Log {
            sequence,
            tail,
            other_bytes,
            retired: Vec::new(),
            deliveries: Vec::new(),
            full: None,
            reserving: false,
            asleep: false,
            wake_on_append: false,
            closing: false,
        }
    }

    /// Bytes of all files of the journal, without reserved space.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.other_bytes + self.tail.end
    }
}

/// Which files there are.
pub(super) struct FolderState {
    pub(super) manifest: Manifest,
    /// The folder is ours while this is here.
    pub(super) lock: Option<FolderLock>,
}

/// See the file's head.
pub(super) struct JournalState {
    pub(super) files: Arc<dyn Files>,
    pub(super) dir: PathBuf,
    pub(super) durability: Durability,
    pub(super) log: Mutex<Log>,
    /// The writer waits here for work.
    pub(super) work: Condvar,
    /// Appenders wait here while the writer reserves space.
    pub(super) room: Condvar,
    pub(super) layout: Mutex<FolderState>,
    pub(super) appended: AtomicU64,
    pub(super) synced: AtomicU64,
    /// Size of the journal at the last sync.
    pub(super) synced_bytes: AtomicU64,
    /// The next file's number.
    pub(super) next_number: AtomicU64,
    /// A rewrite has begun and is neither finished nor abandoned.
    pub(super) rewriting: AtomicBool,
    pub(super) base_bytes: AtomicU64,
    pub(super) rewrite_bytes_min: u64,
    /// No rewrite starts below this size. Raised when a rewrite fails, so that it is not repeated at once.
    pub(super) rewrite_above: AtomicU64,
    pub(super) waiters: Waiters,
    pub(super) stopped: OnceLock<Error>,
}

thread_local! {
    /// A record's line and body. The body is encoded outside the log's lock.
    static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl JournalState {
    /// Appends one transaction and returns its sequence; see [`Journal::append`](super::Journal::append).
    pub(super) fn append(&self, writes: &[(RawKey, Write)], messages: Vec<Delivery>) -> Result<u64> {
        if writes.is_empty() {
            return self.deliver_after(messages);
        }
        SCRATCH.with_borrow_mut(|(line, body)| {
            body.clear();
            encode_body(body, writes);
            let crc = crc32c::crc32c(body);
            let sequence = self.push(line, body, crc, messages);
            if body.capacity() > JOURNAL_SCRATCH_BYTES_MAX {
                *body = Vec::new();
            }
            sequence
        })
    }

    fn push(&self, line: &mut Vec<u8>, body: &[u8], crc: u32, messages: Vec<Delivery>) -> Result<u64> {
        let mut log = self.room_for(LINE_BYTES_MAX + body.len())?;
        let sequence = log.sequence + 1;
        line.clear();
        RecordHeader::encode(sequence, body.len(), crc, log.tail.salt, line);
        if let Err(error) = log.tail.write(line).and_then(|()| log.tail.write(body)) {
            let reason = self.cannot_write(&log, &error);
            drop(log);
            return Err(self.stop(reason));
        }
        log.sequence = sequence;
        log.deliveries.extend(messages);
        self.appended.store(sequence, Ordering::Release);
        self.wake_writer(log, false);
        Ok(sequence)
    }

    /// Messages of a transaction that writes nothing: delivered after all that was appended before. They
    /// need no space.
    fn deliver_after(&self, messages: Vec<Delivery>) -> Result<u64> {
        let mut log = self.log.lock();
        self.is_open(&log)?;
        let sequence = log.sequence;
        if !messages.is_empty() {
            log.deliveries.extend(messages);
            self.wake_writer(log, true);
        }
        Ok(sequence)
    }

    /// The locked log with space for a record, or the reason why there is none.
    fn room_for(&self, bytes: usize) -> Result<MutexGuard<'_, Log>> {
        let mut log = self.log.lock();
        loop {
            self.takes_records(&log)?;
            if log.tail.free() >= bytes {
                return Ok(log);
            }
            if log.reserving {
                self.room.wait(&mut log);
            } else if let Err(error) = log.tail.reserve(bytes) {
                let refusal = no_space(&error);
                // One huge record that does not fit must not stop small ones.
                if bytes <= log.tail.step_bytes() {
                    log.full = Some(refusal.clone());
                    self.wake_writer(log, true);
                }
                return Err(refusal);
            }
        }
    }

    /// Whether records are taken now; the error says why not.
    pub(super) fn takes_records(&self, log: &Log) -> Result<()> {
        self.is_open(log)?;
        log.full.clone().map_or(Ok(()), Err)
    }

    /// Whether it has neither stopped for good nor been closed.
    pub(super) fn is_open(&self, log: &Log) -> Result<()> {
        match self.stopped.get() {
            Some(stopped) => Err(stopped.clone()),
            None if log.closing => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Wakes the writer if it asked for it, or if it must not be waited for.
    pub(super) fn wake_writer(&self, mut log: MutexGuard<'_, Log>, at_once: bool) {
        if at_once || (log.asleep && (log.wake_on_append || log.tail.is_short())) {
            // Once is enough: the writer sets it again when it sleeps.
            log.asleep = false;
            drop(log);
            self.work.notify_one();
        }
    }

    /// Everything up to `sequence` is on disk.
    pub(super) fn advance(&self, sequence: u64, bytes: u64) {
        self.synced_bytes.store(bytes, Ordering::Relaxed);
        self.synced.store(sequence, Ordering::Release);
        self.waiters.wake(sequence);
    }

    /// What [`Journal::wait_durable`](super::Journal::wait_durable) can already answer.
    pub(super) fn durable(&self, sequence: u64) -> Option<Result<()>> {
        if self.synced.load(Ordering::Acquire) >= sequence {
            return Some(Ok(()));
        }
        match (self.stopped.get(), self.durability) {
            (Some(stopped), _) => Some(Err(stopped.clone())),
            (None, Durability::Always) => None,
            (None, _) => Some(Ok(())),
        }
    }

    /// Half a record or mark may be there, and nothing may ever follow it: marked before the log's lock is
    /// released. The caller calls [`stop`](JournalState::stop) with the reason when it has released it.
    pub(super) fn cannot_write(&self, _locked: &Log, error: &io::Error) -> String {
        let reason = format!("cannot write: {error}");
        self.stopped.get_or_init(|| stopped_for_good(&reason));
        reason
    }

    /// Stops writing until a restart and logs the reason. Returns the error that all callers get from now on.
    pub(super) fn stop(&self, reason: String) -> Error {
        let stopped = self.refuse(stopped_for_good(&reason));
        // Last, and guarded: even if a log subscriber panics, the journal is stopped and no caller waits.
        catch_panic(
            || tracing::error!(folder = %self.dir.display(), %reason, "the journal stopped; writes are refused until a restart"),
        );
        stopped
    }

    /// Makes all calls, now and later, fail with this error, or with the first one.
    pub(super) fn refuse(&self, error: Error) -> Error {
        let stopped = self.stopped.get_or_init(|| error).clone();
        let dropped = std::mem::take(&mut self.log.lock().deliveries);
        self.room.notify_all();
        self.work.notify_one();
        self.waiters.wake(u64::MAX);
        // Outside the lock, and last: dropping a message runs destructors of callers.
        catch_panic(|| drop(dropped));
        stopped
    }
}

fn stopped_for_good(reason: &str) -> Error {
    Error::JournalStopped { reason: format!("{reason}; restart to resume") }
}

/// The error for a full disk.
pub(super) fn no_space(error: &io::Error) -> Error {
    Error::JournalStopped {
        reason: format!("cannot reserve space: {error}; it resumes by itself when the disk has space again"),
    }
}

/// Runs code that must not stop the journal by a panic: log lines, and code of callers. `false` = it
/// panicked.
pub(super) fn catch_panic(run: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(run)).is_ok()
}
