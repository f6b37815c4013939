//! The ledger: which batch was committed last, kept beside the store below.
//!
//! The store below cuts its journal off at damage without an error, and everything after it is gone. Therefore
//! each commit has a number and a running checksum of our own, stored in the commit itself and, after it, here.
//! A folder whose store ends before the ledger has lost acknowledged batches.
//!
//! The file has two slots of 64 bytes, written in turn, so that a torn write leaves the other one:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | number of the last committed batch |
//! | 4 | running CRC-32C over all batches up to it |
//! | 8 | number of the last batch that was synced to disk |
//! | 16 | id of the machine's boot |
//! | 4 | CRC-32C of the bytes before it |
//!
//! After a power failure batches that were not synced may be missing: the boot id differs, and only the synced
//! number counts.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use uuid::Uuid;

pub(super) const LEDGER_NAME: &str = "LEDGER";
const SLOT_BYTES: usize = 64;
const BODY_BYTES: usize = 36;

/// Number and running checksum of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) chain: u32,
}

impl Batch {
    /// The next batch, whose keys and values are `digest`.
    pub(super) fn next(self, digest: u32) -> Batch {
        Batch { number: self.number + 1, chain: crc32c::crc32c_append(self.chain, &digest.to_be_bytes()) }
    }

    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..].copy_from_slice(&self.chain.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Batch> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let chain = rest.first_chunk::<4>()?;
        Some(Batch { number: u64::from_be_bytes(*number), chain: u32::from_be_bytes(*chain) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    batch: Batch,
    synced: u64,
    boot: Uuid,
}

/// The ledger file, and what its newest slot says.
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
    slot: Slot,
    writes: u64,
}

impl Ledger {
    /// Opens the ledger of a folder and compares it with `stored`, the last batch of the store below, which is
    /// synced.
    pub(super) fn open(folder: &Path, stored: Option<Batch>, accept_loss: bool) -> Result<Ledger> {
        let path = folder.join(LEDGER_NAME);
        let boot = boot_id();
        let stored_batch = stored.unwrap_or_default();
        let fresh = Slot { batch: stored_batch, synced: stored_batch.number, boot };
        if !accept_loss {
            match read(&path)? {
                Some(slot) => compare(folder, slot, stored_batch, boot)?,
                None if stored.is_some() => return Err(lost(&path, "it is missing".into())),
                None => {}
            }
        }
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = options.map_err(|error| folder_error(&path, &error))?;
        let mut ledger = Ledger { file, slot: fresh, writes: 0 };
        // Both slots, so that an older one with a higher number cannot come back.
        for _ in 0..2 {
            ledger.write().map_err(|error| folder_error(&path, &error))?;
        }
        Ok(ledger)
    }

    pub(super) fn last(&self) -> Batch {
        self.slot.batch
    }

    /// A batch was committed.
    pub(super) fn committed(&mut self, batch: Batch) -> io::Result<()> {
        self.slot.batch = batch;
        self.write()
    }

    /// Everything committed so far is on disk.
    pub(super) fn synced(&mut self) -> io::Result<()> {
        self.slot.synced = self.slot.batch.number;
        self.write()?;
        self.file.sync_data()
    }

    fn write(&mut self) -> io::Result<()> {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..12].copy_from_slice(&self.slot.batch.to_bytes());
        bytes[12..20].copy_from_slice(&self.slot.synced.to_be_bytes());
        bytes[20..BODY_BYTES].copy_from_slice(self.slot.boot.as_bytes());
        let sum = crc32c::crc32c(&bytes[..BODY_BYTES]);
        bytes[BODY_BYTES..BODY_BYTES + 4].copy_from_slice(&sum.to_be_bytes());
        let at = self.writes % 2 * SLOT_BYTES as u64;
        self.writes += 1;
        self.file.write_all_at(&bytes, at)
    }
}

/// The newer of the two slots; `None` if there is no ledger.
fn read(path: &PathBuf) -> Result<Option<Slot>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(folder_error(path, &error)),
    };
    let slots = bytes.chunks(SLOT_BYTES).take(2).filter_map(parse);
    let newest = slots.max_by_key(|slot| (slot.batch.number, slot.synced));
    newest.map(Some).ok_or_else(|| lost(path, "no entry of it has its checksum".into()))
}

