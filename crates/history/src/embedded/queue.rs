//! The queue before the writer: what callers pass to it, bounded in rows and in bytes.
//!
//! A call takes as many places of the queue as it has rows and bytes and gives them back when it is answered. A full
//! queue makes callers wait, and after `queue_wait` they get `Busy`: the store never buffers without bound.

use super::encode::EncodedRows;
use super::options::Options;
use crate::contract::{
    Applied, ConditionalWrite, Fold, FoldEntry, Folded, RawRow, Source, Stats, Write, Written,
};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS_MAX;
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// A change that the writer makes.
pub(super) enum Change {
    Insert { table: &'static TableDeclaration, rows: EncodedRows },
    Write { table: &'static TableDeclaration, write: Write },
    WriteIf { table: &'static TableDeclaration, write: ConditionalWrite },
    Fold(Vec<Fold>),
    CloseSource { totals: &'static TotalsDeclaration, source: Source },
    Retain,
    Sync,
    Close,
}

/// What a change takes of the queue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl Change {
    /// Whether it reads nothing that another change of the same commit may write, or finds that in memory.
    pub(super) fn is_blind(&self) -> bool {
        matches!(self, Change::Insert { .. } | Change::Fold(_))
    }

    pub(super) fn size(&self) -> Size {
        let rows = |rows: &[RawRow]| Size { rows: rows.len(), bytes: rows.iter().map(row_bytes).sum() };
        match self {
            Change::Insert { rows, .. } => Size { rows: rows.written.rows, bytes: rows.operations().bytes() },
            Change::Write { write: Write::Insert(all) | Write::Upsert(all), .. } => rows(all),
            Change::Write { write: Write::Replace { rows: all, removed, .. }, .. } => {
                let Size { rows, bytes } = rows(all);
                Size { rows: rows + removed.len(), bytes }
            }
            Change::Fold(folds) => {
                let entry = |fold: &Fold| size_of::<FoldEntry>() + fold.totals.sums.len() * size_of::<i64>();
                let rows = folds.iter().map(|fold| fold.entries.len()).sum::<usize>();
                let bytes = folds.iter().map(|fold| fold.entries.len() * entry(fold)).sum();
                Size { rows: rows.min(BATCH_ROWS_MAX), bytes }
            }
            Change::Write { write: Write::Delete(key), .. } => {
                Size { rows: 1, bytes: key.iter().map(Value::size_bytes).sum() }
            }
            Change::WriteIf { write, .. } => {
                let bytes = match write {
                    ConditionalWrite::InsertIfAbsent(row) | ConditionalWrite::DeleteIf(row) => row_bytes(row),
                    ConditionalWrite::ReplaceIf { expected, row } => row_bytes(expected) + row_bytes(row),
                };
                Size { rows: 1, bytes }
            }
            Change::CloseSource { .. } | Change::Retain | Change::Sync | Change::Close => Size::default(),
        }
    }
}

/// What a row takes in memory.
fn row_bytes(row: &RawRow) -> usize {
    let content: usize = row.iter().flatten().map(Value::size_bytes).sum();
    content + row.len() * size_of::<Option<Value>>()
}

/// What a change led to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) written: Written,
    pub(super) applied: Option<Applied<RawRow>>,
    pub(super) folded: Folded,
}

/// A change and its caller.
pub(super) struct Request {
    pub(super) change: Change,
    pub(super) size: Size,
    pub(super) reply: oneshot::Sender<Result<Outcome>>,
    /// Given back when the request is answered, also if its caller has left.
    pub(super) places: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

/// Counters that the writer and its callers share.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) rows: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) windows_dropped: AtomicU64,
    queued_rows: AtomicUsize,
    queued_bytes: AtomicUsize,
    closed: AtomicBool,
}

impl Counters {
    pub(super) fn leave(&self, size: Size) {
        self.queued_rows.fetch_sub(size.rows, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(size.bytes, Ordering::Relaxed);
    }
}

/// The callers' side of the writer.
pub(super) struct WriterHandle {
    requests: Mutex<Option<Sender<Request>>>,
    row_places: Arc<Semaphore>,
    byte_places: Arc<Semaphore>,
    counters: Arc<Counters>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    /// How the writer ended; set after everything that it held was released.
    ended: watch::Receiver<Option<Result<()>>>,
    /// Rows and bytes that may wait for the writer.
    queue: Size,
    queue_wait: Duration,
}

impl WriterHandle {
    /// The queue of a writer that `run` is: it gets the requests, the counters, and returns when it has ended.
    pub(super) fn start(
        options: &Options,
        run: impl FnOnce(&Receiver<Request>, Arc<Counters>) -> Result<()> + Send + 'static,
    ) -> Result<WriterHandle> {
        let (sender, receiver) = channel();
        let counters = Arc::new(Counters::default());
        let (end, ended) = watch::channel(None);
        let of_writer = counters.clone();
        let run = move || {
            let result = run(&receiver, of_writer);
            let _ = end.send(Some(result));
        };
        let thread = std::thread::Builder::new().name("history-writer".into()).spawn(run);
        let thread = thread.map_err(|error| Error::Stopped { reason: error.to_string() })?;
        Ok(WriterHandle {
            requests: Mutex::new(Some(sender)),
            row_places: Arc::new(Semaphore::new(options.queue_rows_max)),
            byte_places: Arc::new(Semaphore::new(options.queue_bytes_max)),
            counters,
            thread: Mutex::new(Some(thread)),
            ended,
            queue: Size { rows: options.queue_rows_max, bytes: options.queue_bytes_max },
            queue_wait: options.queue_wait,
        })
    }

    /// Passes a change to the writer and waits until it is committed.
    pub(super) async fn submit(&self, change: Change, size: Size) -> Result<Outcome> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        let places = self.places(size).await?;
        let (reply, receive) = oneshot::channel();
        let request = Request { change, size, reply, places: Some(places) };
        self.counters.queued_rows.fetch_add(size.rows, Ordering::Relaxed);
        self.counters.queued_bytes.fetch_add(size.bytes, Ordering::Relaxed);
        let sent = self.requests.lock().as_ref().is_some_and(|requests| requests.send(request).is_ok());
        if !sent {
            self.counters.leave(size);
            return Err(Error::Closed);
        }
        match receive.await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::OutcomeUnknown { reason: "the writer ended".into() }),
        }
    }

