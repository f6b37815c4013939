//! From the folder back to the state: reads every file in order, checks every byte, applies every transaction.
//!
//! Changes nothing on disk. What is to be cut, the caller cuts when all else has turned out well.

use super::decode::{Apply, Fault, apply_body};
use super::files::Files;
use super::format::FileKind;
use super::manifest::{Entry, Manifest};
use super::reader::{Item, Reader, Window};
use super::{MANIFEST_NAME, folder_error, foreign};
use crate::error::{Error, Result};
use std::io;
use std::path::Path;

/// What the start found in the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Transactions that were applied (a base counts its records).
    pub transactions: u64,
    /// Writes in them.
    pub commands: u64,
    /// Bytes of a torn end that were cut off: never synced, so nobody was told of them.
    pub cut_bytes: u64,
    /// Files that were read, in order.
    pub files: Vec<String>,
    /// With `cut_damage`: files that were set aside because they, or what precedes them, is damaged.
    pub set_aside: Vec<String>,
}

/// What recovery learned that the writer must know.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) recovery: Recovery,
    /// Number of the last transaction.
    pub(super) sequence: u64,
    /// Where the last file read ends, if it is one of ours.
    pub(super) tail: Option<Tail>,
    /// Bytes of all files, and of the base alone.
    pub(super) bytes: u64,
    pub(super) base_bytes: u64,
}

/// Where the last increment ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
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
    /// The error for people.
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

const REMEDY: &str = "nothing was changed; restore the folder from a copy, or open it once with `cut_damage`, \
                      which keeps everything before this place and sets the rest aside";

