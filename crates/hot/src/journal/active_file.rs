//! The active file: the increment that transactions are appended to, and the space reserved in it.

use super::files::{LogFile, Space};
use crate::limits::{JOURNAL_RESERVE_BYTES_MAX, JOURNAL_RESERVE_BYTES_MIN};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// The usual size of a page; another one costs a little speed only.
const PAGE_BYTES: u64 = 4096;

/// An increment that is being written.
pub(super) struct ActiveFile {
    pub(super) file: Arc<dyn LogFile>,
    pub(super) salt: u32,
    /// Offset behind the last byte written.
    pub(super) end: u64,
    /// Reserved space, the one in use first.
    spaces: VecDeque<Box<dyn Space>>,
    /// Bytes of the first space that are written.
    used: usize,
    /// Bytes of all spaces that are not written yet.
    free: usize,
    /// Spaces that are full. Unmapping takes time, so the writer thread does it.
    pub(super) spent: Vec<Box<dyn Space>>,
}

impl ActiveFile {
    /// A file whose first `end` bytes are content and which has no reserved space.
    pub(super) fn new(file: Arc<dyn LogFile>, end: u64, salt: u32) -> ActiveFile {
        ActiveFile { file, salt, end, spaces: VecDeque::new(), used: 0, free: 0, spent: Vec::new() }
    }

    /// Bytes that can be written without reserving.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Where space that is reserved next begins.
    pub(super) fn reserved_end(&self) -> u64 {
        self.end + self.free as u64
    }

    /// How much to reserve at once: a part of the content, so that small journals stay small.
    pub(super) fn step_bytes(&self) -> usize {
        let half = usize::try_from(self.end / 2).unwrap_or(usize::MAX);
        let wanted = half.clamp(JOURNAL_RESERVE_BYTES_MIN, JOURNAL_RESERVE_BYTES_MAX);
        // Spaces end where pages end, so that one page seldom belongs to two of them.
        let end = (self.reserved_end() + wanted as u64).next_multiple_of(PAGE_BYTES);
        (end - self.reserved_end()) as usize
    }

    /// Whether it is time to reserve more, ahead of need.
    pub(super) fn is_short(&self) -> bool {
        self.free < self.step_bytes() / 2
    }

    /// Takes space that was reserved at `reserved_end`.
    pub(super) fn add(&mut self, space: Box<dyn Space>) {
        self.free += space.bytes();
        self.spaces.push_back(space);
    }

    /// Reserves what `bytes` need, at least `step_bytes`.
    pub(super) fn reserve(&mut self, bytes: usize) -> io::Result<()> {
        let wanted = bytes.saturating_sub(self.free).max(self.step_bytes());
        let space = self.file.reserve(self.reserved_end(), wanted, false)?;
        self.add(space);
        Ok(())
    }

    /// Copies bytes behind the content. The caller has seen to it that they are `free`.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let Some(space) = self.spaces.front_mut() else {
                return Err(io::Error::other("no space was reserved"));
            };
            let (now, later) = bytes.split_at(bytes.len().min(space.bytes() - self.used));
            space.write(self.used, now)?;
            self.used += now.len();
            self.free -= now.len();
            self.end += now.len() as u64;
            bytes = later;
            if self.used == space.bytes() {
                self.used = 0;
                self.spent.extend(self.spaces.pop_front());
            }
        }
        Ok(())
    }

    /// Cuts the file to its content and makes it durable. Nothing can be written afterwards.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        self.spaces.clear();
        self.spent.clear();
        (self.used, self.free) = (0, 0);
        self.file.truncate(self.end)?;
        self.file.sync()
    }
}
