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
//! | `reader`, `recover`, `external` | loading |
//! | `repair`, `unlisted` | cutting torn ends and, if told to, damage; files that no manifest names |
//! | `shared`, `tail`, `writer`, `settle` | appending, space ahead, group commit, waiting |
//! | `rewrite` | replacing a grown history by the state |
//! | `files`, `disk_log`, `mapped` | the disk, and how space in a file is reserved and written |
//! | `faulty`, `lock` | a disk that forgets, one process per folder |

mod decode;
mod disk_log;
pub mod faulty;
pub mod files;
mod format;
mod lock;
mod manifest;
#[cfg(target_os = "linux")]
mod mapped;
mod reader;
mod recover;
mod redis_aof;
mod repair;
mod rewrite;
mod shared;
mod tail;
mod unlisted;
mod wait_durable;
mod writer;

#[cfg(test)]
mod tests;

pub use recover::Recovery;
pub use repair::Examination;
pub use rewrite::{Prepared, Rewrite};

use crate::command::{RawKey, Write};
use crate::error::{Error, Result};
use crate::limits::*;
use files::{Disk, Files, OpenFile};
use format::{FileHeader, Line, new_salt};
use manifest::{Entry, Manifest};
use parking_lot::Mutex;
use recover::Found;
use shared::{Layout, Log, Shared, quietly};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle, ThreadId};
use tail::Tail;
use wait_durable::WaitDurable;
use writer::Writer;

/// Redis' names for its folder and files, so that it finds them without being told.
const FOLDER_NAME: &str = "appendonlydir";
const MANIFEST_NAME: &str = "appendonly.aof.manifest";
const MANIFEST_TEMP_NAME: &str = "temp-appendonly.aof.manifest";
const LOCK_NAME: &str = "lock";

/// Something to do once a transaction is safe. It must be short and must not call the journal.
pub type Delivery = Box<dyn FnOnce() + Send>;

/// What an answer promises. The modes are those of Redis' `appendfsync`.
///
/// | mode | the process dies (`kill -9`, a crash) | the power goes, the system crashes |
/// |---|---|---|
/// | `Always` | nothing that was answered is lost | nothing that was answered is lost |
/// | `EverySec` | nothing that was answered is lost | at most what was answered in the last second |
/// | `No` | no promise | no promise; usually the last half minute |
///
/// "Answered" includes reads: what a transaction has seen is not lost where its answer is not. In every mode a start
/// finds whole transactions, in their order, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A transaction is on disk before its caller gets the answer.
    Always,
    /// A transaction is in the file before its caller gets the answer, and on disk within a second.
    #[default]
    EverySec,
    /// The operating system writes when it sees fit; the journal syncs once a minute.
    No,
}

/// Where and how the journal is kept.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// The data folder; the journal is its subfolder `appendonlydir`.
    pub dir: PathBuf,
    /// What an answer promises.
    pub durability: Durability,
    /// The file system.
    pub files: Arc<dyn Files>,
    /// Opens a damaged journal: keeps everything before the damage and sets the rest aside. For once, by hand.
    pub cut_damage: bool,
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
            rewrite_bytes_min: JOURNAL_REWRITE_BYTES_MIN,
        }
    }
}

