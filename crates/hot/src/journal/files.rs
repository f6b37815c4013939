//! The file layer under the journal: what it asks of an operating system, and the real disk.
//!
//! Everything the journal does to files goes through [`Files`], so that tests can take the power away between
//! any two calls (see [`faulty`](super::faulty)).

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// What the journal asks of a file system.
pub trait Files: fmt::Debug + Send + Sync {
    /// Creates a folder and its parents; an existing one is fine.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Names of the files in a folder, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates an empty file, in place of whatever has the name.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Opens an existing file to read and to append.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Gives a file another name, in place of whatever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
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

/// The answer to [`Files::try_lock`].
pub enum TryLock {
    /// Ours until dropped.
    Taken(Box<dyn Send + Sync>),
    /// Somebody else's, with the note they left (empty if it cannot be read).
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

/// The real disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
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
        File::create(path)?;
        self.open(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(DiskFile(OpenOptions::new().read(true).append(true).open(path)?)))
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
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
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
