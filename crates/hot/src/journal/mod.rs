//! The journal: every committed transaction, on disk, in an order that is a serial order.
//!
//! Responsible for: the durability that was asked for, refusing to load what was not written, a folder that
//! `redis-server` 7 loads too. Not responsible for: what the writes mean, which locks are held, deadlines.
//!
//! | file | what |
//! |---|---|
//! | `format` | the byte table, what a crash can leave, encoding |
//! | `decode` | Redis commands back into writes |
//! | `manifest` | which files, in which order |
//! | `reader`, `recover`, `foreign` | loading |
//! | `repair` | cutting torn ends and, if told to, damage |
//! | `shared`, `writer`, `settle` | appending, group commit, waiting |
//! | `rewrite` | replacing a grown history by the state |
//! | `files`, `faulty`, `lock` | the disk, a disk that forgets, one process per folder |

mod decode;
pub mod faulty;
pub mod files;
mod foreign;
mod format;
mod lock;
mod manifest;
mod reader;
mod recover;
mod repair;
mod rewrite;
mod settle;
mod shared;
mod writer;

#[cfg(test)]
mod tests;

pub use recover::Recovery;
pub use rewrite::Rewrite;

use crate::command::{RawKey, Write};
use crate::error::{Error, Result};
use crate::limits::*;
use files::{Disk, Files, OpenFile};
use format::{FileHeader, Line, new_salt};
use manifest::{Entry, Manifest};
use parking_lot::Mutex;
use recover::Found;
use settle::Settle;
use shared::{Buffer, Layout, Shared};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use writer::Writer;

/// Redis' names for its folder and files, so that it finds them without being told.
const FOLDER_NAME: &str = "appendonlydir";
const MANIFEST_NAME: &str = "appendonly.aof.manifest";
const MANIFEST_TEMP_NAME: &str = "temp-appendonly.aof.manifest";
const LOCK_NAME: &str = "lock";

/// Something to do once a transaction is safe. It must be short and must not call the journal.
pub type Delivery = Box<dyn FnOnce() + Send>;

/// When a transaction counts as safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Before its caller hears of it. Nothing that was answered is ever lost.
    Always,
    /// Within a second. A loss of power takes at most what was committed since the last sync.
    #[default]
    EverySec,
    /// When the operating system sees fit. A crash of the process takes milliseconds, a loss of power half a minute.
    No,
}

/// Where and how the journal is kept.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// The data folder; the journal is its subfolder `appendonlydir`.
    pub dir: PathBuf,
    /// When a transaction counts as safe.
    pub durability: Durability,
    /// The file system.
    pub files: Arc<dyn Files>,
    /// Opens a damaged journal: keeps everything before the damage and sets the rest aside. For once, by hand.
    pub cut_damage: bool,
    /// Bytes that may wait for the disk before appending waits too.
    pub buffer_bytes_max: usize,
    /// No rewrite is asked for below this size.
    pub rewrite_bytes_min: u64,
}

impl JournalOptions {
    /// On the real disk, synced every second.
    pub fn new(dir: impl Into<PathBuf>) -> JournalOptions {
        JournalOptions {
            dir: dir.into(),
            durability: Durability::default(),
            files: Arc::new(Disk),
            cut_damage: false,
            buffer_bytes_max: JOURNAL_BUFFER_BYTES_MAX,
            rewrite_bytes_min: JOURNAL_REWRITE_BYTES_MIN,
        }
    }
}