/// An open journal.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The writer's thread; `None` while the caller turns the writer.
    writer: Option<ThreadId>,
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
        let (mut journal, recovery, writer) = Journal::open_by_hand(options, apply)?;
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(|| writer.run());
        let thread = thread.map_err(|error| folder_error(&journal.shared.dir, error))?;
        journal.writer = Some(thread.thread().id());
        *journal.thread.get_mut() = Some(thread);
        Ok((journal, recovery))
    }

    /// Says what a data folder holds and where it is damaged. Changes no file; refused while a process uses the folder.
    pub fn examine(data: &Path) -> Result<Examination> {
        let dir = data.join(FOLDER_NAME);
        // A folder that is not there must not be made by looking at it.
        Disk.list(&dir).map_err(|error| folder_error(&dir, error))?;
        let _lock = lock::take(&Disk, &dir)?;
        repair::examine(&Disk, &dir)
    }

    /// [`open`](Journal::open) without the thread: nothing is synced unless the caller turns the writer.
    fn open_by_hand(
        options: JournalOptions,
        apply: &mut dyn FnMut(RawKey, Write) -> Result<()>,
    ) -> Result<(Journal, Recovery, Writer)> {
        let JournalOptions { dir, durability, files, cut_damage, rewrite_bytes_min } = options;
        let dir = make_folder(&*files, &dir)?;
        let lock = lock::take(&*files, &dir)?;
        let (mut manifest, mut found) = repair::load(&*files, &dir, cut_damage, apply)?;
        let tail = open_tail(&*files, &dir, &mut manifest, &mut found)?;
        let next_number = manifest.next_number();
        let log = Log::new(found.sequence, tail, found.bytes);
        let shared = Arc::new(Shared {
            files,
            dir,
            durability,
            synced_bytes: log.disk_bytes().into(),
            log: Mutex::new(log),
            work: Default::default(),
            room: Default::default(),
            layout: Mutex::new(Layout { manifest, lock: Some(lock) }),
            appended: found.sequence.into(),
            synced: found.sequence.into(),
            next_number: next_number.into(),
            rewriting: false.into(),
            base_bytes: found.base_bytes.into(),
            rewrite_bytes_min,
            rewrite_above: rewrite_bytes_min.into(),
            waiters: Default::default(),
            stopped: Default::default(),
        });
        let writer = Writer::new(Arc::clone(&shared));
        Ok((Journal { shared, thread: Mutex::new(None), writer: None }, found.recovery, writer))
    }

    /// Appends a transaction and answers its number. When this returns, the death of the process does not lose it.
    /// Called with the locks of its keys held, so it only copies bytes into space that was reserved ahead. `messages`
    /// are run in order by the journal's thread, with `Always` after the sync. On a full disk, and for good after a
    /// failed write or sync, it is `JournalStopped`; then the transaction is not in the journal.
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
    pub fn wait_durable(&self, sequence: u64) -> impl Future<Output = Result<()>> + Send + '_ {
        WaitDurable { shared: &self.shared, sequence, registered: None }
    }

    /// Whether the files have outgrown the state they describe. After a rewrite that was not finished, only when
    /// they have grown further.
    pub fn wants_rewrite(&self) -> bool {
        let size = self.disk_bytes();
        let base = self.shared.base_bytes.load(Ordering::Relaxed);
        let above = self.shared.rewrite_above.load(Ordering::Relaxed);
        let grown = size >= above && size / JOURNAL_REWRITE_GROWTH >= base;
        grown && self.running().is_ok() && !self.shared.rewriting.load(Ordering::Acquire)
    }

    /// Makes the files of a rewrite. Blocks for some syncs; transactions go on meanwhile. One rewrite at a time.
    pub fn prepare_rewrite(&self) -> Result<Prepared> {
        rewrite::prepare(&self.shared)
    }

    /// Begins to replace the history by the state of this moment, for callers that hold no lock:
    /// [`prepare_rewrite`](Journal::prepare_rewrite) and [`Prepared::cut`] in one.
    pub fn begin_rewrite(&self) -> Result<Rewrite> {
        self.prepare_rewrite()?.cut()
    }

    /// Bytes that were appended since the last sync.
    pub fn pending_bytes(&self) -> u64 {
        if self.synced() == self.appended() {
            return 0;
        }
        self.disk_bytes().saturating_sub(self.shared.synced_bytes.load(Ordering::Relaxed))
    }

    /// Whether it takes records now; the error is why not. A full disk is such an error until it has space again.
    pub fn running(&self) -> Result<()> {
        self.shared.takes_records(&self.shared.log.lock())
    }

    /// Whether it has stopped for good, and why: only opening the store again helps. A full disk is no such reason.
    pub fn stopped(&self) -> Option<Error> {
        self.shared.stopped.get().cloned()
    }

    /// Bytes of all files of the journal, without space that is only reserved.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.log.lock().disk_bytes()
    }

    /// Syncs, cuts the file to its content, stops the thread and frees the folder. Blocks. Later appends are `Closed`.
    pub fn close(&self) -> Result<()> {
        self.shared.log.lock().closing = true;
        self.shared.work.notify_one();
        self.shared.room.notify_all();
        if self.writer == Some(thread::current().id()) {
            // A message held the last handle. The writer cannot wait for itself, but it ends by itself.
            return Ok(());
        }
        // Locked until the thread has ended: another caller that closes waits for the last sync, too.
        let mut thread = self.thread.lock();
        // A panic of the thread has been turned into `stopped`.
        let _ = thread.take().map(JoinHandle::join);
        let result = match self.shared.stopped.get() {
            Some(Error::Closed) | None => Ok(()),
            Some(stopped) => Err(stopped.clone()),
        };
        self.shared.refuse(Error::Closed);
        self.shared.layout.lock().lock = None;
        result
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            quietly(|| tracing::error!(%error, "the journal was dropped after it had stopped"));
        }
    }
}

