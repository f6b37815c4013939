//! The generations of all partitions: a small file that is replaced as a whole, under a lock.

use super::write::sync_folder;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const NAME: &str = "generations.json";

/// The generation of a partition; 0 = it was never raised.
pub(super) fn read(folder: &Path, partition: &str) -> Result<u64> {
    Ok(all(folder)?.get(partition).copied().unwrap_or(0))
}

/// Raises it by at least one; durable when this returns.
pub(super) fn raise(folder: &Path, partition: &str, at_least: u64) -> Result<u64> {
    let lock = folder.join("generations.lock");
    let failed = |error: io::Error| Error::of_file(folder, &error);
    let locked = File::create(&lock).and_then(|file| file.lock().map(|()| file)).map_err(failed)?;
    let mut generations = all(folder)?;
    let next = generations.get(partition).map_or(1, |generation| generation.saturating_add(1)).max(at_least);
    generations.insert(partition.to_owned(), next);
    let text = serde_json::to_vec_pretty(&generations).expect("numbers by text are JSON");
    replace(folder, &text).map_err(failed)?;
    drop(locked);
    Ok(next)
}

fn replace(folder: &Path, text: &[u8]) -> io::Result<()> {
    let new = folder.join("generations.new");
    let mut file = File::create(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, folder.join(NAME))?;
    sync_folder(folder)
}

fn all(folder: &Path) -> Result<BTreeMap<String, u64>> {
    let path = folder.join(NAME);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| Error::Damaged {
            snapshot: path.display().to_string(),
            problem: format!("{error}; it holds the generation of each partition"),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(Error::of_file(&path, &error)),
    }
}
