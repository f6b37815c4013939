//! Recording events: the three promises, and the thread that syncs.

use super::folder;
use super::queue::{Page, Queue, SpoolStats};
use crate::error::{Error, Result};
use crate::limits::{SPOOL_BYTES_DEFAULT, SPOOL_EVENT_BYTES_MAX, SPOOL_SEGMENT_BYTES, SYNC_EVERY};
use crate::validate;
use emberkeep_hot::journal::files::{Disk, Files as _};
use emberkeep_hot::journal::segment::{FolderLock, lock_folder};
use emberkeep_schema::Codec;
use parking_lot::{Condvar, Mutex};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::{Notify, watch};

/// What a recorded event survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpoolMode {
    /// It is on disk: it survives a crash of the system.
    Always,
    /// It is in the file, and on disk within a second: it survives the death of the process.
    #[default]
    EverySec,
    /// It is in memory: it is lost with the process.
    Memory,
}

/// Options of a spool.
#[derive(Debug, Clone)]
pub struct SpoolOptions {
    /// What a recorded event survives.
    pub mode: SpoolMode,
    /// Bytes that may wait for history.
    pub bytes_max: u64,
    /// Size at which a segment is followed by the next one.
    pub segment_bytes: u64,
}

impl Default for SpoolOptions {
    fn default() -> SpoolOptions {
        let (bytes_max, segment_bytes) = (SPOOL_BYTES_DEFAULT, SPOOL_SEGMENT_BYTES);
        SpoolOptions { mode: SpoolMode::default(), bytes_max, segment_bytes }
    }
}

/// What became of recorded events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// How safe they are.
    pub mode: SpoolMode,
    /// The position of the last one among those of this opening.
    pub position: u64,
}

/// A spool of events that `C` encodes. Cheap to clone.
pub struct Spool<C> {
    pub(super) handle: Arc<Handle>,
    codec: PhantomData<fn() -> C>,
}

impl<C> Clone for Spool<C> {
    fn clone(&self) -> Self {
        Spool { handle: self.handle.clone(), codec: PhantomData }
    }
}

/// An open spool. The last handle closes it.
pub(crate) struct Handle(Arc<Shared>);

impl std::ops::Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Handle {
    /// Opens the folder and starts the thread that syncs; see [`Spool::open`].
    pub(crate) fn open(folder: &Path, options: SpoolOptions) -> Result<Handle> {
        let SpoolOptions { mode, bytes_max, segment_bytes } = options;
        let source = uuid::Uuid::new_v4().to_string();
        let limits = (bytes_max, segment_bytes);
        let (queue, lock) = if mode == SpoolMode::Memory {
            (Queue::new(None, source, limits, vec![]), None)
        } else {
            std::fs::create_dir_all(folder).map_err(|error| folder::folder_error(folder, error))?;
            let lock = lock_folder(&Disk, folder).map_err(|error| folder::folder_error(folder, error))?;
            let segments = folder::list(folder)?;
            Disk.sync_dir(folder).map_err(|error| folder::folder_error(folder, error))?;
            (Queue::new(Some(folder.to_owned()), source, limits, segments), Some(lock))
        };
        let shared = Arc::new(Shared {
            mode,
            queue: Mutex::new(queue),
            work: Condvar::new(),
            synced: watch::Sender::new(0),
            recorded: Notify::new(),
            delivering: tokio::sync::Mutex::default(),
            thread: Mutex::new(None),
            lock: Mutex::new(lock),
        });
        if mode != SpoolMode::Memory {
            let syncing = shared.clone();
            let thread = std::thread::Builder::new().name("spool".to_owned()).spawn(move || syncing.sync());
            *shared.thread.lock() = Some(thread.map_err(|error| folder::folder_error(folder, error))?);
        }
        Ok(Handle(shared))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.0.close() {
            tracing::error!(%error, "a spool was dropped and could not be synced");
        }
    }
}

/// What recorders, the consumer and the thread share.
pub(crate) struct Shared {
    mode: SpoolMode,
    queue: Mutex<Queue>,
    /// The thread waits here.
    work: Condvar,
    /// The last position that is on disk.
    synced: watch::Sender<u64>,
    /// Wakes the consumer when an event was recorded.
    pub(crate) recorded: Notify,
    /// Held while a page is delivered and acknowledged.
    pub(crate) delivering: tokio::sync::Mutex<()>,
    thread: Mutex<Option<JoinHandle<()>>>,
    lock: Mutex<Option<FolderLock>>,
}

impl<C: Codec> Spool<C> {
    /// Opens the spool of a folder, which is created if it is missing. Events that a former process recorded wait for
    /// delivery. With `Memory` the folder is not used.
    pub fn open(folder: impl AsRef<Path>, options: SpoolOptions) -> Result<Spool<C>> {
        Ok(Spool { handle: Arc::new(Handle::open(folder.as_ref(), options)?), codec: PhantomData })
    }

    /// Records an event. Returns when it is as safe as the mode promises.
    pub async fn record(&self, event: &C::Value) -> Result<Recorded> {
        self.record_events(std::slice::from_ref(event)).await
    }