/// Creates the journal's folder inside the data folder. New folders are durable when this returns.
fn make_folder(files: &dyn Files, data: &Path) -> Result<PathBuf> {
    let dir = data.join(FOLDER_NAME);
    make_dir(files, &dir).map_err(|error| folder_error(&dir, error))?;
    files.sync_dir(data).map_err(|error| folder_error(data, error))?;
    Ok(dir)
}

/// Creates a folder and those above it; each that is new is synced into the one that holds it.
fn make_dir(files: &dyn Files, dir: &Path) -> io::Result<()> {
    let parent =
        dir.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let created = match (files.create_dir(dir), parent) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_dir(files, parent)?;
            files.create_dir(dir)?
        }
        (created, _) => created?,
    };
    match parent {
        Some(parent) if created => files.sync_dir(parent),
        _ => Ok(()),
    }
}

/// Opens the last increment to append, or begins a new one if there is none of ours.
fn open_tail(files: &dyn Files, dir: &Path, manifest: &mut Manifest, found: &mut Found) -> Result<Tail> {
    let increment =
        manifest.entries.last().filter(|entry| entry.ours && entry.kind == format::FileKind::Increment);
    if let (Some(entry), Some(tail)) = (increment, found.tail) {
        let path = dir.join(&entry.name);
        let open = || {
            let file = files.open_log(&path)?;
            // What has been loaded is about to be seen; a killed process may not have synced it.
            file.sync()?;
            let is_proved = found.proved >= found.sequence;
            let end = if is_proved { tail.bytes } else { mark_end(files, &path, &tail, found.sequence)? };
            Ok(Tail::new(file, end, tail.salt))
        };
        let opened = open().map_err(|error| folder_error(&path, error))?;
        found.bytes -= tail.bytes;
        return Ok(opened);
    }
    let (kind, number, salt) = (format::FileKind::Increment, manifest.next_number(), new_salt());
    let entry = Entry::ours(kind, number);
    let header = FileHeader { kind, number, after: found.sequence, salt };
    let path = dir.join(&entry.name);
    let failed = |error| folder_error(&path, error);
    let end = create_file(files, dir, &entry, header)?.size().map_err(failed)?;
    let file = files.open_log(&path).map_err(failed)?;
    manifest.entries.push(entry);
    manifest.store(files, dir).map_err(|error| folder_error(&dir.join(MANIFEST_NAME), error))?;
    Ok(Tail::new(file, end, salt))
}

/// Puts a mark behind what was loaded and synced just now: broken later, it is damage and no torn end. Answers where the
/// file ends; on a full disk the mark may be missing.
fn mark_end(files: &dyn Files, path: &Path, tail: &recover::Tail, sequence: u64) -> io::Result<u64> {
    let mut line = Vec::new();
    Line::Synced(sequence).encode(&mut line, tail.salt);
    let mut file = files.open(path)?;
    if files::append_all(&mut *file, &line).is_ok() {
        return Ok(tail.bytes + line.len() as u64);
    }
    file.truncate(tail.bytes)?;
    Ok(tail.bytes)
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

fn folder_error(path: &Path, error: io::Error) -> Error {
    Error::Folder { path: path.display().to_string(), problem: error.to_string() }
}
