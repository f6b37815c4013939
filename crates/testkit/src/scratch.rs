//! Temporary folders that are removed again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::port::random;

/// Every scratch folder's name starts with this; the watchdog removes nothing else.
pub(crate) const PREFIX: &str = "emberkeep-test-";

/// A temporary folder, removed with its contents on drop.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

/// A new empty folder in the system's temporary folder, removed on drop.
///
/// # Panics
/// When it cannot be created: no test can go on without it.
pub fn scratch() -> Scratch {
    let path = std::env::temp_dir().join(format!("{PREFIX}{:016x}", random()));
    fs::create_dir_all(&path).unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()));
    Scratch { path }
}

impl Scratch {
    /// Where the folder is (absolute).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` in the folder; nothing is created.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover folder must not fail a test, and certainly not to panic in a panic.
        let _ = fs::remove_dir_all(&self.path);
    }
}
