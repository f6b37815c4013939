//! A segment: a file of numbered records with checksums, in the format of an increment of the journal. For other logs
//! on disk, such as the spool of history: they have reserved space, torn ends and damage as the journal has them.
//!
//! The body of a record is the caller's. A segment is written by one process at a time ([`lock_folder`]).

use super::active_file::ActiveFile;
use super::files::{Files, LogFile, append_all};
use super::format::{FileHeader, FileKind, LINE_BYTES_MAX, Line, RecordHeader, new_salt};
use super::lock;
pub use super::lock::FolderLock;
use super::reader::{Item, Reader, Window};
use crate::error::Result;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Takes a folder for this process, or says which process has it.
pub fn lock_folder(files: &dyn Files, dir: &Path) -> Result<FolderLock> {
    lock::take(files, dir)
}

/// A segment that is being written.
pub struct Segment {
    file: ActiveFile,
    last: u64,
    line: Vec<u8>,
}

impl Segment {
    /// Creates a segment whose first record has the sequence `after + 1`. When this returns, the file survives a
    /// crash.
    pub fn create(files: &dyn Files, path: &Path, number: u64, after: u64) -> io::Result<Segment> {
        let header = FileHeader { kind: FileKind::Increment, number, after, salt: new_salt() };
        let mut line = Vec::new();
        Line::File(header).encode(&mut line, header.salt);
        let mut file = files.create(path)?;
        append_all(&mut *file, &line)?;
        file.sync()?;
        files.sync_dir(path.parent().unwrap_or(Path::new(".")))?;
        let file = ActiveFile::new(files.open_log(path)?, line.len() as u64, header.salt);
        Ok(Segment { file, last: after, line })
    }

    /// Appends a record and returns its sequence. After this the death of the process does not lose it. An error before
    /// anything was written has the kind `StorageFull`; after any other one nothing may be appended.
    pub fn append(&mut self, body: &[u8]) -> io::Result<u64> {
        let (sequence, crc) = (self.last + 1, crc32c::crc32c(body));
        self.line.clear();
        RecordHeader::encode(sequence, body.len(), crc, self.file.salt, &mut self.line);
        self.reserve(1, body.len())?;
        self.file.write(&self.line)?;
        self.file.write(body)?;
        self.last = sequence;
        Ok(sequence)
    }

    /// Reserves space for so many records with bodies of so many bytes together. Appending them then cannot fail for
    /// want of space. The error has the kind `StorageFull`.
    pub fn reserve(&mut self, records: usize, body_bytes: usize) -> io::Result<()> {
        let bytes = records * LINE_BYTES_MAX + body_bytes;
        self.file.spent.clear();
        if self.file.free() >= bytes {
            return Ok(());
        }
        self.file.reserve(bytes).map_err(|error| io::Error::new(io::ErrorKind::StorageFull, error))
    }

    /// Records that everything up to a sequence was synced: if it cannot be read later, that is damage and not a torn
    /// end.
    pub fn mark_synced(&mut self, through: u64) -> io::Result<()> {
        self.line.clear();
        Line::Synced(through).encode(&mut self.line, self.file.salt);
        self.reserve(1, 0)?;
        self.file.write(&self.line)
    }

    /// The sequence of the last record; that before the first record if there is none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Bytes of its content.
    pub fn bytes(&self) -> u64 {
        self.file.end
    }

    /// The file, to be synced beside appends.
    pub fn file(&self) -> Arc<dyn LogFile> {
        Arc::clone(&self.file.file)
    }

    /// Cuts the file to its content and makes it durable. Nothing can be appended afterwards.
    pub fn seal(&mut self) -> io::Result<()> {
        self.file.seal()
    }
}

/// What stands next in a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum SegmentItem<'a> {
    /// A record: its sequence and its body.
    Record(u64, &'a [u8]),
    /// Nothing more: the end, space that was not written, or the torn end of so many bytes that a crash left.
    End(u64),
    /// What was synced cannot be read.
    Damaged(&'static str),
}

/// Reads a segment, also one that is being written: it ends where it ended when it was opened.
pub struct SegmentReader {
    reader: Reader,
    last: u64,
}

impl SegmentReader {
    /// Opens a segment; `None` if its first line is not readable.
    pub fn open(files: &dyn Files, path: &Path) -> io::Result<Option<SegmentReader>> {
        let reader = Reader::open(Window::new(files.open(path)?)?)?;
        Ok(reader.map(|reader| SegmentReader { last: reader.header.after, reader }))
    }

    /// The number in its first line.
    pub fn number(&self) -> u64 {
        self.reader.header.number
    }

    /// The sequence before its first record.
    pub fn after(&self) -> u64 {
        self.reader.header.after
    }

    /// Where the next item begins, and the sequence before it: for [`seek`](Self::seek).
    pub fn place(&self) -> (u64, u64) {
        (self.reader.offset(), self.last)
    }

    /// Goes on at a place that a reader of the same segment had.
    pub fn seek(&mut self, (offset, last): (u64, u64)) {
        self.reader.seek(offset);
        self.last = last;
    }

    /// The next item. After the end or damage the place does not move.
    pub fn next_item(&mut self) -> io::Result<SegmentItem<'_>> {
        let problem = loop {
            match self.reader.next()? {
                Item::Record(header, _) if header.sequence == self.last + 1 => break None,
                Item::Record(..) => return Ok(SegmentItem::Damaged("a record is out of order")),
                Item::Synced(through) if through <= self.last => {}
                Item::Synced(_) => return Ok(SegmentItem::Damaged("records before this mark are missing")),
                Item::End(_) => return Ok(SegmentItem::Damaged("a segment has no end line")),
                Item::EndOfFile => return Ok(SegmentItem::End(0)),
                Item::Broken(problem) => break Some(problem),
            }
        };
        let Some(problem) = problem else {
            self.last += 1;
            return Ok(SegmentItem::Record(self.last, self.reader.taken_body()));
        };
        let from = self.reader.offset();
        let rest = self.reader.rest(from, self.last + 1)?;
        self.reader.seek(from);
        Ok(if rest.marked {
            SegmentItem::Damaged(problem)
        } else {
            SegmentItem::End(rest.content_end - from)
        })
    }
}
