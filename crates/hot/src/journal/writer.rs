//! The writer thread: reserves space ahead of the transactions, and syncs what they copied into it.
//!
//! * `Always`: group commit. While one sync runs, the next group gathers in the file.
//! * `EverySec`: syncs once a second.
//! * `No`: syncs once a minute, so that damage can be distinguished from a torn end.
//!
//! Budget: it sleeps when there is nothing to do; on a full disk it tries to reserve space once a second. It
//! ends when the journal is closed (after a last sync) or when a write or sync fails. A failed sync is never
//! repeated: the kernel may have dropped the pages and would report success.

use super::format::{LINE_BYTES_MAX, Line};
use super::state::{JournalState, Log, catch_panic, no_space};
use super::{Delivery, Durability};
use crate::error::Error;
use crate::limits::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Why writing ended, in words for the error of every later append.
type Reason = String;

/// The writer of the journal. Tests run it cycle by cycle with an injected time.
pub(super) struct Writer {
    state: Arc<JournalState>,
    /// When the last sync ended, on the clock of `cycle`.
    synced_at: Duration,
    /// When a full disk is asked again.
    retry_at: Duration,
    /// A full disk was logged.
    reported_full: bool,
    /// Taken from the log; kept for its allocation.
    deliveries: Vec<Delivery>,
}

impl Writer {
    pub(super) fn new(state: Arc<JournalState>) -> Writer {
        Writer {
            state,
            synced_at: Duration::ZERO,
            retry_at: Duration::ZERO,
            reported_full: false,
            deliveries: Vec::new(),
        }
    }

    /// Works until the journal is closed or stopped.
    pub(super) fn run(mut self) {
        // A panic here must not leave appenders and waiters hanging.
        let state = Arc::clone(&self.state);
        if catch_unwind(AssertUnwindSafe(|| self.work())).is_err() {
            state.stop("its writer panicked".to_owned());
        }
    }

    fn work(&mut self) {
        let started = Instant::now();
        loop {
            let closing = self.wait(started);
            let result = self.cycle(started.elapsed());
            if result.is_err() || closing {
                if result.is_ok() {
                    let _ = self.finish();
                }
                return;
            }
        }
    }

    /// Sleeps until there is something to do. Answers whether it is the end.
    fn wait(&self, started: Instant) -> bool {
        let mut log = self.state.log.lock();
        loop {
            let (now, due) = (started.elapsed(), self.due(&log));
            if self.is_needed(&log) || due.is_some_and(|due| due <= now) {
                log.asleep = false;
                return log.closing;
            }
            log.asleep = true;
            log.wake_on_append = due.is_none();
            match due {
                Some(due) => drop(self.state.work.wait_for(&mut log, due - now)),
                None => self.state.work.wait(&mut log),
            }
        }
    }

    fn is_needed(&self, log: &Log) -> bool {
        let waited_for = self.state.durability == Durability::Always && self.is_unsynced(log);
        let short = log.full.is_none() && log.tail.is_short();
        let stopped = self.state.stopped.get().is_some();
        stopped || log.closing || waited_for || short || !log.deliveries.is_empty() || !log.retired.is_empty()
    }

    /// When the clock next gives it something to do: a sync, or another try on a full disk.
    fn due(&self, log: &Log) -> Option<Duration> {
        let retry = log.full.as_ref().map(|_| self.retry_at);
        self.sync_due(log).into_iter().chain(retry).min()
    }

    fn sync_due(&self, log: &Log) -> Option<Duration> {
        let every = match self.state.durability {
            Durability::Always => Duration::ZERO,
            Durability::EverySec => JOURNAL_SYNC_EVERY,
            Durability::No => JOURNAL_SYNC_WITHOUT_PROMISE_EVERY,
        };
        self.is_unsynced(log).then_some(self.synced_at + every)
    }

    fn is_unsynced(&self, log: &Log) -> bool {
        log.sequence > self.state.synced.load(Ordering::Acquire)
    }

    /// Reserves space and syncs if it is time. After an error the journal has stopped.
    pub(super) fn cycle(&mut self, now: Duration) -> Result<(), Reason> {
        if let Some(stopped) = self.state.stopped.get() {
            return Err(stopped.to_string());
        }
        self.reserve(now);
        let synced = self.sync_if_due(now);
        if let Err(reason) = &synced {
            self.state.stop(reason.clone());
            self.deliveries.clear();
            return synced;
        }
        for deliver in self.deliveries.drain(..) {
            // A message is the caller's code; the journal outlives its panic.
            if !catch_panic(deliver) {
                catch_panic(|| tracing::error!("a message handler panicked"));
            }
        }
        Ok(())
    }

