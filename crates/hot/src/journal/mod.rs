//! The journal: a write-ahead log of every committed transaction, in a serial order.
//!
//! Responsible for: the promised durability, refusing to load damaged data, a folder that `redis-server` 7
//! loads too. Not responsible for: the meaning of the writes, locks, deadlines.
//!
//! | file | what |
//! |---|---|
//! | `format` | the file format, what a crash can leave, encoding |
//! | `decode` | Redis commands back into writes |
//! | `manifest` | the list of files, in order |
//! | `reader`, `recover`, `redis_aof` | loading; files that Redis wrote |
//! | `repair`, `unlisted_files` | cutting torn ends and, on request, damage; files that the manifest does not name |
//! | `state`, `active_file`, `writer`, `wait_durable` | appending, reserved space, group commit, waiting |
//! | `rewrite` | replacing a grown history by the state |
//! | `segment` | the format for other logs on disk |
//! | `files`, `log_file`, `mapped_space`, `lock` | the file system, reserved space in a file, one process per folder |
//! | `fault_disk` | a file system for tests that loses unsynced data and fails on request |

mod active_file;
mod decode;
#[cfg(any(test, feature = "testing"))]
pub mod fault_disk;
pub mod files;
mod format;
mod lock;
mod log_file;
mod manifest;
#[cfg(target_os = "linux")]
mod mapped_space;
mod reader;
mod recover;
mod redis_aof;
mod repair;
mod rewrite;
pub mod segment;
mod state;
mod unlisted_files;
mod wait_durable;
mod writer;

#[cfg(test)]
mod tests;

pub use recover::Recovery;
pub use repair::Examination;
pub use rewrite::{PreparedRewrite, Rewrite};

use crate::command::{RawKey, Write};
use crate::error::{Error, Result};
use crate::limits::*;
use active_file::ActiveFile;
use files::{Disk, Files, OpenFile};
use format::{FileHeader, Line, new_salt};
use manifest::{Entry, Manifest};
use parking_lot::Mutex;
use recover::LoadResult;
use state::{FolderState, JournalState, Log, catch_panic};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle, ThreadId};
use wait_durable::WaitDurable;
use writer::Writer;

/// The names that Redis gives its folder and files, so that it finds them by default.
const FOLDER_NAME: &str = "appendonlydir";
const MANIFEST_NAME: &str = "appendonly.aof.manifest";
const MANIFEST_TEMP_NAME: &str = "temp-appendonly.aof.manifest";
const LOCK_NAME: &str = "lock";

/// A callback after a transaction is safe. It must be short and must not call the journal.
pub type Delivery = Box<dyn FnOnce() + Send>;

/// What a successful answer promises. The modes are those of Redis' `appendfsync`.
///
/// | mode | the process dies (`kill -9`, a crash) | the power fails, the system crashes |
/// |---|---|---|
/// | `Always` | nothing that was answered is lost | nothing that was answered is lost |
/// | `EverySec` | nothing that was answered is lost | at most what was answered in the last second |
/// | `No` | no promise | no promise; usually the last half minute |
///
/// "Answered" includes reads: what a transaction has read is as durable as its own writes. In every mode a
/// start loads whole transactions, in their order, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A transaction is on disk before its caller gets the answer.
    Always,
    /// A transaction is in the file before its caller gets the answer, and on disk within a second.
    #[default]
    EverySec,
    /// The operating system decides when to write; the journal syncs once a minute.
    No,
}

/// Options of a journal.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// The data folder; the journal is its subfolder `appendonlydir`.
    pub dir: PathBuf,
    /// What an answer promises.
    pub durability: Durability,
    /// The file system; tests give one that can fail.
    pub files: Arc<dyn Files>,
    /// Opens a damaged journal: keeps everything before the damage and sets the rest aside. Set it for one
    /// start only.
    pub cut_damage: bool,
    /// No rewrite starts below this size.
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

/// An open journal. Any thread may append to it.
pub struct Journal {
    state: Arc<JournalState>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The writer's thread; `None` if the caller runs the writer.
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
    /// Loads the folder into `apply`, in order, and opens it for writing. A torn end is cut and reported;
    /// any other difference from what was written is [`Error::DamagedJournal`], and the folder is not
    /// changed.
    pub fn open(
        options: JournalOptions,
        apply: &mut dyn FnMut(RawKey, Write) -> Result<()>,
    ) -> Result<(Journal, Recovery)> {
        let (mut journal, recovery, writer) = Journal::open_without_thread(options, apply)?;
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(|| writer.run());
        let thread = thread.map_err(|error| folder_error(&journal.state.dir, error))?;
        journal.writer = Some(thread.thread().id());
        *journal.thread.get_mut() = Some(thread);
        Ok((journal, recovery))
    }

    /// Reports what a data folder contains and where it is damaged. Changes no file. An error while a
    /// process uses the folder.
    pub fn examine(data: &Path) -> Result<Examination> {
        let dir = data.join(FOLDER_NAME);
        // An examination must not create a missing folder.
        Disk.list(&dir).map_err(|error| folder_error(&dir, error))?;
        let _lock = lock::take(&Disk, &dir)?;
        repair::examine(&Disk, &dir)
    }

