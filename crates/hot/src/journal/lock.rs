//! One process per folder: a lock file that names its holder.
//!
//! The operating system drops the lock with the process, so a crash leaves nothing to clean up; the file itself
//! stays and means nothing.

use super::files::{Files, TryLock};
use super::{LOCK_NAME, folder_error};
use crate::error::{Error, Result};
use std::path::Path;

/// A held folder; free again when dropped.
pub(super) type FolderLock = Box<dyn Send + Sync>;

/// Takes the folder, or says who has it.
pub(super) fn take(files: &dyn Files, dir: &Path) -> Result<FolderLock> {
    let path = dir.join(LOCK_NAME);
    let note = std::process::id().to_string();
    match files.try_lock(&path, &note).map_err(|error| folder_error(&path, error))? {
        TryLock::Taken(lock) => Ok(lock),
        TryLock::Busy(holder) => {
            Err(Error::Folder { path: dir.display().to_string(), problem: busy(&holder) })
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
