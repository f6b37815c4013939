//! Recovery: reads every file in order, checks every byte, applies every transaction.
//!
//! It changes nothing on disk. The caller cuts torn ends after everything was loaded.

use super::decode::{Apply, CommandError, apply_body};
use super::files::Files;
use super::format::FileKind;
use super::manifest::{Entry, Manifest};
use super::reader::{Item, Reader, Window};
use super::{MANIFEST_NAME, folder_error, redis_aof, unlisted_files};
use crate::error::{Error, Result};
use std::io;
use std::path::Path;

/// What a start loaded from the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Transactions that were applied (a base counts its records).
    pub transactions: u64,
    /// Writes in those transactions.
    pub commands: u64,
    /// Bytes of a torn end that were cut off. They were never synced.
    pub cut_bytes: u64,
    /// Files that were read, in order.
    pub files: Vec<String>,
    /// Files that were kept under another name: with `cut_damage` those that are damaged or follow damage,
    /// and always those that hold records and that the manifest does not name.
    pub set_aside: Vec<String>,
}

/// What the writer needs to know after recovery.
#[derive(Debug, Default)]
pub(super) struct LoadResult {
    pub(super) recovery: Recovery,
    /// Number of the last transaction.
    pub(super) sequence: u64,
    /// The highest number that a mark or a header proves to be synced.
    pub(super) proved: u64,
    /// Where the last file read ends, if it is one of ours.
    pub(super) tail: Option<FileEnd>,
    /// Files to cut, by their position in the manifest, and to which length: torn ends and space never
    /// written.
    pub(super) cuts: Vec<(usize, u64)>,
    /// Bytes of all files, and of the base alone.
    pub(super) bytes: u64,
    pub(super) base_bytes: u64,
}

/// Where the last increment ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileEnd {
    /// Bytes of it that are whole.
    pub(super) bytes: u64,
    pub(super) salt: u32,
}

/// Where the journal stops being readable.
#[derive(Debug)]
pub(super) struct Damage {
    /// Position of the file in the manifest; `None` is the manifest itself.
    pub(super) file: Option<usize>,
    pub(super) offset: u64,
    pub(super) problem: String,
}

impl Damage {
    /// The error for the caller.
    pub(super) fn into_error(self, manifest: &Manifest) -> Error {
        let file = self.file.map_or(MANIFEST_NAME, |at| &manifest.entries[at].name);
        Error::DamagedJournal {
            file: file.to_owned(),
            offset: self.offset,
            problem: self.problem,
            remedy: REMEDY,
        }
    }
}

const REMEDY: &str = "nothing was changed; restore the folder from a copy, or run `emberkeep repair --data DIR` (in code: open it \
                      once with `cut_damage`), which keeps everything before this place and sets the rest aside";

/// Why loading ended early.
pub(super) enum LoadError {
    Damage(Damage),
    Error(Error),
}

impl From<Error> for LoadError {
    fn from(error: Error) -> LoadError {
        LoadError::Error(error)
    }
}

