//! Reserved space in a file on the real disk: allocated, and mapped into memory where possible.
//!
//! A copy-on-write file system needs new blocks for every write, reserved or not. Through a mapping a full
//! disk would then be a SIGBUS. So btrfs, ZFS and bcachefs are written by `write(2)`; there a disk that
//! fills up in the middle of reserved space stops the journal until a restart. One case is not detected: a
//! file on XFS that is copied by reflink (`cp --reflink`, some backups) while the journal writes it. Its
//! shared blocks are copied on write as well. Copy the folder without reflinks.

use super::files::{LogFile, Space};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A file of the real disk that takes transactions.
pub(super) struct DiskLogFile {
    file: Arc<File>,
    #[cfg(target_os = "linux")]
    copies_on_write: bool,
}

impl DiskLogFile {
    pub(super) fn new(file: File) -> DiskLogFile {
        #[cfg(target_os = "linux")]
        let copies_on_write =
            rustix::fs::fstatfs(&file).is_ok_and(|found| copies_on_write(found.f_type as u32));
        DiskLogFile {
            file: Arc::new(file),
            #[cfg(target_os = "linux")]
            copies_on_write,
        }
    }
}

/// Whether a file system of this type (statfs(2)) needs new blocks to write into reserved space.
#[cfg(target_os = "linux")]
fn copies_on_write(file_system: u32) -> bool {
    const BTRFS: u32 = 0x9123_683E;
    const ZFS: u32 = 0x2FC1_2FC1;
    const BCACHEFS: u32 = 0xCA45_1A4E;
    matches!(file_system, BTRFS | ZFS | BCACHEFS)
}

impl LogFile for DiskLogFile {
    fn reserve(&self, from: u64, bytes: usize, prefault: bool) -> io::Result<Box<dyn Space>> {
        allocate(&self.file, from, bytes)?;
        let plain = PlainSpace { file: Arc::clone(&self.file), from, bytes };
        #[cfg(target_os = "linux")]
        if self.copies_on_write {
            return Ok(Box::new(plain));
        }
        #[cfg(target_os = "linux")]
        return match super::mapped_space::MappedSpace::new(&self.file, from, bytes, prefault) {
            Ok(mapped) => Ok(Box::new(mapped)),
            // ENODEV: the file system maps no files.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => {
                Ok(Box::new(plain))
            }
            Err(error) => Err(error),
        };
        #[cfg(not(target_os = "linux"))]
        {
            let _ = prefault;
            Ok(Box::new(plain))
        }
    }

    fn sync(&self) -> io::Result<()> {
        // On Linux this covers what was written through a mapping, too.
        self.file.sync_data()
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}

/// Gives the file blocks for this range. They read as zeros.
fn allocate(file: &File, from: u64, bytes: usize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        loop {
            match fallocate(file, FallocateFlags::empty(), from, bytes as u64) {
                Err(Errno::INTR) => {}
                // The file system cannot; writing zeros reserves space as well.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
                done => return Ok(done?),
            }
        }
    }
    const ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];
    for at in (0..bytes).step_by(ZEROS.len()) {
        write_at(file, &ZEROS[..ZEROS.len().min(bytes - at)], from + at as u64)?;
    }
    Ok(())
}

/// Space that is written by a system call for each piece.
struct PlainSpace {
    file: Arc<File>,
    from: u64,
    bytes: usize,
}

impl Space for PlainSpace {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.checked_sub(at).is_none_or(|left| left < bytes.len()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        write_at(&self.file, bytes, self.from + at as u64)
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, at)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => (bytes, at) = (&bytes[taken..], at + taken as u64),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_system_that_copies_on_write_is_written_plainly() {
        let ext4 = 0xEF53;
        assert_eq!(
            [0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E, ext4].map(copies_on_write),
            [true, true, true, false]
        );
    }

    #[test]
    fn plain_and_mapped_space_leave_the_same_bytes() {
        let path = std::env::temp_dir().join(format!("emberkeep-space-{}", std::process::id()));
        let open = || File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let mut contents = Vec::new();
        for plain in [false, true] {
            let log = DiskLogFile::new(open());
            let mut space: Box<dyn Space> = if plain {
                allocate(&log.file, 0, 10_000).unwrap();
                Box::new(PlainSpace { file: Arc::clone(&log.file), from: 0, bytes: 10_000 })
            } else {
                log.reserve(0, 10_000, true).unwrap()
            };
            space.write(0, b"header").unwrap();
            space.write(4_090, b"across a page").unwrap();
            space.write(9_999, b"x").unwrap();
            assert!(space.write(9_999, b"xy").is_err(), "nothing is written beyond the space");
            drop(space);
            // The next space begins in the middle of a page.
            log.reserve(10_000, 5_000, false).unwrap().write(1, b"second").unwrap();
            log.sync().unwrap();
            log.truncate(14_000).unwrap();
            contents.push(std::fs::read(&path).unwrap());
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(contents[0].len(), 14_000);
        assert!(contents[0] == contents[1]);
        assert_eq!(&contents[0][10_000..10_008], b"\0second\0");
    }
}
