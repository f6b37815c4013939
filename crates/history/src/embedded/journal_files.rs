//! Checks of fjall's sealed journals: fjall drops the rest of a journal at damage and goes on with the next one, so
//! batches in the middle would be missing without an error.
//!
//! All journals but the newest are sealed: they were synced before the next one was begun, so they are whole.
//! A journal is a row of batches, numbers little endian:
//!
//! | part | bytes |
//! |---|---|
//! | start | `01`, count of items (4), sequence number (8) |
//! | item | `02`, type (1), compression (1), keyspace (8), lengths of key (2), value (4), stored value (4); key, stored value |
//! | clear | `04`, keyspace (8); counts as an item |
//! | end | `03`, XXH3-64 of the items (8), `FJL` and version 3 |
//!
//! Reserved space after the last batch is zero. Not covered by a checksum: the sequence number of a batch.

use super::ledger::{folder_error, lost};
use crate::error::Result;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const TRAILER: &[u8] = b"FJL\x03";

/// Compares the checksums of all sealed journals. A store that does not exist is sound.
pub(super) fn check(store: &Path) -> Result<()> {
    let mut journals = match journals(store) {
        Ok(journals) => journals,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(folder_error(store, &error)),
    };
    journals.sort_unstable();
    // The newest one may end in the middle of a batch; the ledger knows whether that matters.
    journals.pop();
    for (_, path) in journals {
        let bytes = fs::read(&path).map_err(|error| folder_error(&path, &error))?;
        if let Err(at) = walk(&bytes) {
            return Err(lost(&path, format!("the batch at byte {at} of this sealed journal is damaged")));
        }
    }
    Ok(())
}

fn journals(store: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(store)? {
        let path = entry?.path();
        // Other names are refused by fjall itself.
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jnl")?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    Ok(found)
}

/// Reads batch by batch to the end; the error is where the first damaged batch begins.
fn walk(bytes: &[u8]) -> std::result::Result<(), usize> {
    let mut rest = bytes;
    while rest.first().is_some_and(|tag| *tag != 0) {
        let at = bytes.len() - rest.len();
        take_batch(&mut rest).ok_or(at)?;
    }
    let is_zero = rest.chunks(4096).all(|chunk| *chunk == [0; 4096][..chunk.len()]);
    if is_zero { Ok(()) } else { Err(bytes.len() - rest.len()) }
}

fn take_batch(rest: &mut &[u8]) -> Option<()> {
    let start = take(rest, 13)?;
    let [1, count @ ..] = *start.first_chunk::<5>()? else { return None };
    let items = *rest;
    for _ in 0..u32::from_le_bytes(count) {
        take_item(rest)?;
    }
    let items = &items[..items.len() - rest.len()];
    let end = take(rest, 9 + TRAILER.len())?;
    let (sum, trailer) = end.strip_prefix(&[3])?.split_first_chunk::<8>()?;
    (trailer == TRAILER && xxh3_64(items) == u64::from_le_bytes(*sum)).then_some(())
}

fn take_item(rest: &mut &[u8]) -> Option<()> {
    match take(rest, 1)?.first()? {
        2 => {
            let head = take(rest, 20)?;
            let key_bytes = u16::from_le_bytes(*head[10..].first_chunk()?);
            let value_bytes = u32::from_le_bytes(*head[16..].first_chunk()?);
            take(rest, usize::from(key_bytes) + value_bytes as usize)?;
        }
        4 => {
            take(rest, 8)?;
        }
        _ => return None,
    }
    Some(())
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fjall::{Database, KeyspaceCreateOptions};

    fn folder() -> PathBuf {
        std::env::temp_dir().join(format!("emberkeep-journals-{}", uuid::Uuid::new_v4()))
    }

    fn fill(folder: &Path, rows: usize, row_bytes: usize) {
        let database = Database::builder(folder).open().unwrap();
        let keyspace = |name: &str| database.keyspace(name, KeyspaceCreateOptions::default).unwrap();
        // One that stays in memory, so that the first journal is needed until the end.
        let (small, large) = (keyspace("small"), keyspace("large"));
        small.clear().unwrap();
        small.insert("a", "b").unwrap();
        let mut value = vec![0; row_bytes];
        // Random, so that it is not compressed.
        fastrand::Rng::with_seed(7).fill(&mut value);
        for row in 0..rows {
            let mut batch = database.batch();
            batch.insert(&large, format!("{row:09}"), value.as_slice());
            batch.remove(&small, format!("{row}"));
            batch.commit().unwrap();
        }
        if rows * row_bytes > 64_000_000 {
            // The journal is sealed when memory is written to a file.
            large.rotate_memtable_and_wait().unwrap();
        }
    }

    #[test]
    fn every_flipped_byte_of_a_batch_is_noticed() {
        let folder = folder();
        fill(&folder, 5, 30);
        let (_, path) = journals(&folder).unwrap().pop().unwrap();
        let mut bytes = fs::read(path).unwrap();
        let written = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        assert_eq!(walk(&bytes), Ok(()));
        bytes.truncate(written + 9_000);
        assert_eq!(walk(&bytes), Ok(()), "with some reserved space");
        let mut unnoticed = 0;
        for at in 0..written {
            bytes[at] ^= 0x55;
            unnoticed += usize::from(walk(&bytes).is_ok());
            bytes[at] ^= 0x55;
        }
        assert_eq!(unnoticed, 8 * 7, "the sequence number of each batch");
        assert!(walk(&bytes[..written - 1]).is_err(), "cut off");
        *bytes.last_mut().unwrap() = 1;
        assert_eq!(walk(&bytes), Err(written), "reserved space is zero");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_journal_that_was_sealed_is_whole_or_damaged() {
        let folder = folder();
        check(&folder).unwrap();
        fill(&folder, 80, 1_000_000);
        let mut found = journals(&folder).unwrap();
        found.sort_unstable();
        assert!(found.len() > 1, "a second journal was begun: {found:?}");
        check(&folder).unwrap();
        let (_, sealed) = &found[0];
        let mut bytes = fs::read(sealed).unwrap();
        bytes[30_000_000] ^= 0x55;
        fs::write(sealed, bytes).unwrap();
        let error = check(&folder).unwrap_err().to_string();
        assert!(error.contains(&sealed.display().to_string()) && error.contains("accept_loss"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
