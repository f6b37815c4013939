//! Temporary folders, and the options that tests open them with.
#![allow(dead_code, unreachable_pub)]

use emberkeep_history::embedded::Options;
use emberkeep_history::testing::NOW;
use emberkeep_history::{Clock, ManualClock};
use std::path::{Path, PathBuf};

/// A folder that is removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let name = format!("emberkeep-history-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A clock at [`NOW`], and no minimum of free space.
pub fn options() -> Options {
    Options { clock: Clock::Manual(ManualClock::at(NOW)), free_bytes_min: 0, ..Options::default() }
}