fn parse(bytes: &[u8]) -> Option<Slot> {
    let sum = bytes.get(BODY_BYTES..BODY_BYTES + 4)?;
    if crc32c::crc32c(&bytes[..BODY_BYTES]).to_be_bytes() != sum {
        return None;
    }
    let synced = u64::from_be_bytes(bytes[12..20].try_into().ok()?);
    Some(Slot {
        batch: Batch::from_bytes(bytes)?,
        synced,
        boot: Uuid::from_slice(&bytes[20..BODY_BYTES]).ok()?,
    })
}

fn compare(folder: &Path, slot: Slot, stored: Batch, boot: Uuid) -> Result<()> {
    let required = if slot.boot == boot { slot.batch.number } else { slot.synced };
    if stored.number < required {
        let missing = required - stored.number;
        let problem = format!(
            "its journal (*.jnl) ends at batch {}, but batch {required} was acknowledged: {missing} batches are missing",
            stored.number
        );
        return Err(lost(folder, problem));
    }
    if stored.number < slot.batch.number {
        let lost = slot.batch.number - stored.number;
        tracing::warn!(folder = %folder.display(), lost, "the last batches before the machine stopped were not synced and are lost");
    }
    if stored.number == slot.batch.number && stored.chain != slot.batch.chain {
        return Err(lost(
            folder,
            "the checksum over its batches differs: files of two folders were mixed".into(),
        ));
    }
    Ok(())
}

/// The id of this boot; all zeros where the system has none, which makes every open count as the same boot.
fn boot_id() -> Uuid {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

/// What to do about damage.
pub(super) const REMEDY: &str = "restore the folder from a copy, or move it away: a new one begins empty, and events that still wait in their logs reach it";
/// What to do about missing batches: the rest of the store is sound.
const REMEDY_OF_LOSS: &str = "restore the folder from a copy, or go on with what is left: `emberkeep repair --history file:DIR`, or `accept_loss` of `Options`";

/// Batches are missing, or it cannot be shown that none is.
pub(super) fn lost(place: &Path, problem: String) -> Error {
    Error::Damaged { place: place.display().to_string(), problem, remedy: REMEDY_OF_LOSS }
}

pub(super) fn damaged(place: &Path, problem: String) -> Error {
    Error::Damaged { place: place.display().to_string(), problem, remedy: REMEDY }
}

pub(super) fn folder_error(path: &Path, error: &io::Error) -> Error {
    Error::Folder { path: path.display().to_string(), problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("emberkeep-ledger-{}", Uuid::new_v4()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn lost_batches_are_noticed() {
        let folder = folder();
        let first = Batch::default().next(1);
        let second = first.next(2);
        let mut ledger = Ledger::open(&folder, None, false).unwrap();
        ledger.committed(first).unwrap();
        ledger.committed(second).unwrap();
        drop(ledger);
        let error = Ledger::open(&folder, Some(first), false).unwrap_err();
        assert!(error.to_string().contains("1 batches are missing"), "{error}");
        let mixed = Batch { chain: 7, ..second };
        assert!(matches!(Ledger::open(&folder, Some(mixed), false), Err(Error::Damaged { .. })));
        let ledger = Ledger::open(&folder, Some(second), false).unwrap();
        assert_eq!((ledger.last(), ledger.slot.synced), (second, 2), "what was synced stays synced");
        assert_eq!(Ledger::open(&folder, Some(first), true).unwrap().last(), first);
        Ledger::open(&folder, Some(first), false).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn after_a_power_failure_only_synced_batches_count() {
        let (boot, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let slot = Slot { batch: Batch { number: 9, chain: 0 }, synced: 5, boot };
        let path = Path::new("history");
        let stored = |number| Batch { number, chain: 1 };
        assert!(compare(path, slot, stored(5), other).is_ok());
        assert!(compare(path, slot, stored(4), other).is_err());
        assert!(compare(path, slot, stored(8), boot).is_err());
        assert!(
            compare(path, slot, stored(10), boot).is_ok(),
            "committed, and killed before the ledger was written"
        );
    }

    #[test]
    fn a_torn_slot_leaves_the_other_one() {
        let folder = folder();
        let first = Batch::default().next(1);
        let mut ledger = Ledger::open(&folder, None, false).unwrap();
        ledger.committed(first).unwrap();
        ledger.committed(first.next(2)).unwrap();
        drop(ledger);
        let path = folder.join(LEDGER_NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[SLOT_BYTES + 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap().unwrap().batch, first);
        bytes[3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(read(&path), Err(Error::Damaged { .. })));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