/// An open journal.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (appended, synced) = (self.appended(), self.synced());
        f.debug_struct("Journal")
            .field("appended", &appended)
            .field("synced", &synced)
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// Loads the folder into `apply`, in order, and begins to write. A torn end is cut and reported; anything
    /// else that is not as it was written is [`Error::DamagedJournal`], and the folder stays as it is.
    pub fn open(
        options: JournalOptions,
        apply: &mut dyn FnMut(RawKey, Write) -> Result<()>,
    ) -> Result<(Journal, Recovery)> {
        let (journal, recovery, writer) = Journal::open_by_hand(options, apply)?;
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(|| writer.run());
        *journal.thread.lock() = Some(thread.map_err(|error| folder_error(&journal.shared.dir, error))?);
        Ok((journal, recovery))
    }

    /// The same without the thread: nothing is written unless the caller turns the writer.
    fn open_by_hand(
        options: JournalOptions,
        apply: &mut dyn FnMut(RawKey, Write) -> Result<()>,
    ) -> Result<(Journal, Recovery, Writer)> {
        let JournalOptions { dir, durability, files, cut_damage, buffer_bytes_max, rewrite_bytes_min } =
            options;
        let dir = make_folder(&*files, &dir)?;
        let lock = lock::take(&*files, &dir)?;
        let (mut manifest, mut found) = repair::load(&*files, &dir, cut_damage, apply)?;
        let (file, salt) = open_tail(&*files, &dir, &mut manifest, &mut found)?;
        remove_unlisted(&*files, &dir, &manifest);
        let current = manifest.next_number() - 1;
        let shared = Arc::new(Shared {
            files,
            dir,
            durability,
            buffer_bytes_max,
            buffer: Mutex::new(Buffer {
                sequence: found.sequence,
                salt,
                wake_at: usize::MAX,
                ..Buffer::default()
            }),
            work: Default::default(),
            room: Default::default(),
            layout: Mutex::new(Layout { manifest, current, bytes_at_switch: 0, lock: Some(lock) }),
            switched: Default::default(),
            appended: found.sequence.into(),
            synced: found.sequence.into(),
            in_flight: 0.into(),
            next_number: (current + 1).into(),
            rewriting: false.into(),
            disk_bytes: found.bytes.into(),
            base_bytes: found.base_bytes.into(),
            rewrite_bytes_min,
            rewrite_above: rewrite_bytes_min.into(),
            waiters: Default::default(),
            stopped: Default::default(),
        });
        let writer = Writer::new(Arc::clone(&shared), file, salt);
        Ok((Journal { shared, thread: Mutex::new(None) }, found.recovery, writer))
    }

    /// Appends a transaction and answers its number. Called with the locks of its keys held, so it only copies
    /// bytes; it waits if more than `buffer_bytes_max` are on their way to the disk. `messages` are run in order:
    /// with `Always` after the sync, otherwise after the write. After a failed write or sync it is `JournalStopped`.
    pub fn append(&self, writes: &[(RawKey, Write)], messages: Vec<Delivery>) -> Result<u64> {
        self.shared.append(writes, messages)
    }

    /// Number of the last appended transaction.
    pub fn appended(&self) -> u64 {
        self.shared.appended.load(Ordering::Acquire)
    }

    /// Number of the last transaction that is on disk for certain.
    pub fn synced(&self) -> u64 {
        self.shared.synced.load(Ordering::Acquire)
    }

    /// With `Always`: waits until the transaction is on disk, or for the reason why it may not be. Otherwise
    /// ready at once. Needs no runtime.
    pub fn settle(&self, sequence: u64) -> impl Future<Output = Result<()>> + Send + '_ {
        Settle { shared: &self.shared, sequence, registered: None }
    }

    /// Whether the files have outgrown the state they describe. After a rewrite that was not finished, only when
    /// they have grown further.
    pub fn wants_rewrite(&self) -> bool {
        let size = self.shared.disk_bytes.load(Ordering::Relaxed);
        let base = self.shared.base_bytes.load(Ordering::Relaxed);
        let above = self.shared.rewrite_above.load(Ordering::Relaxed);
        let grown = size >= above && size / JOURNAL_REWRITE_GROWTH >= base;
        grown && self.shared.stopped.get().is_none() && !self.shared.rewriting.load(Ordering::Acquire)
    }

    /// Begins to replace the history by the state of this moment. Called while no transaction can be appended (all
    /// shard locks held), it only sets a mark; the files are switched by the writer. One rewrite at a time.
    pub fn begin_rewrite(&self) -> Result<Rewrite> {
        rewrite::begin(&self.shared)
    }

    /// Bytes that wait for the disk.
    pub fn pending_bytes(&self) -> u64 {
        self.shared.buffer.lock().bytes.len() as u64 + self.shared.in_flight.load(Ordering::Acquire)
    }

    /// Whether it takes records; the error is why it stopped.
    pub fn running(&self) -> Result<()> {
        self.shared.stopped.get().map_or(Ok(()), |stopped| Err(stopped.clone()))
    }

    /// Bytes of all files of the journal.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.disk_bytes.load(Ordering::Relaxed)
    }

    /// Writes and syncs what waits, stops the thread and frees the folder. Blocks. Later appends are `Closed`.
    pub fn close(&self) -> Result<()> {
        self.shared.buffer.lock().closing = true;
        self.shared.work.notify_one();
        self.shared.room.notify_all();
        let thread = self.thread.lock().take();
        if thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id()) {
            // A message held the last handle. The writer cannot wait for itself, but it ends by itself.
            return Ok(());
        }
        // A panic of the thread has been turned into `stopped`.
        let _ = thread.map(JoinHandle::join);
        let result = match self.shared.stopped.get() {
            Some(Error::Closed) | None => Ok(()),
            Some(stopped) => Err(stopped.clone()),
        };
        self.shared.refuse(Error::Closed);
        self.shared.layout.lock().lock = None;
        self.shared.switched.notify_all();
        result
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the journal was dropped after it had stopped");
        }
    }
}

