//! The file system under the journal: the interface, and the real disk.
//!
//! Everything the journal does to files goes through [`Files`], so that tests can simulate a power failure
//! between any two calls (`fault_disk`).
//!
//! There are two ways to write. Bases and manifests are appended and then synced as a whole ([`OpenFile`]).
//! Transactions are copied into space that was reserved before ([`LogFile`]): a full disk is an error before
//! the write, and copied bytes survive the death of the process without a system call for each transaction.

use super::log_file::DiskLogFile;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// The operations that the journal needs from a file system.
pub trait Files: fmt::Debug + Send + Sync {
    /// Creates a folder, whose parent must exist; `false` if it exists already.
    fn create_dir(&self, path: &Path) -> io::Result<bool>;
    /// Names of the files in a folder, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates an empty file, in place of whatever has the name.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Opens an existing file to read and to append.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Opens an existing file to write transactions into reserved space behind its content.
    fn open_log(&self, path: &Path) -> io::Result<Arc<dyn LogFile>>;
    /// Gives a file another name, in place of whatever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; durable after [`sync_dir`](Files::sync_dir).
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in the folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the file as a lock and leaves `note` in it. Never waits.
    fn try_lock(&self, path: &Path, note: &str) -> io::Result<TryLock>;
}

/// A file that is read at any place and written at its end.
pub trait OpenFile: Send {
    /// Bytes in the file.
    fn size(&self) -> io::Result<u64>;
    /// Reads up to `into.len()` bytes from `offset`; 0 at the end.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes at the end and says how many bytes it took, as `write(2)`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes all written bytes durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file to `bytes`.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
}

/// A file that takes transactions. It grows by reserving space; bytes that were not written yet are zeros.
pub trait LogFile: Send + Sync {
    /// Reserves `bytes` behind the first `from`. Afterwards writing them cannot fail for want of space.
    /// `prefault` also brings the space into memory, which takes time but makes the writes faster.
    fn reserve(&self, from: u64, bytes: usize, prefault: bool) -> io::Result<Box<dyn Space>>;
    /// Makes everything durable that was written before the call, and the file's size.
    fn sync(&self) -> io::Result<()>;
    /// Cuts the file to `bytes`. No space beyond them may be written afterwards.
    fn truncate(&self, bytes: u64) -> io::Result<()>;
}

/// Reserved space of a [`LogFile`].
pub trait Space: Send {
    /// Bytes of the space.
    fn bytes(&self) -> usize;
    /// Copies bytes to the place `at` inside the space. When this returns, they survive the death of the
    /// process; a power loss, only after a sync. An error means that part of them may be there.
    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()>;
}

/// The answer to [`Files::try_lock`].
pub enum TryLock {
    /// It is ours until this is dropped.
    Taken(Box<dyn Send + Sync>),
    /// Another process has it; its note is empty if it cannot be read.
    Busy(String),
}

/// Appends everything, whatever the file takes at a time.
pub(super) fn append_all(file: &mut dyn OpenFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::WriteZero, "the file takes no more bytes")),
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The file system of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
            created => created.map(|()| true),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // Names that are no UTF-8 are never ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        // `append` and `truncate` exclude each other in std.
        private().write(true).create(true).truncate(true).open(path)?;
        self.open(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(DiskFile(OpenOptions::new().read(true).append(true).open(path)?)))
    }

    fn open_log(&self, path: &Path) -> io::Result<Arc<dyn LogFile>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Arc::new(DiskLogFile::new(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Only Unix lets a folder be opened and synced; elsewhere the file system orders its own names.
        if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
    }

    fn try_lock(&self, path: &Path, note: &str) -> io::Result<TryLock> {
        let mut file = private().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(note.as_bytes())?;
                Ok(TryLock::Taken(Box::new(file)))
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // A locked file cannot be read everywhere; then the holder stays unnamed.
                let _ = file.read_to_string(&mut holder);
                Ok(TryLock::Busy(holder))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Options that make new files readable for their owner alone: they hold names and device ids of players.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

struct DiskFile(File);

impl OpenFile for DiskFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.seek(SeekFrom::Start(offset))?;
        self.0.read(into)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
}