    /// [`open`](Journal::open) without the thread: nothing is synced unless the caller runs the writer.
    fn open_without_thread(
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
        let state = Arc::new(JournalState {
            files,
            dir,
            durability,
            synced_bytes: log.disk_bytes().into(),
            log: Mutex::new(log),
            work: Default::default(),
            room: Default::default(),
            layout: Mutex::new(FolderState { manifest, lock: Some(lock) }),
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
        let writer = Writer::new(Arc::clone(&state));
        Ok((Journal { state, thread: Mutex::new(None), writer: None }, found.recovery, writer))
    }

    /// Appends a transaction and returns its number. After this the death of the process does not lose it.
    ///
    /// The caller holds the locks of its keys, so this only copies bytes into reserved space. The journal's
    /// thread runs `messages` in order, with `Always` after the sync. On a full disk, and permanently after
    /// a failed write or sync, the error is `JournalStopped`; then the transaction is not in the journal.
    pub fn append(&self, writes: &[(RawKey, Write)], messages: Vec<Delivery>) -> Result<u64> {
        self.state.append(writes, messages)
    }

    /// Number of the last appended transaction.
    pub fn appended(&self) -> u64 {
        self.state.appended.load(Ordering::Acquire)
    }

    /// Number of the last transaction that is durable.
    pub fn synced(&self) -> u64 {
        self.state.synced.load(Ordering::Acquire)
    }

    /// With `Always`: waits until the transaction is durable, or returns why it may not be. In the other
    /// modes it is ready at once. Needs no runtime.
    pub fn wait_durable(&self, sequence: u64) -> impl Future<Output = Result<()>> + Send + '_ {
        WaitDurable { state: &self.state, sequence, registered: None }
    }

    /// Whether the files have outgrown the state. After a failed rewrite, only when they have grown further.
    pub fn wants_rewrite(&self) -> bool {
        let size = self.disk_bytes();
        let base = self.state.base_bytes.load(Ordering::Relaxed);
        let above = self.state.rewrite_above.load(Ordering::Relaxed);
        let grown = size >= above && size / JOURNAL_REWRITE_GROWTH >= base;
        grown && self.running().is_ok() && !self.state.rewriting.load(Ordering::Acquire)
    }

    /// Creates the files of a rewrite. Blocks for some syncs; transactions continue meanwhile. One rewrite
    /// at a time.
    pub fn prepare_rewrite(&self) -> Result<PreparedRewrite> {
        rewrite::prepare(&self.state)
    }

    /// Begins to replace the history by the current state, for callers without locks:
    /// [`prepare_rewrite`](Journal::prepare_rewrite) and [`PreparedRewrite::cut`] in one.
    pub fn begin_rewrite(&self) -> Result<Rewrite> {
        self.prepare_rewrite()?.cut()
    }

    /// Bytes that were appended since the last sync.
    pub fn pending_bytes(&self) -> u64 {
        if self.synced() == self.appended() {
            return 0;
        }
        self.disk_bytes().saturating_sub(self.state.synced_bytes.load(Ordering::Relaxed))
    }

    /// Checks that it accepts transactions; the error says why not. A full disk is an error until it has
    /// space again.
    pub fn running(&self) -> Result<()> {
        self.state.takes_records(&self.state.log.lock())
    }

    /// Why it has stopped until a restart. `None` while it runs, and on a full disk.
    pub fn stopped(&self) -> Option<Error> {
        self.state.stopped.get().cloned()
    }

    /// Bytes of all files of the journal, without space that is only reserved.
    pub fn disk_bytes(&self) -> u64 {
        self.state.log.lock().disk_bytes()
    }

    /// Syncs, cuts the file to its content, stops the thread and frees the folder. Blocks. Later appends are
    /// `Closed`.
    pub fn close(&self) -> Result<()> {
        self.state.log.lock().closing = true;
        self.state.work.notify_one();
        self.state.room.notify_all();
        if self.writer == Some(thread::current().id()) {
            // A message owned the last handle, so this is the writer's thread. It cannot join itself, but it
            // will end.
            return Ok(());
        }
        // Locked until the thread has ended: another caller that closes waits for the last sync, too.
        let mut thread = self.thread.lock();
        // A panic of the thread has been turned into `stopped`.
        let _ = thread.take().map(JoinHandle::join);
        let result = match self.state.stopped.get() {
            Some(Error::Closed) | None => Ok(()),
            Some(stopped) => Err(stopped.clone()),
        };
        self.state.refuse(Error::Closed);
        self.state.layout.lock().lock = None;
        result
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            catch_panic(|| tracing::error!(%error, "the journal was dropped after it had stopped"));
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
fn open_tail(
    files: &dyn Files,
    dir: &Path,
    manifest: &mut Manifest,
    found: &mut LoadResult,
) -> Result<ActiveFile> {
    let increment =
        manifest.entries.last().filter(|entry| entry.ours && entry.kind == format::FileKind::Increment);
    if let (Some(entry), Some(tail)) = (increment, found.tail) {
        let path = dir.join(&entry.name);
        let open = || {
            let file = files.open_log(&path)?;
            // Callers are about to read what was loaded; a killed process may not have synced it.
            file.sync()?;
            let is_proved = found.proved >= found.sequence;
            let end = if is_proved { tail.bytes } else { mark_end(files, &path, &tail, found.sequence)? };
            Ok(ActiveFile::new(file, end, tail.salt))
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
    Ok(ActiveFile::new(file, end, salt))
}

/// Writes a mark after what was loaded and synced just now: if it breaks later, that is damage and not a
/// torn end. Returns the end of the file; on a full disk the mark may be missing.
fn mark_end(files: &dyn Files, path: &Path, tail: &recover::FileEnd, sequence: u64) -> io::Result<u64> {
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