/// Creates the journal's folder inside the data folder.
fn make_folder(files: &dyn Files, data: &Path) -> Result<PathBuf> {
    let dir = data.join(FOLDER_NAME);
    files.create_dir(&dir).map_err(|error| folder_error(&dir, error))?;
    files.sync_dir(data).map_err(|error| folder_error(data, error))?;
    Ok(dir)
}

/// Opens the last increment to append, or begins a new one if there is none of ours.
fn open_tail(
    files: &dyn Files,
    dir: &Path,
    manifest: &mut Manifest,
    found: &mut Found,
) -> Result<(Box<dyn OpenFile>, u32)> {
    let increment =
        manifest.entries.last().filter(|entry| entry.ours && entry.kind == format::FileKind::Increment);
    if let (Some(entry), Some(tail)) = (increment, found.tail) {
        let path = dir.join(&entry.name);
        let mut file = files.open(&path).map_err(|error| folder_error(&path, error))?;
        // What has been loaded is about to be seen; a killed process may not have synced it.
        file.sync().map_err(|error| folder_error(&path, error))?;
        return Ok((file, tail.salt));
    }
    let (kind, number, salt) = (format::FileKind::Increment, manifest.next_number(), new_salt());
    let entry = Entry::ours(kind, number);
    let header = FileHeader { kind, number, after: found.sequence, salt };
    let file = create_file(files, dir, &entry, header)?;
    manifest.entries.push(entry);
    manifest.store(files, dir).map_err(|error| folder_error(&dir.join(MANIFEST_NAME), error))?;
    found.bytes += file.size().map_err(|error| folder_error(dir, error))?;
    Ok((file, salt))
}

/// Creates a file with its header; when this returns, both survive a crash.
fn create_file(
    files: &dyn Files,
    dir: &Path,
    entry: &Entry,
    header: FileHeader,
) -> Result<Box<dyn OpenFile>> {
    let path = dir.join(&entry.name);
    let create = || {
        let mut line = Vec::new();
        Line::File(header).encode(&mut line, header.salt);
        let mut file = files.create(&path)?;
        files::append_all(&mut *file, &line)?;
        file.sync()?;
        files.sync_dir(dir)?;
        Ok(file)
    };
    create().map_err(|error| folder_error(&path, error))
}

/// Removes what a crash left behind: files with our names that no manifest names.
fn remove_unlisted(files: &dyn Files, dir: &Path, manifest: &Manifest) {
    for name in files.list(dir).unwrap_or_default() {
        let listed = manifest.entries.iter().any(|entry| entry.name == name);
        if is_data_name(&name) && !listed && files.remove(&dir.join(&name)).is_err() {
            tracing::warn!(%name, "cannot remove a file that the journal no longer needs");
        }
    }
}

/// Whether the name is one that we give: `appendonly.aof.<n>.base.aof` or `.incr.aof`.
fn is_data_name(name: &str) -> bool {
    let number = name
        .strip_prefix("appendonly.aof.")
        .and_then(|rest| rest.strip_suffix(".base.aof").or_else(|| rest.strip_suffix(".incr.aof")));
    number.is_some_and(|number| format::decimal(number.as_bytes()).is_some())
}

fn folder_error(path: &Path, error: io::Error) -> Error {
    Error::Folder { path: path.display().to_string(), problem: error.to_string() }
}