    /// Records events in order. `SpoolFull`, `TooLarge` and `Invalid` say that none of them was recorded. After
    /// `Stopped`, or if the process dies meanwhile, some may be, and are delivered when the folder is opened again.
    pub async fn record_events(&self, events: &[C::Value]) -> Result<Recorded> {
        let recorded = self.append_events(events)?;
        self.wait_safe(&recorded).await?;
        Ok(recorded)
    }

    /// Appends events as [`record_events`](Self::record_events) does and does not wait until they are safe. They are
    /// delivered also if the caller never waits.
    pub fn append_events(&self, events: &[C::Value]) -> Result<Recorded> {
        let mut encoded = Vec::with_capacity(events.len());
        for event in events {
            let mut bytes = Vec::new();
            C::encode(event, &mut bytes)
                .map_err(|error| Error::invalid("an event of the spool", error.to_string()))?;
            validate::limit("an event".into(), bytes.len(), "bytes", SPOOL_EVENT_BYTES_MAX)?;
            encoded.push(bytes);
        }
        let position = self.handle.append(&encoded)?;
        Ok(Recorded { mode: self.handle.mode, position })
    }

    /// Waits until appended events, and all before them, are as safe as the mode promises. Callers that wait at the same
    /// time share a sync.
    pub async fn wait_safe(&self, recorded: &Recorded) -> Result<()> {
        if self.handle.mode == SpoolMode::Always {
            self.handle.wait_synced(recorded.position).await?;
        }
        Ok(())
    }

    /// How many events and bytes wait for history.
    pub fn stats(&self) -> SpoolStats {
        self.handle.queue.lock().stats()
    }

    /// Syncs, ends the thread and frees the folder. What was not delivered waits for the next opening.
    pub fn close(&self) -> Result<()> {
        self.handle.close()
    }
}

impl Shared {
    /// Records encoded events. Returns the last position when they are as safe as the mode promises.
    pub(crate) async fn record(&self, events: &[Vec<u8>]) -> Result<u64> {
        let position = self.append(events)?;
        if self.mode == SpoolMode::Always {
            self.wait_synced(position).await?;
        }
        Ok(position)
    }

    fn append(&self, events: &[Vec<u8>]) -> Result<u64> {
        let position = self.queue.lock().append(events)?;
        self.work.notify_one();
        self.recorded.notify_one();
        Ok(position)
    }

    async fn wait_synced(&self, position: u64) -> Result<()> {
        let mut synced = self.synced.subscribe();
        loop {
            // In this order: a spool that was closed published what it synced before it stopped.
            let stopped = self.queue.lock().stopped.clone();
            if *synced.borrow_and_update() >= position {
                return Ok(());
            }
            if let Some(stopped) = stopped {
                return Err(stopped);
            }
            // The sender lives as long as this.
            let _ = synced.changed().await;
        }
    }

    /// The thread: syncs what was appended, with `Always` at once, otherwise once a second. A failed sync is never
    /// repeated: the kernel may have dropped the pages.
    fn sync(&self) {
        let mut synced_at = Instant::now();
        loop {
            let mut queue = self.queue.lock();
            while queue.stopped.is_none() && queue.appended == *self.synced.borrow() {
                self.work.wait(&mut queue);
            }
            if self.mode == SpoolMode::EverySec && queue.stopped.is_none() {
                let due = synced_at + SYNC_EVERY;
                while queue.stopped.is_none() && !self.work.wait_until(&mut queue, due).timed_out() {}
            }
            let (file, through) = queue.unsynced();
            if queue.stopped.is_some() {
                drop(queue);
                // Waiters see that it stopped.
                self.synced.send_modify(|_| {});
                return;
            }
            drop(queue);
            let result = file.map_or(Ok(()), |file| file.sync());
            synced_at = Instant::now();
            let mut queue = self.queue.lock();
            match result {
                Ok(()) => queue.synced(through),
                Err(error) => drop(queue.stop(&error)),
            }
            let is_safe = queue.stopped.is_none();
            drop(queue);
            self.synced.send_modify(|synced| *synced = if is_safe { through } else { *synced });
        }
    }

    /// The next events to deliver; `None` = all are delivered.
    pub(crate) fn page(&self) -> Result<Option<Page>> {
        let next = self.queue.lock().next()?;
        next.read()
    }

    /// A page is in history.
    pub(crate) fn acknowledge(&self, page: &Page) -> Result<()> {
        self.queue.lock().acknowledge(page)
    }

    pub(crate) fn stats(&self) -> SpoolStats {
        self.queue.lock().stats()
    }

    fn close(&self) -> Result<()> {
        let mut queue = self.queue.lock();
        let was_open = queue.stopped.is_none();
        let closed = queue.close();
        if was_open && closed.is_ok() {
            self.synced.send_modify(|synced| *synced = queue.appended);
        }
        drop(queue);
        self.work.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread leaves what was appended in the file.
            let _ = thread.join();
        }
        self.lock.lock().take();
        self.recorded.notify_one();
        closed
    }
}
