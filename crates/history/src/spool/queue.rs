//! What a spool has recorded and not delivered yet: segments on disk, or events in memory.

use super::folder::{self, SegmentFile};
use crate::error::{Error, Result};
use crate::limits::{DRAIN_PAGE_ENTRIES, SPOOL_PAGE_BYTES, SPOOL_RECORD_BYTES_MAX};
use bytes::Bytes;
use emberkeep_hot::journal::files::LogFile;
use emberkeep_hot::journal::segment::Segment;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Counters of a spool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpoolStats {
    /// Bytes in use, on disk or in memory.
    pub used_bytes: u64,
    /// Bytes that may be in use.
    pub bytes_max: u64,
    /// Events that were recorded since the spool was opened.
    pub recorded: u64,
    /// Events of this opening and of former ones that wait for delivery.
    pub waiting: u64,
    /// Events that were refused because the spool was full.
    pub refused: u64,
}

/// The next events to deliver.
pub(crate) struct Page {
    pub(crate) source: String,
    pub(crate) events: Vec<(u64, Bytes)>,
    /// Where the segment goes on after them.
    place: (u64, u64),
}

/// Where the next events are.
pub(super) enum Next {
    Nothing,
    Memory(Page),
    /// To be read without the queue's lock.
    Segment(SegmentFile),
}

impl Next {
    pub(super) fn read(self) -> Result<Option<Page>> {
        let segment = match self {
            Next::Nothing => return Ok(None),
            Next::Memory(page) => return Ok(Some(page)),
            Next::Segment(segment) => segment,
        };
        let (events, place) = folder::read(&segment, segment.last, (DRAIN_PAGE_ENTRIES, SPOOL_PAGE_BYTES))?;
        Ok(Some(Page { source: segment.source, events, place }))
    }
}

/// See the file's head.
pub(super) struct Queue {
    /// `None` = in memory.
    pub(super) folder: Option<PathBuf>,
    pub(super) source: String,
    pub(super) bytes_max: u64,
    pub(super) segment_bytes: u64,
    /// Oldest first; the active one is the last.
    segments: VecDeque<SegmentFile>,
    active: Option<Segment>,
    memory: VecDeque<(u64, Bytes)>,
    memory_bytes: u64,
    next_number: u64,
    /// The last position of this opening.
    pub(super) appended: u64,
    refused: u64,
    /// A write failed: half a record may stand at the end, and nothing may follow it.
    pub(super) stopped: Option<Error>,
}

impl Queue {
    pub(super) fn new(
        folder: Option<PathBuf>,
        source: String,
        (bytes_max, segment_bytes): (u64, u64),
        segments: Vec<SegmentFile>,
    ) -> Queue {
        Queue {
            folder,
            source,
            bytes_max,
            segment_bytes,
            next_number: segments.last().map_or(0, |segment| segment.number) + 1,
            segments: segments.into(),
            active: None,
            memory: VecDeque::new(),
            memory_bytes: 0,
            appended: 0,
            refused: 0,
            stopped: None,
        }
    }

