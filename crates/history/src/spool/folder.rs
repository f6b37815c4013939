//! Segments of a spool's folder: creating, listing, reading, removing.

use crate::error::{Error, Result};
use bytes::Bytes;
use emberkeep_hot::journal::files::{Disk, Files as _};
use emberkeep_hot::journal::segment::{Segment, SegmentItem, SegmentReader};
use std::path::{Path, PathBuf};

/// An event with its position.
pub(super) type PositionedEvent = (u64, Bytes);

/// A segment on disk.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SegmentFile {
    pub(super) path: PathBuf,
    pub(super) number: u64,
    pub(super) source: String,
    /// The last position in it. The active segment grows.
    pub(super) last: u64,
    pub(super) bytes: u64,
    /// Where the next event that is to be delivered begins: offset, and the sequence before it.
    pub(super) place: (u64, u64),
}

impl SegmentFile {
    /// The position before its first event, of a segment that was just read from disk.
    fn after(&self) -> u64 {
        self.place.1 - HEADER_RECORDS
    }
}

/// Records of a segment count its header, too: a record's sequence is its position and one more.
pub(super) const HEADER_RECORDS: u64 = 1;

/// A file of so many bytes has no event: its first line and its header take 94, an event 20 at least.
const EMPTY_SEGMENT_BYTES_MAX: u64 = 100;

pub(crate) fn folder_error(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Folder { path: path.display().to_string(), problem: error.to_string() }
}

/// Creates a segment of a source, whose first event has the position `after + 1`.
pub(super) fn create(folder: &Path, number: u64, source: &str, after: u64) -> Result<(Segment, SegmentFile)> {
    let path = folder.join(format!("spool-{number:08}.seg"));
    let create = || {
        let mut segment = Segment::create(&Disk, &path, number, after)?;
        segment.append(source.as_bytes())?;
        Ok::<_, std::io::Error>(segment)
    };
    let segment = create().map_err(|error| folder_error(&path, error))?;
    let place = (0, after);
    let bytes = segment.bytes();
    Ok((segment, SegmentFile { path, number, source: source.to_owned(), last: after, bytes, place }))
}

/// All segments of a folder, oldest first. Each is read to its end; a torn end does not count.
pub(super) fn list(folder: &Path) -> Result<Vec<SegmentFile>> {
    let mut segments = Vec::new();
    for name in segment_names(folder)? {
        let path = folder.join(name);
        match examine(&path)? {
            Some(segment) => {
                // A file that was renamed must not be overwritten by the one of its name.
                let named = named_number(&path).unwrap_or(0);
                segments.push(SegmentFile { number: segment.number.max(named), ..segment });
            }
            None => remove(&path)?,
        }
    }
    segments.sort_by_key(|segment| segment.number);
    // A segment was sealed before its source began the next one, so events between them were synced.
    let is_apart =
        |pair: &&[SegmentFile]| pair[0].source == pair[1].source && pair[0].last != pair[1].after();
    match segments.windows(2).find(is_apart) {
        Some(pair) => damaged(&pair[1].path, "events of its source before its first one are missing"),
        None => Ok(segments),
    }
}

fn segment_names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Disk.list(folder).map_err(|error| folder_error(folder, error))?;
    names.retain(|name| name.starts_with("spool-") && name.ends_with(".seg"));
    Ok(names)
}

/// Whether a folder has events of a spool, as far as the names of its files tell.
pub(crate) fn has_segments(folder: &Path) -> Result<bool> {
    Ok(!segment_names(folder)?.is_empty())
}

fn named_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("spool-")?.strip_suffix(".seg")?.parse().ok()
}

/// `None` for a segment without an event: its process was killed while it was created.
fn examine(path: &Path) -> Result<Option<SegmentFile>> {
    let io = |error| folder_error(path, error);
    let size = Disk.open(path).and_then(|file| file.size()).map_err(io)?;
    let Some(mut reader) = SegmentReader::open(&Disk, path).map_err(io)? else {
        if size < EMPTY_SEGMENT_BYTES_MAX {
            return Ok(None);
        }
        return damaged(path, "its first line is not readable");
    };
    let (number, after) = (reader.number(), reader.after());
    let first = reader.place().0;
    let source = match reader.next_item().map_err(io)? {
        SegmentItem::Record(_, source) => String::from_utf8_lossy(source).into_owned(),
        SegmentItem::End(_) if size > EMPTY_SEGMENT_BYTES_MAX && has_content(path, first)? => {
            return damaged(path, "its header is not readable");
        }
        SegmentItem::End(_) => return Ok(None),
        SegmentItem::Damaged(problem) => return damaged(path, problem),
    };
    let place = reader.place();
    loop {
        match reader.next_item().map_err(io)? {
            SegmentItem::Record(..) => {}
            SegmentItem::End(torn) => {
                if torn > 0 {
                    tracing::warn!(path = %path.display(), torn, "the end of a segment was torn by a crash");
                }
                let (bytes, last) = reader.place();
                let last = last.saturating_sub(HEADER_RECORDS).max(after);
                return Ok(Some(SegmentFile { path: path.to_owned(), number, source, last, bytes, place }));
            }
            SegmentItem::Damaged(problem) => return damaged(path, problem),
        }
    }
}

/// Whether anything but zeros stands behind the first record: space that was reserved and not written is zeros.
fn has_content(path: &Path, from: u64) -> Result<bool> {
    let bytes = std::fs::read(path).map_err(|error| folder_error(path, error))?;
    let record_max = from as usize + EMPTY_SEGMENT_BYTES_MAX as usize;
    Ok(bytes.get(record_max..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0)))
}

fn damaged<T>(path: &Path, problem: &str) -> Result<T> {
    Err(Error::Damaged {
        place: path.display().to_string(),
        problem: problem.to_owned(),
        remedy: "restore the file from a copy, or move it away: its events are then not delivered",
    })
}

/// The next events of a segment, up to a position: position and bytes, and where the one after them begins.
pub(super) fn read(
    segment: &SegmentFile,
    through: u64,
    (events_max, bytes_max): (usize, usize),
) -> Result<(Vec<PositionedEvent>, (u64, u64))> {
    let io = |error| folder_error(&segment.path, error);
    let Some(mut reader) = SegmentReader::open(&Disk, &segment.path).map_err(io)? else {
        return damaged(&segment.path, "its first line is not readable");
    };
    if segment.place.0 > 0 {
        reader.seek(segment.place);
    } else {
        // Its header comes first.
        reader.next_item().map_err(io)?;
    }
    let (mut events, mut bytes) = (Vec::new(), 0);
    while events.len() < events_max && bytes < bytes_max && reader.place().1 < through + HEADER_RECORDS {
        match reader.next_item().map_err(io)? {
            SegmentItem::Record(sequence, body) => {
                bytes += body.len();
                events.push((sequence - HEADER_RECORDS, Bytes::copy_from_slice(body)));
            }
            SegmentItem::End(_) => {
                return damaged(&segment.path, "it ends before an event that was recorded");
            }
            SegmentItem::Damaged(problem) => return damaged(&segment.path, problem),
        }
    }
    Ok((events, reader.place()))
}

/// Removes a segment that was delivered.
pub(super) fn remove(path: &Path) -> Result<()> {
    Disk.remove(path).map_err(|error| folder_error(path, error))
}
