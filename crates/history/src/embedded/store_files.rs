//! Checks of fjall's files that fjall leaves out: it trusts the lengths in its small files, and a changed one
//! can end the process or hide rows. The checksums are there, so they are compared before it opens the folder.
//!
//! - `keyspaces/N/current` names the version file `vN` and has its XXH3-128.
//! - A table file ends with a trailer of 38 bytes: `SFA!`, version 1, checksum type 0, XXH3-128 of the table of
//!   contents, its place and its length. The contents stand right before the trailer.
//!
//! Blocks of table files have checksums that fjall compares when it reads them.

use super::ledger::{damaged, folder_error};
use crate::error::Result;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

const CURRENT_BYTES: usize = 25;
const TRAILER_BYTES: usize = 38;
/// A table of contents has a dozen entries; more than this is not one.
const CONTENTS_BYTES_MAX: u64 = 1024 * 1024;

/// Compares the checksums of a store's small files. A store that does not exist is sound.
pub(super) fn check(store: &Path) -> Result<()> {
    let keyspaces = store.join("keyspaces");
    if !keyspaces.exists() {
        return Ok(());
    }
    for keyspace in entries(&keyspaces)? {
        // A keyspace without it was being created; the catalog knows whether it matters.
        let version = if keyspace.join("current").exists() { check_version(&keyspace)? } else { Vec::new() };
        let tables = keyspace.join("tables");
        if tables.exists() {
            let named = entries(&tables)?.into_iter().filter(|table| is_named(&version, table));
            named.collect::<Vec<_>>().iter().try_for_each(|table| check_table(table))?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let failed = |error: io::Error| folder_error(folder, &error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// Whether a version names a table: its id, little-endian, before the type of its checksum, which is 0. A process that
/// is killed while it writes a table leaves half a file that no version names; fjall removes it.
fn is_named(version: &[u8], table: &Path) -> bool {
    let id = table.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u64>().ok());
    id.is_none_or(|id| version.windows(9).any(|window| window[..8] == id.to_le_bytes() && window[8] == 0))
}

fn check_version(keyspace: &Path) -> Result<Vec<u8>> {
    let path = keyspace.join("current");
    let bytes = fs::read(&path).map_err(|error| folder_error(&path, &error))?;
    let parsed = || {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let (sum, kind) = rest.split_first_chunk::<16>()?;
        (bytes.len() == CURRENT_BYTES && *kind == [0])
            .then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*sum)))
    };
    let (number, sum) = parsed().ok_or_else(|| damaged(&path, "it is not of the expected form".into()))?;
    let version = keyspace.join(format!("v{number}"));
    match fs::read(&version) {
        Ok(bytes) if xxh3_128(&bytes) == sum => Ok(bytes),
        Ok(_) => Err(damaged(&version, "it does not have its checksum".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(damaged(&version, "it is missing".into()))
        }
        Err(error) => Err(folder_error(&version, &error)),
    }
}

fn check_table(path: &Path) -> Result<()> {
    let failed = |error: io::Error| folder_error(path, &error);
    let wrong = || damaged(path, "its table of contents does not have its checksum".into());
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let trailer_at = length.checked_sub(TRAILER_BYTES as u64).ok_or_else(wrong)?;
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, trailer_at).map_err(failed)?;
    let (head, rest) = trailer.split_at(6);
    let (sum, rest) = rest.split_first_chunk::<16>().ok_or_else(wrong)?;
    let place = rest.first_chunk::<8>().map(|place| u64::from_le_bytes(*place)).ok_or_else(wrong)?;
    let contents_bytes = trailer_at.checked_sub(place).filter(|bytes| *bytes <= CONTENTS_BYTES_MAX);
    let (b"SFA!\x01\x00", Some(contents_bytes)) = (head, contents_bytes) else { return Err(wrong()) };
    let mut contents = vec![0; contents_bytes as usize];
    file.read_exact_at(&mut contents, place).map_err(failed)?;
    if xxh3_128(&contents) == u128::from_le_bytes(*sum) { Ok(()) } else { Err(wrong()) }
}