    /// Reserves space ahead of the transactions. Without the lock: they go on meanwhile.
    fn reserve(&mut self, now: Duration) {
        let mut log = self.state.log.lock();
        let spent = std::mem::take(&mut log.tail.spent);
        let wanted = if log.full.is_some() { now >= self.retry_at } else { log.tail.is_short() };
        if !wanted {
            // In this order: unmapping takes time.
            drop(log);
            drop(spent);
            return;
        }
        let (file, salt) = (Arc::clone(&log.tail.file), log.tail.salt);
        let (from, bytes) = (log.tail.reserved_end(), log.tail.step_bytes());
        log.reserving = true;
        drop(log);
        drop(spent);
        // With `Always` each sync would write the space that was only brought into memory.
        let reserved = file.reserve(from, bytes, self.state.durability != Durability::Always);
        let mut log = self.state.log.lock();
        log.reserving = false;
        log.full = reserved.as_ref().err().map(no_space);
        let full = log.full.clone();
        // A rewrite may have turned to another file; its salt tells.
        if let Ok(space) = reserved
            && log.tail.salt == salt
        {
            log.tail.add(space);
        }
        drop(log);
        self.state.room.notify_all();
        self.retry_at = now + JOURNAL_RETRY_EVERY;
        self.report(full);
    }

    /// Says once that the disk is full, and once that it no longer is.
    fn report(&mut self, full: Option<Error>) {
        let folder = self.state.dir.display();
        match (&full, self.reported_full) {
            (Some(error), false) => catch_panic(
                || tracing::error!(%folder, %error, "the journal has no space; writes are refused"),
            ),
            (None, true) => {
                catch_panic(|| tracing::info!(%folder, "the journal has space again; writes are taken"))
            }
            _ => true,
        };
        self.reported_full = full.is_some();
    }

    fn sync_if_due(&mut self, now: Duration) -> Result<(), Reason> {
        let mut log = self.state.log.lock();
        std::mem::swap(&mut log.deliveries, &mut self.deliveries);
        let due = !log.retired.is_empty() || self.sync_due(&log).is_some_and(|due| due <= now);
        drop(log);
        if due { self.sync(now) } else { Ok(()) }
    }

    /// Syncs, wakes the waiters, and leaves a mark behind what is now safe. Files that a rewrite has ended
    /// go first: a mark speaks of all files before it, too.
    fn sync(&mut self, now: Duration) -> Result<(), Reason> {
        let failed = |error| format!("cannot sync: {error}");
        // In one look: a file that is ended after it has numbers beyond `through` only.
        let (retired, file, through, bytes) = {
            let mut log = self.state.log.lock();
            let retired = std::mem::take(&mut log.retired);
            (retired, Arc::clone(&log.tail.file), log.sequence, log.disk_bytes())
        };
        for mut tail in retired {
            tail.seal().map_err(failed)?;
        }
        file.sync().map_err(failed)?;
        self.synced_at = now;
        self.state.advance(through, bytes);
        self.mark(through)
    }

    /// Marks are for telling damage from a torn end. On a full disk they may be missing.
    fn mark(&self, through: u64) -> Result<(), Reason> {
        let mut log = self.state.log.lock();
        let mut line = Vec::with_capacity(LINE_BYTES_MAX);
        Line::Synced(through).encode(&mut line, log.tail.salt);
        if log.tail.free() < line.len() && (log.reserving || log.tail.reserve(line.len()).is_err()) {
            return Ok(());
        }
        log.tail.write(&line).map_err(|error| self.state.cannot_write(&log, &error))
    }

    /// The last sync, whatever the durability. The file is cut to its content.
    pub(super) fn finish(&mut self) -> Result<(), Reason> {
        let result = self.finish_files();
        if let Err(reason) = &result {
            self.state.stop(reason.clone());
        }
        result
    }

    fn finish_files(&mut self) -> Result<(), Reason> {
        let log = self.state.log.lock();
        let unsynced = self.is_unsynced(&log) || !log.retired.is_empty();
        drop(log);
        if unsynced {
            self.sync(self.synced_at)?;
        }
        self.state.log.lock().tail.seal().map_err(|error| format!("cannot sync: {error}"))
    }
}