/// Reads the manifest; `None` if there is no journal yet.
pub(super) fn read_manifest(files: &dyn Files, dir: &Path) -> Result<Option<Manifest>, LoadError> {
    let path = dir.join(MANIFEST_NAME);
    let text = match files.open(&path) {
        Ok(file) => read_all(file).map_err(|error| folder_error(&path, error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return check_fresh(files, dir, "it is missing");
        }
        Err(error) => return Err(folder_error(&path, error).into()),
    };
    let damaged = |problem| LoadError::Damage(Damage { file: None, offset: 0, problem });
    let manifest = Manifest::decode(&text).map_err(damaged)?;
    if manifest.entries.is_empty() {
        return check_fresh(files, dir, "it names no file");
    }
    // The checksum of our manifest proves that it is complete. One of Redis may have lost a line.
    if !manifest.signed
        && let Some(name) = unlisted_files::with_records(files, dir, &manifest)?.first()
    {
        return Err(damaged(format!("it does not name {name}, which holds data")));
    }
    Ok(Some(manifest))
}

fn read_all(file: Box<dyn super::files::OpenFile>) -> io::Result<Vec<u8>> {
    let mut window = Window::new(file)?;
    let length = window.length() as usize;
    Ok(window.peek(length)?.to_vec())
}

/// Without a manifest the folder may contain the first file of an interrupted start, but no transaction.
fn check_fresh(files: &dyn Files, dir: &Path, problem: &str) -> Result<Option<Manifest>, LoadError> {
    let names = unlisted_files::with_records(files, dir, &Manifest::default())?;
    let Some(name) = names.first() else { return Ok(None) };
    let problem = format!("{problem}, but {name} holds data");
    Err(LoadError::Damage(Damage { file: None, offset: 0, problem }))
}

/// Applies all files of the manifest to `apply`.
pub(super) fn recover(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    apply: Apply<'_>,
    found: &mut LoadResult,
) -> Result<(), LoadError> {
    for (at, entry) in manifest.entries.iter().enumerate() {
        let mut pass = FileLoader { files, dir, at, entry, later: &manifest.entries[at + 1..], apply, found };
        pass.file()?;
    }
    Ok(())
}

/// The load of one file of the manifest.
struct FileLoader<'a, 'b> {
    files: &'a dyn Files,
    dir: &'a Path,
    at: usize,
    entry: &'a Entry,
    /// The files after it.
    later: &'a [Entry],
    apply: Apply<'b>,
    found: &'a mut LoadResult,
}

impl FileLoader<'_, '_> {
    fn damage(&self, offset: u64, problem: impl Into<String>) -> LoadError {
        LoadError::Damage(Damage { file: Some(self.at), offset, problem: problem.into() })
    }

    fn file(&mut self) -> Result<(), LoadError> {
        let path = self.dir.join(&self.entry.name);
        let io = |error| LoadError::Error(folder_error(&path, error));
        let window = match self.files.open(&path) {
            Ok(file) => Window::new(file).map_err(io)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.damage(0, "the manifest names it, but it is missing"));
            }
            Err(error) => return Err(io(error)),
        };
        let bytes = window.length();
        self.found.recovery.files.push(self.entry.name.clone());
        self.found.bytes += bytes;
        if self.entry.kind == FileKind::Base {
            self.found.base_bytes = bytes;
        }
        if !self.entry.ours {
            return self.external(window).map_err(|stop| stop.or_io(io));
        }
        match Reader::open(window).map_err(io)? {
            Some(reader) => self.ours(reader).map_err(|stop| stop.or_io(io)),
            None => Err(self.damage(0, "its first line is not readable")),
        }
    }

    fn external(&mut self, window: Window) -> Result<(), FileError> {
        let (mut commands, recovery) = (0, &mut self.found.recovery);
        let read = redis_aof::read(window, self.apply, &mut commands);
        recovery.commands += commands;
        recovery.transactions += commands;
        self.found.tail = None;
        read.map_err(|(offset, stop)| self.stopped(offset, stop))
    }

    fn stopped(&self, offset: u64, stop: redis_aof::AofError) -> FileError {
        match stop {
            redis_aof::AofError::Io(error) => FileError::Io(error),
            redis_aof::AofError::CommandError(fault) => self.faulted(offset, fault),
        }
    }

    fn faulted(&self, offset: u64, fault: CommandError) -> FileError {
        match fault {
            CommandError::Incomplete => self.damage(offset, "a command is cut short").into(),
            CommandError::Bad(problem) => self.damage(offset, problem).into(),
            CommandError::Refused(error) => FileError::LoadError(LoadError::Error(error)),
        }
    }

    fn ours(&mut self, mut reader: Reader) -> Result<(), FileError> {
        self.check_header(&reader)?;
        match self.entry.kind {
            FileKind::Base => self.base(&mut reader),
            FileKind::Increment => self.increment(&mut reader),
        }
    }

    fn check_header(&mut self, reader: &Reader) -> Result<(), LoadError> {
        let header = reader.header;
        if (header.kind, header.number) != (self.entry.kind, self.entry.number) {
            return Err(self.damage(0, "it is another file under this name"));
        }
        if self.at == 0 && header.kind == FileKind::Increment && header.after > 0 {
            let problem =
                format!("it goes on after transaction {}, but there is no file before it", header.after);
            return Err(self.damage(0, problem));
        }
        // The header states what was on disk when the file was begun. If the files before it end earlier, one of
        // them lost transactions that had been acknowledged.
        // Files of Redis have no sequence numbers, so the first file of ours defines the start.
        let first = self.found.tail.is_none();
        if !first && header.after > self.found.sequence {
            let problem = format!(
                "it was begun when transaction {} was on disk, but the files before it end with {}",
                header.after, self.found.sequence
            );
            return Err(self.damage(0, problem));
        }
        if first {
            self.found.sequence = header.after;
        }
        self.found.proved = self.found.proved.max(header.after);
        Ok(())
    }

    fn base(&mut self, reader: &mut Reader) -> Result<(), FileError> {
        // A base is complete and synced before a manifest names it. No crash tears it, so everything that is
        // missing here is damage, its end line included.
        let mut records = 0;
        loop {
            let offset = reader.offset();
            match reader.next()? {
                Item::Record(header, body) if header.sequence == records + 1 => {
                    records += 1;
                    self.apply(offset, body)?;
                }
                Item::End(stated) if stated == records => break,
                Item::Record(..) | Item::End(_) | Item::Synced(_) => {
                    return Err(self.damage(offset, "records of the base are missing").into());
                }
                Item::EndOfFile => return Err(self.damage(offset, "the base has no end").into()),
                Item::Broken(problem) => return Err(self.damage(offset, problem).into()),
            }
        }
        let offset = reader.offset();
        match reader.next()? {
            Item::EndOfFile => {
                self.found.tail = Some(FileEnd { bytes: 0, salt: 0 });
                Ok(())
            }
            _ => Err(self.damage(offset, "the base goes on behind its end").into()),
        }
    }

    fn increment(&mut self, reader: &mut Reader) -> Result<(), FileError> {
        let mut first = true;
        loop {
            let (offset, expected) = (reader.offset(), self.found.sequence + 1);
            match reader.next()? {
                Item::Record(header, body) if header.sequence == expected => {
                    self.apply(offset, body)?;
                    self.found.sequence = expected;
                }
                Item::Record(header, _) => {
                    let problem = format!("transaction {} follows {}", header.sequence, expected - 1);
                    // No crash leaves a gap inside a file. Between files it means that the end of the file
                    // before is torn.
                    if !first || self.at == 0 || header.sequence < expected {
                        return Err(self.damage(offset, problem).into());
                    }
                    return self.torn(reader, offset, &problem);
                }
                Item::Synced(through) if through < expected => {
                    self.found.proved = self.found.proved.max(through);
                    continue;
                }
                Item::Synced(_) => {
                    return Err(self.damage(offset, "transactions before this mark are missing").into());
                }
                Item::End(_) => return Err(self.damage(offset, "an increment has no end line").into()),
                Item::EndOfFile => {
                    self.found.tail = Some(FileEnd { bytes: offset, salt: reader.header.salt });
                    return Ok(());
                }
                Item::Broken(problem) => return self.torn(reader, offset, problem),
            }
            first = false;
        }
    }

    /// Reading stops at `offset`. If nothing but zeros follows, the file ends there. Other bytes are a torn
    /// end, unless a mark in this file or in a later one proves that the record had been synced: then they
    /// are damage.
    fn torn(&mut self, reader: &mut Reader, offset: u64, problem: &str) -> Result<(), FileError> {
        let rest = reader.rest(offset, self.found.sequence + 1)?;
        let torn = rest.content_end - offset;
        if rest.marked || (torn > 0 && self.marked_later()?) {
            return Err(self.damage(offset, problem).into());
        }
        // Never acknowledged as durable, so cutting it loses nothing that was promised.
        self.found.recovery.cut_bytes += torn;
        self.found.bytes -= reader.window.length() - offset;
        self.found.cuts.push((self.at, offset));
        self.found.tail = Some(FileEnd { bytes: offset, salt: reader.header.salt });
        Ok(())
    }

    /// Whether a later file has a mark for the transaction that is missing here. A header is synced before a
    /// manifest names its file, so an unreadable header is damage too, not a torn end.
    fn marked_later(&self) -> io::Result<bool> {
        let sequence = self.found.sequence + 1;
        for entry in self.later {
            let file = match self.files.open(&self.dir.join(&entry.name)) {
                // A missing file may have contained the mark.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                file => file?,
            };
            let Some(mut reader) = Reader::open(Window::new(file)?)? else { return Ok(true) };
            if reader.rest(0, sequence)?.marked {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn apply(&mut self, offset: u64, body: &[u8]) -> Result<(), FileError> {
        let commands = apply_body(body, self.apply).map_err(|fault| self.faulted(offset, fault))?;
        self.found.recovery.transactions += 1;
        self.found.recovery.commands += commands;
        Ok(())
    }
}

/// [`LoadError`], or an error of the file system that does not know its path yet.
enum FileError {
    LoadError(LoadError),
    Io(io::Error),
}

impl FileError {
    fn or_io(self, io: impl Fn(io::Error) -> LoadError) -> LoadError {
        match self {
            FileError::LoadError(stop) => stop,
            FileError::Io(error) => io(error),
        }
    }
}

impl From<LoadError> for FileError {
    fn from(stop: LoadError) -> FileError {
        FileError::LoadError(stop)
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::Io(error)
    }
}