    /// Places for rows and bytes. A change that is larger than the queue waits until it is empty.
    async fn places(&self, size: Size) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let rows = size.rows.min(self.queue.rows) as u32;
        let bytes = size.bytes.min(self.queue.bytes) as u32;
        let (of_rows, of_bytes) = (self.row_places.clone(), self.byte_places.clone());
        if let Ok(rows) = of_rows.clone().try_acquire_many_owned(rows)
            && let Ok(bytes) = of_bytes.clone().try_acquire_many_owned(bytes)
        {
            return Ok((rows, bytes));
        }
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
        let waiting = async {
            let rows = of_rows.acquire_many_owned(rows).await?;
            Ok((rows, of_bytes.acquire_many_owned(bytes).await?))
        };
        match tokio::time::timeout(self.queue_wait, waiting).await {
            Ok(Ok(places)) => Ok(places),
            Ok(Err(tokio::sync::AcquireError { .. })) => Err(Error::Closed),
            Err(_) => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                let queued_rows = self.counters.queued_rows.load(Ordering::Relaxed);
                Err(Error::Busy { queued_rows, waited: self.queue_wait })
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.counters.closed.load(Ordering::Acquire)
    }

    /// Ends the writer. All callers get the same result, also those that come later or whose call was dropped.
    pub(super) async fn close(&self) -> Result<()> {
        self.counters.closed.store(true, Ordering::Release);
        // The sender is taken before the last request is sent, so nothing can stand behind it in the queue.
        let requests = self.requests.lock().take();
        if let Some(requests) = requests {
            let (reply, _) = oneshot::channel();
            let request = Request { change: Change::Close, size: Size::default(), reply, places: None };
            let _ = requests.send(request);
        }
        match self.ended.clone().wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ok(())),
            Err(_) => Err(Error::Stopped { reason: "the writer panicked".into() }),
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            rows_written: read(&self.counters.rows),
            commits: read(&self.counters.commits),
            queued_rows: self.counters.queued_rows.load(Ordering::Relaxed),
            queue_rows_max: self.queue.rows,
            queued_bytes: self.counters.queued_bytes.load(Ordering::Relaxed),
            queue_bytes_max: self.queue.bytes,
            waits: read(&self.counters.waits),
            refused: read(&self.counters.refused),
            windows: 0,
            windows_dropped: read(&self.counters.windows_dropped),
        }
    }
}

impl Drop for WriterHandle {
    /// Ends the writer without the work of a proper close. Every acknowledged row is in the journal.
    fn drop(&mut self) {
        self.requests.lock().take();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}