    /// Records events, all or none. Returns the last position.
    pub(super) fn append(&mut self, events: &[Vec<u8>]) -> Result<u64> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        if let Some(event) = events.iter().find(|event| event.len() > SPOOL_RECORD_BYTES_MAX) {
            crate::validate::limit("an event".into(), event.len(), "bytes", SPOOL_RECORD_BYTES_MAX)?;
        }
        let bytes: u64 = events.iter().map(|event| (event.len() + RECORD_OVERHEAD_BYTES) as u64).sum();
        let used_bytes = self.used_bytes();
        if used_bytes + bytes > self.bytes_max {
            self.refused += events.len() as u64;
            return Err(Error::SpoolFull { used_bytes, bytes_max: self.bytes_max });
        }
        if self.folder.is_some() {
            self.append_to_segment(events)?;
        } else {
            for event in events {
                self.appended += 1;
                self.memory.push_back((self.appended, Bytes::copy_from_slice(event)));
            }
            self.memory_bytes += bytes;
        }
        Ok(self.appended)
    }

    /// All events of a call go into one segment, whose space is reserved before the first one is written.
    fn append_to_segment(&mut self, events: &[Vec<u8>]) -> Result<()> {
        if self.active.as_ref().is_some_and(|active| active.bytes() >= self.segment_bytes) {
            self.seal()?;
        }
        if self.active.is_none() {
            let folder = self.folder.as_deref().unwrap_or(std::path::Path::new("."));
            let (segment, file) = folder::create(folder, self.next_number, &self.source, self.appended)?;
            self.next_number += 1;
            self.active = Some(segment);
            self.segments.push_back(file);
        }
        let (Some(active), Some(file)) = (&mut self.active, self.segments.back_mut()) else { return Ok(()) };
        let reserved = active.reserve(events.len(), events.iter().map(Vec::len).sum());
        reserved.map_err(|error| folder::folder_error(&file.path, error))?;
        for event in events {
            if let Err(error) = active.append(event) {
                return Err(self.stop(&error));
            }
            self.appended += 1;
            (file.last, file.bytes) = (self.appended, active.bytes());
        }
        Ok(())
    }

    /// Ends the active segment.
    fn seal(&mut self) -> Result<()> {
        // The mark says that all of it was synced: what cannot be read later is damage, not a torn end.
        let seal = |mut active: Segment| {
            active.file().sync()?;
            match active.mark_synced(active.last()) {
                Err(error) if error.kind() != std::io::ErrorKind::StorageFull => Err(error),
                _ => active.seal(),
            }
        };
        match self.active.take().map(seal) {
            Some(Err(error)) => Err(self.stop(&error)),
            _ => Ok(()),
        }
    }

    pub(super) fn stop(&mut self, error: &std::io::Error) -> Error {
        let stopped = Error::Stopped { reason: format!("the spool cannot write: {error}") };
        self.stopped.get_or_insert(stopped).clone()
    }

    /// The file to sync, and the position that is safe after it.
    pub(super) fn unsynced(&self) -> (Option<Arc<dyn LogFile>>, u64) {
        (self.active.as_ref().map(Segment::file), self.appended)
    }

    /// Everything up to a position is on disk.
    pub(super) fn synced(&mut self, through: u64) {
        // Positions of a segment are its sequences without the header's.
        if let Some(active) = self.active.as_mut().filter(|active| active.last() > through) {
            let marked = active.mark_synced(through + folder::HEADER_RECORDS);
            let bytes = active.bytes();
            if let Some(file) = self.segments.back_mut() {
                file.bytes = bytes;
            }
            match marked {
                Err(error) if error.kind() != std::io::ErrorKind::StorageFull => drop(self.stop(&error)),
                _ => {}
            }
        }
    }

    /// Where the next events to deliver are.
    pub(super) fn next(&mut self) -> Result<Next> {
        if self.stopped == Some(Error::Closed) {
            return Err(Error::Closed);
        }
        if self.folder.is_none() {
            let events: Vec<_> = self.memory.iter().take(DRAIN_PAGE_ENTRIES).cloned().collect();
            let page = Page { source: self.source.clone(), events, place: (0, 0) };
            return Ok(if page.events.is_empty() { Next::Nothing } else { Next::Memory(page) });
        }
        self.remove_delivered()?;
        let waiting = self.segments.front().filter(|segment| segment.waiting() > 0);
        Ok(waiting.cloned().map_or(Next::Nothing, Next::Segment))
    }

    /// A page is in history.
    pub(super) fn acknowledge(&mut self, page: &Page) -> Result<()> {
        if self.folder.is_none() {
            let delivered: Vec<_> = self.memory.drain(..page.events.len()).collect();
            let bytes = delivered.iter().map(|(_, event)| (event.len() + RECORD_OVERHEAD_BYTES) as u64);
            self.memory_bytes -= bytes.sum::<u64>();
            return Ok(());
        }
        if let Some(segment) = self.segments.front_mut() {
            segment.place = page.place;
        }
        self.remove_delivered()
    }

    fn remove_delivered(&mut self) -> Result<()> {
        while let Some(segment) = self.segments.front().filter(|segment| segment.waiting() == 0) {
            if self.segments.len() == 1 && self.active.is_some() {
                // Small ones stay, so that a quiet spool does not make a file for each event.
                if segment.bytes < self.segment_bytes.min(self.bytes_max / 4) {
                    return Ok(());
                }
                self.active = None;
            }
            folder::remove(&segment.path)?;
            self.segments.pop_front();
        }
        Ok(())
    }

    fn used_bytes(&self) -> u64 {
        self.memory_bytes + self.segments.iter().map(|segment| segment.bytes).sum::<u64>()
    }

    pub(super) fn stats(&self) -> SpoolStats {
        SpoolStats {
            used_bytes: self.used_bytes(),
            bytes_max: self.bytes_max,
            recorded: self.appended,
            waiting: self.memory.len() as u64 + self.segments.iter().map(SegmentFile::waiting).sum::<u64>(),
            refused: self.refused,
        }
    }

    /// Ends the active segment, and removes what is delivered. Nothing is recorded afterwards.
    pub(super) fn close(&mut self) -> Result<()> {
        let sealed = self.seal();
        self.stopped.get_or_insert(Error::Closed);
        sealed.and_then(|()| self.remove_delivered())
    }
}

impl SegmentFile {
    /// Events that are not delivered.
    fn waiting(&self) -> u64 {
        let delivered = match self.place {
            (0, after) => after,
            (_, last) => last - folder::HEADER_RECORDS,
        };
        self.last - delivered
    }
}

/// What a record takes besides its event, at most.
const RECORD_OVERHEAD_BYTES: usize = 64;
