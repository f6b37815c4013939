//! One process per folder: a lock file that names its holder.
//!
//! The operating system releases the lock with the process, so a crash leaves nothing to clean up.

use crate::error::{Error, Result};
use crate::limits::LOCK_WAIT;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

const LOCK_NAME: &str = "LOCK";
/// Pause between two tries to take the folder.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// Takes the folder until the file is dropped, or says which process has it. A busy folder is tried again for a
/// moment: the kernel frees the files of a killed process after its death was reported.
pub(super) fn take(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK_NAME);
    let failed = |error: std::io::Error| Error::Folder {
        path: path.display().to_string(),
        problem: error.to_string(),
    };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = options.map_err(failed)?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => return Err(busy(folder, &mut file)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    let note = std::process::id().to_string();
    file.set_len(0).and_then(|()| file.write_all(note.as_bytes())).map_err(failed)?;
    Ok(file)
}

fn busy(folder: &Path, file: &mut File) -> Error {
    let mut note = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut note));
    let holder = match read.ok().and_then(|_| note.trim().parse::<u32>().ok()) {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    };
    in_use(folder, &holder)
}

/// The error of a folder that another one uses.
pub(super) fn in_use(folder: &Path, holder: &str) -> Error {
    let problem =
        format!("it is in use by {holder}; a folder has one writer, stop that one or choose another folder");
    Error::Folder { path: folder.display().to_string(), problem }
}