/// Reading ends early for one of two reasons.
pub(super) enum Stop {
    Damage(Damage),
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// Reads the manifest; `None` if there is no journal yet.
pub(super) fn read_manifest(files: &dyn Files, dir: &Path) -> Result<Option<Manifest>, Stop> {
    let path = dir.join(MANIFEST_NAME);
    let text = match files.open(&path) {
        Ok(file) => read_all(file).map_err(|error| folder_error(&path, error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return check_fresh(files, dir),
        Err(error) => return Err(folder_error(&path, error).into()),
    };
    let damaged = |problem| Stop::Damage(Damage { file: None, offset: 0, problem });
    Manifest::decode(&text).map(Some).map_err(damaged)
}

fn read_all(file: Box<dyn super::files::OpenFile>) -> io::Result<Vec<u8>> {
    let mut window = Window::new(file)?;
    let length = window.length() as usize;
    Ok(window.peek(length)?.to_vec())
}

/// Without a manifest there may be the first file of a start that did not get further, but no transaction.
fn check_fresh(files: &dyn Files, dir: &Path) -> Result<Option<Manifest>, Stop> {
    for name in files.list(dir).map_err(|error| folder_error(dir, error))? {
        if !name.starts_with("appendonly.aof.") {
            continue;
        }
        let path = dir.join(&name);
        let file = files.open(&path).map_err(|error| folder_error(&path, error))?;
        let length = file.size().map_err(|error| folder_error(&path, error))?;
        if length > super::format::LINE_BYTES_MAX as u64 {
            let problem = format!("it is missing, but {name} holds data");
            return Err(Stop::Damage(Damage { file: None, offset: 0, problem }));
        }
    }
    Ok(None)
}

/// Applies all files of the manifest to `apply`.
pub(super) fn recover(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    apply: Apply<'_>,
    found: &mut Found,
) -> Result<(), Stop> {
    for (at, entry) in manifest.entries.iter().enumerate() {
        let last = at + 1 == manifest.entries.len();
        let mut pass = Pass { at, entry, last, apply, found };
        pass.file(files, dir)?;
    }
    Ok(())
}

/// One file on its way into the state.
struct Pass<'a, 'b> {
    at: usize,
    entry: &'a Entry,
    last: bool,
    apply: Apply<'b>,
    found: &'a mut Found,
}

impl Pass<'_, '_> {
    fn damage(&self, offset: u64, problem: impl Into<String>) -> Stop {
        Stop::Damage(Damage { file: Some(self.at), offset, problem: problem.into() })
    }

    fn file(&mut self, files: &dyn Files, dir: &Path) -> Result<(), Stop> {
        let path = dir.join(&self.entry.name);
        let io = |error| Stop::Error(folder_error(&path, error));
        let window = match files.open(&path) {
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
            return self.foreign(window).map_err(|stop| stop.or_io(io));
        }
        match Reader::open(window).map_err(io)? {
            Some(reader) => self.ours(reader).map_err(|stop| stop.or_io(io)),
            None => Err(self.damage(0, "its first line is not readable")),
        }
    }

    fn foreign(&mut self, window: Window) -> Result<(), FileStop> {
        let (mut commands, recovery) = (0, &mut self.found.recovery);
        let read = foreign::read(window, self.apply, &mut commands);
        recovery.commands += commands;
        recovery.transactions += commands;
        self.found.tail = None;
        read.map_err(|(offset, stop)| self.stopped(offset, stop))
    }

    fn stopped(&self, offset: u64, stop: foreign::ForeignStop) -> FileStop {
        match stop {
            foreign::ForeignStop::Io(error) => FileStop::Io(error),
            foreign::ForeignStop::Fault(fault) => self.faulted(offset, fault),
        }
    }

    fn faulted(&self, offset: u64, fault: Fault) -> FileStop {
        match fault {
            Fault::Incomplete => self.damage(offset, "a command is cut short").into(),
            Fault::Bad(problem) => self.damage(offset, problem).into(),
            Fault::Refused(error) => FileStop::Stop(Stop::Error(error)),
        }
    }

    fn ours(&mut self, mut reader: Reader) -> Result<(), FileStop> {
        self.check_header(&reader)?;
        match self.entry.kind {
            FileKind::Base => self.base(&mut reader),
            FileKind::Increment => self.increment(&mut reader),
        }
    }

    fn check_header(&mut self, reader: &Reader) -> Result<(), Stop> {
        let header = reader.header;
        if (header.kind, header.number) != (self.entry.kind, self.entry.number) {
            return Err(self.damage(0, "it is another file under this name"));
        }
        // Files of Redis carry no numbers, so the first file of ours begins where it says.
        if self.found.tail.is_some() && header.after != self.found.sequence {
            let problem =
                format!("it begins after transaction {}, expected {}", header.after, self.found.sequence);
            return Err(self.damage(0, problem));
        }
        self.found.sequence = header.after;
        Ok(())
    }

    fn base(&mut self, reader: &mut Reader) -> Result<(), FileStop> {
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
                self.found.tail = Some(Tail { bytes: 0, salt: 0 });
                Ok(())
            }
            _ => Err(self.damage(offset, "the base goes on behind its end").into()),
        }
    }

    fn increment(&mut self, reader: &mut Reader) -> Result<(), FileStop> {
        loop {
            let (offset, expected) = (reader.offset(), self.found.sequence + 1);
            match reader.next()? {
                Item::Record(header, body) if header.sequence == expected => {
                    self.found.sequence = expected;
                    self.apply(offset, body)?;
                }
                Item::Record(header, _) => {
                    let problem = format!("transaction {} follows {}", header.sequence, expected - 1);
                    return Err(self.damage(offset, problem).into());
                }
                Item::Synced(through) if through < expected => {}
                Item::Synced(_) => {
                    return Err(self.damage(offset, "transactions before this mark are missing").into());
                }
                Item::End(_) => return Err(self.damage(offset, "an increment has no end line").into()),
                Item::EndOfFile => break,
                Item::Broken(problem) => {
                    if !self.last || reader.synced_later(expected)? {
                        return Err(self.damage(offset, problem).into());
                    }
                    self.found.recovery.cut_bytes = reader.window.length() - offset;
                    self.found.tail = Some(Tail { bytes: offset, salt: reader.header.salt });
                    return Ok(());
                }
            }
        }
        self.found.tail = Some(Tail { bytes: reader.window.length(), salt: reader.header.salt });
        Ok(())
    }

    fn apply(&mut self, offset: u64, body: &[u8]) -> Result<(), FileStop> {
        let commands = apply_body(body, self.apply).map_err(|fault| self.faulted(offset, fault))?;
        self.found.recovery.transactions += 1;
        self.found.recovery.commands += commands;
        Ok(())
    }
}

/// [`Stop`], or an error of the file system that does not know its path yet.
enum FileStop {
    Stop(Stop),
    Io(io::Error),
}

impl FileStop {
    fn or_io(self, io: impl Fn(io::Error) -> Stop) -> Stop {
        match self {
            FileStop::Stop(stop) => stop,
            FileStop::Io(error) => io(error),
        }
    }
}

impl From<Stop> for FileStop {
    fn from(stop: Stop) -> FileStop {
        FileStop::Stop(stop)
    }
}

impl From<io::Error> for FileStop {
    fn from(error: io::Error) -> FileStop {
        FileStop::Io(error)
    }
}
