//! Space of a file that is mapped into memory: appending a transaction is a copy of about 100 ns, where
//! `write(2)` takes microseconds. The kernel owns the pages, so they survive the death of the process.
//!
//! The only `unsafe` of the project is the copy. The mapping is never read and no reference into it exists,
//! so other processes that change the file cannot break a rule of Rust. If another program truncates the
//! file while it is mapped, this process dies by SIGBUS; for the data that is the same as `kill -9`. So does
//! a full disk on a copy-on-write file system; see `log_file`.
#![allow(unsafe_code)]

use super::files::Space;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;

/// A mapped part of a file. Unmapped when dropped.
pub(super) struct MappedSpace(MmapRaw);

impl MappedSpace {
    /// Maps `bytes` of the file behind its first `from`. They must be allocated.
    pub(super) fn new(file: &File, from: u64, bytes: usize, prefault: bool) -> io::Result<MappedSpace> {
        let map = MmapOptions::new().offset(from).len(bytes).map_raw(file)?;
        if prefault {
            match map.advise(Advice::PopulateWrite) {
                // Kernels before 5.14 do not know it; then the first write of each page takes longer.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                populated => populated?,
            }
        }
        Ok(MappedSpace(map))
    }
}

impl Space for MappedSpace {
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        if self.0.len().checked_sub(at).is_none_or(|left| left < bytes.len()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the check above keeps the target inside the mapping, which lives as long as `self`. Source
        // and target do not overlap: the mapping is private to this type and never lent out. `&mut self`
        // keeps other threads away.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.as_mut_ptr().add(at), bytes.len()) };
        Ok(())
    }
}
