//! Reads a journal file item by item: records with a valid checksum, marks, the end of a base.

use super::files::OpenFile;
use super::format::{FileHeader, LINE_BYTES_MAX, Line, RECORD, RecordHeader};
use crate::limits::JOURNAL_READ_BYTES;
use std::io;

/// A file seen through a window that moves forward.
pub(super) struct Window {
    file: Box<dyn OpenFile>,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    start: usize,
    end: usize,
    /// Offset in the file of `start`.
    offset: u64,
    length: u64,
}

impl Window {
    pub(super) fn new(file: Box<dyn OpenFile>) -> io::Result<Window> {
        let length = file.size()?;
        Ok(Window { file, buffer: Vec::new(), start: 0, end: 0, offset: 0, length })
    }

    /// Offset in the file of the next unread byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the file when it was opened.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of the file that are not read yet.
    pub(super) fn left(&self) -> u64 {
        self.length - self.offset
    }

    /// The next bytes: at least `wanted`, or all that are left.
    pub(super) fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.end - self.start < wanted {
            self.fill(wanted)?;
        }
        Ok(self.peeked())
    }

    /// What the last peek saw.
    fn peeked(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        // A small file needs no large buffer.
        let size = wanted.max(JOURNAL_READ_BYTES).min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        while self.end < wanted {
            let at = self.offset + self.end as u64;
            // Never past the length at opening: what is appended later is not ours to judge.
            let room = (self.buffer.len() - self.end).min((self.length - at) as usize);
            match self.file.read_at(at, &mut self.buffer[self.end..self.end + room]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Moves to any offset of the file.
    pub(super) fn seek(&mut self, offset: u64) {
        (self.start, self.end, self.offset) = (0, 0, offset.min(self.length));
    }

    /// Moves over bytes that were peeked.
    pub(super) fn skip(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start, "only peeked bytes are skipped");
        self.start += bytes;
        self.offset += bytes as u64;
    }
}

/// What stands next in a file.
pub(super) enum Item<'a> {
    /// A record whose checksum fits.
    Record(RecordHeader, &'a [u8]),
    /// All up to this number was synced when this was written.
    Synced(u64),
    /// The last line of a base of that many records.
    End(u64),
    /// The file ends here, after a whole line.
    EndOfFile,
    /// Bytes that are not valid, or space that was reserved and not written: see [`Reader::rest`].
    Broken(&'static str),
}

/// What stands behind the place where a file stops being readable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    /// A mark says that the record that was expected there had been synced.
    pub(super) marked: bool,
    /// Offset behind the last byte that is not zero, or the place itself. Space that was never written is
    /// zeros.
    pub(super) content_end: u64,
}

/// A file of ours, read from its header on.
pub(super) struct Reader {
    pub(super) window: Window,
    pub(super) header: FileHeader,
    /// Bytes of the item that `next` returned last; skipped at the following call.
    taken: usize,
}

impl Reader {
    /// Reads the header; `None` if there is none.
    pub(super) fn open(mut window: Window) -> io::Result<Option<Reader>> {
        let Some(line) = first_line(window.peek(LINE_BYTES_MAX)?) else { return Ok(None) };
        let Some(Line::File(header)) = Line::decode(line, 0) else { return Ok(None) };
        let taken = line.len() + 2;
        Ok(Some(Reader { window, header, taken }))
    }

    /// Offset of the item that the following `next` returns.
    pub(super) fn offset(&self) -> u64 {
        self.window.offset() + self.taken as u64
    }

    /// Goes on at the offset of an item.
    pub(super) fn seek(&mut self, offset: u64) {
        self.taken = 0;
        self.window.seek(offset);
    }

    /// The body of the record that `next` returned last.
    pub(super) fn taken_body(&self) -> &[u8] {
        let whole = &self.window.peeked()[..self.taken];
        first_line(whole).map_or(&[], |line| &whole[line.len() + 2..])
    }

    /// The next item. After `Broken` the place does not move.
    pub(super) fn next(&mut self) -> io::Result<Item<'_>> {
        self.window.skip(std::mem::take(&mut self.taken));
        let head = self.window.peek(LINE_BYTES_MAX)?;
        if head.is_empty() {
            return Ok(Item::EndOfFile);
        }
        let Some(line) = first_line(head) else { return Ok(Item::Broken("a line has no end")) };
        let line_bytes = line.len() + 2;
        if !line.starts_with(RECORD) {
            return Ok(self.line(line_bytes));
        }
        match RecordHeader::decode(line) {
            Some(header) => self.record(header, line_bytes),
            None => Ok(Item::Broken("a record's line is not readable")),
        }
    }

    fn line(&mut self, line_bytes: usize) -> Item<'_> {
        let line = &self.window.peeked()[..line_bytes - 2];
        let item = match Line::decode(line, self.header.salt) {
            Some(Line::Synced(sequence)) => Item::Synced(sequence),
            Some(Line::End(records)) => Item::End(records),
            Some(Line::File(_)) => return Item::Broken("a second file header"),
            None if line.starts_with(b"*") => {
                return Item::Broken("a command without a checksum (has redis-server written here?)");
            }
            None => return Item::Broken("neither a record nor a mark"),
        };
        self.taken = line_bytes;
        item
    }

    fn record(&mut self, header: RecordHeader, line_bytes: usize) -> io::Result<Item<'_>> {
        // Before the buffer grows to a length that may be damaged.
        if header.bytes as u64 > self.window.left() - line_bytes as u64 {
            return Ok(Item::Broken("a record is longer than the file"));
        }
        let whole = line_bytes + header.bytes;
        let salt = self.header.salt;
        let Some(body) = self.window.peek(whole)?.get(line_bytes..whole) else {
            return Ok(Item::Broken("the file became shorter while it was read"));
        };
        if !header.fits(body, salt) {
            return Ok(Item::Broken("a record's checksum does not fit"));
        }
        self.taken = whole;
        Ok(Item::Record(header, body))
    }

    /// Looks at all bytes behind `from`, the place where reading stopped and the record `sequence` was
    /// expected. Reads the file to its end, or to the first mark that settles it.
    pub(super) fn rest(&mut self, from: u64, sequence: u64) -> io::Result<Rest> {
        const MARK: &[u8] = b"#EK-SYNC:";
        self.window.skip(std::mem::take(&mut self.taken));
        let mut rest = Rest { marked: false, content_end: from };
        loop {
            let (offset, salt) = (self.window.offset(), self.header.salt);
            let bytes = self.window.peek(JOURNAL_READ_BYTES)?;
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                rest.content_end = rest.content_end.max(offset + last as u64 + 1);
            }
            for at in find_all(bytes, MARK) {
                let mark = first_line(&bytes[at..]).and_then(|line| Line::decode(line, salt));
                if matches!(mark, Some(Line::Synced(through)) if through >= sequence) {
                    rest.marked = true;
                    return Ok(rest);
                }
            }
            if bytes.len() as u64 >= self.window.left() {
                return Ok(rest);
            }
            // A mark may lie across the edge of the window, so its length is read again.
            let advance = self.window.peeked().len().saturating_sub(LINE_BYTES_MAX);
            if advance == 0 {
                return Ok(rest);
            }
            self.window.skip(advance);
        }
    }
}

/// Where the (short) needle begins.
fn find_all<'a>(bytes: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(needle.len()).enumerate().filter(move |(_, found)| *found == needle).map(|(at, _)| at)
}

/// The bytes before the first `\r\n`, if it comes early enough for a line of ours.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    (bytes.get(end + 1) == Some(&b'\n')).then(|| &bytes[..end])
}
