//! One process per folder: a lock file that names its holder.
//!
//! The operating system releases the lock with the process, so a crash leaves nothing to clean up. The file
//! itself stays and has no meaning.

use super::files::{Files, TryLock};
use super::{LOCK_NAME, folder_error};
use crate::error::{Error, Result};
use crate::limits::JOURNAL_LOCK_WAIT;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pause between two tries to take the lock.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A held folder; free again when dropped.
pub type FolderLock = Box<dyn Send + Sync>;

/// Takes the folder, or says which process has it.
///
/// A lock outlives its owner by a moment: a child that another thread forked has a copy of it until it runs
/// its program, and the kernel frees the files of a killed process after its death was reported. So a busy
/// folder is tried again.
pub(super) fn take(files: &dyn Files, dir: &Path) -> Result<FolderLock> {
    let path = dir.join(LOCK_NAME);
    let note = std::process::id().to_string();
    let begun = Instant::now();
    loop {
        match files.try_lock(&path, &note).map_err(|error| folder_error(&path, error))? {
            TryLock::Taken(lock) => return Ok(lock),
            TryLock::Busy(_) if begun.elapsed() < JOURNAL_LOCK_WAIT => std::thread::sleep(LOCK_POLL),
            TryLock::Busy(holder) => {
                return Err(Error::Folder { path: dir.display().to_string(), problem: busy(&holder) });
            }
        }
    }
}

fn busy(holder: &str) -> String {
    let holder = match holder.trim().parse::<u32>() {
        Ok(pid) if pid == std::process::id() => format!("this process (pid {pid})"),
        Ok(pid) => format!("process {pid}"),
        Err(_) => "another process".to_owned(),
    };
    format!("it is in use by {holder}; a journal has one writer, stop that one or choose another folder")
}
