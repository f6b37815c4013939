//! Restores a snapshot: first the generation in the snapshot store, then a mark in hot state, then the keys that
//! differ, then the end of the mark.
//!
//! Every transaction leaves whole keys behind, so a restore that was interrupted is begun again from the mark: it
//! compares anew and writes what still differs. Only a key that is larger than a transaction is written in several;
//! such a key differs until its last piece.

use crate::choice::KeyChoice;
use crate::compare::{Changes, Fingerprints};
use crate::create::Progress;
use crate::error::{Error, Result};
use crate::id::SnapshotId;
use crate::info::SnapshotInfo;
use crate::limits::*;
use crate::names::Names;
use crate::verify::VerifiedReader;
use bytes::Bytes;
use emberkeep_hot::Store;
use emberkeep_hot::command::{Expiry, KeyDump, RawKey, Read, Reply, Write};
use emberkeep_hot::store::PartitionKeys;
use emberkeep_hot::tx::RawTx;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The mark of a restore that has begun and not ended, in hot state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreMark {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// The generation that the partition has afterwards.
    pub generation: u64,
    /// Its keys, as [`KeyChoice`] says it.
    pub choice: String,
    /// When it was begun, in milliseconds since 1970.
    pub begun_at: i64,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// Type and text of the partition.
    pub partition: String,
    /// The generation of the partition from now on.
    pub generation: u64,
    /// What differed when it began.
    pub changes: Changes,
    /// Whether it went on with one that was interrupted.
    pub resumed: bool,
}

/// The key of the mark.
fn mark_key(hot: &Store, keys: &PartitionKeys) -> RawKey {
    let mut key = Vec::new();
    hot.key_layout().write_own(keys.partition(), format!("restore:{}", keys.label()).as_bytes(), &mut key);
    key.into()
}

/// The mark of an unfinished restore.
pub(crate) async fn mark(hot: &Store, keys: &PartitionKeys) -> Result<Option<RestoreMark>> {
    let key = mark_key(hot, keys);
    let asked = key.clone();
    let stored = hot.transact_raw(keys.partition(), move |tx| tx.read(&asked, Read::Get)).await?;
    let Reply::Blob(text) = stored else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        let key = emberkeep_hot::show(&key);
        emberkeep_hot::Error::Corrupt { key, reason: error.to_string() }.into()
    })
}

/// Refuses a restore that would leave another one half done.
pub(crate) fn check_mark(mark: Option<&RestoreMark>, id: &SnapshotId, choice: &KeyChoice) -> Result<()> {
    match mark {
        Some(mark) if !choice.is_all() && (mark.snapshot != *id || mark.choice != choice.to_string()) => {
            Err(Error::Restoring { snapshot: mark.snapshot.clone(), choice: mark.choice.clone() })
        }
        _ => Ok(()),
    }
}

/// Sets the mark, durably where the engine is.
pub(crate) async fn set_mark(hot: &Store, keys: &PartitionKeys, mark: &RestoreMark) -> Result<()> {
    let key = mark_key(hot, keys);
    let text = Bytes::from(serde_json::to_vec(mark).expect("a mark is JSON"));
    let set = move |tx: &mut RawTx<'_>| tx.write(key.clone(), Write::Set(text.clone(), Expiry::Never));
    Ok(hot.transact_raw(keys.partition(), set).await?)
}

/// Removes the mark.
pub(crate) async fn clear_mark(hot: &Store, keys: &PartitionKeys) -> Result<()> {
    let key = mark_key(hot, keys);
    Ok(hot.transact_raw(keys.partition(), move |tx| tx.write(key.clone(), Write::Del)).await?)
}

/// Writes what differs.
pub(crate) struct Applying<'a> {
    pub(crate) hot: &'a Store,
    pub(crate) keys: &'a PartitionKeys,
    pub(crate) names: Names,
    pub(crate) total: u64,
    pub(crate) done: Progress,
    pub(crate) progress: &'a mut (dyn FnMut(Progress) + Send),
}

impl Applying<'_> {
    /// Writes the keys of a snapshot in which hot state differs, and removes those that the snapshot does not have.
    pub(crate) async fn apply(
        &mut self,
        mut reader: VerifiedReader,
        live: &Fingerprints,
        wanted: &Fingerprints,
    ) -> Result<()> {
        let (mut batch, mut writes, mut bytes) = (Vec::new(), 0, 0);
        let mut scratch = Vec::new();
        while let Some(keys) = reader.next().await? {
            for key in keys.into_iter().filter(|key| live.lacks(wanted, &key.key)) {
                // This is the second reading: what it finds is written only if the first, which was checked, found it.
                if !wanted.has(&key, &mut scratch) {
                    return Err(changed_meanwhile(reader.info(), &key.key));
                }
                let key = KeyDump { key: self.names.raw(&key.key), ..key };
                if key.bytes() > RESTORE_KEY_BYTES_MAX {
                    self.write_large(key).await?;
                    continue;
                }
                writes += 2 + key.content.len() / 500;
                bytes += key.bytes();
                batch.push(key);
                if writes >= RESTORE_WRITES_TOGETHER
                    || bytes >= RESTORE_BYTES_TOGETHER
                    || batch.len() >= RESTORE_KEYS_TOGETHER
                {
                    self.write(std::mem::take(&mut batch)).await?;
                    (writes, bytes) = (0, 0);
                }
            }
        }
        self.write(batch).await?;
        let removed = live.not_in(wanted);
        for names in removed.chunks(RESTORE_KEYS_TOGETHER) {
            self.remove(names).await?;
        }
        Ok(())
    }

    async fn write(&mut self, batch: Vec<KeyDump>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let bytes = batch.iter().map(KeyDump::bytes).sum::<usize>();
        let batch = Arc::new(batch);
        let count = batch.len();
        let body = move |tx: &mut RawTx<'_>| batch.iter().try_for_each(|key| replace(tx, key));
        self.hot.transact_raw(self.keys.partition(), body).await?;
        self.report(count, bytes);
        Ok(())
    }

    /// A key that one transaction cannot take: removed and made anew, its deadline last.
    async fn write_large(&mut self, key: KeyDump) -> Result<()> {
        let bytes = key.bytes();
        let mut pieces: Vec<Vec<Write>> = vec![vec![Write::Del]];
        let mut piece_bytes = 0;
        for write in key.writes() {
            piece_bytes += write.bytes();
            if piece_bytes > RESTORE_KEY_BYTES_MAX {
                pieces.push(Vec::new());
                piece_bytes = write.bytes();
            }
            pieces.last_mut().expect("there is one from the begin").push(write);
        }
        let deadline = key.deadline;
        for piece in pieces {
            let key = key.key.clone();
            let body = move |tx: &mut RawTx<'_>| {
                if deadline.is_some_and(|deadline| deadline <= tx.now()) {
                    return tx.write(key.clone(), Write::Del);
                }
                piece.iter().try_for_each(|write| tx.write(key.clone(), write.clone()))
            };
            self.hot.transact_raw(self.keys.partition(), body).await?;
        }
        self.report(1, bytes);
        Ok(())
    }

    async fn remove(&mut self, names: &[Bytes]) -> Result<()> {
        let raw: Vec<RawKey> = names.iter().map(|name| self.names.raw(name)).collect();
        let body = move |tx: &mut RawTx<'_>| raw.iter().try_for_each(|key| tx.write(key.clone(), Write::Del));
        self.hot.transact_raw(self.keys.partition(), body).await?;
        self.report(names.len(), 0);
        Ok(())
    }

    fn report(&mut self, keys: usize, bytes: usize) {
        self.done.keys += keys as u64;
        self.done.bytes += bytes as u64;
        (self.progress)(Progress { total: Some(self.total), ..self.done });
    }
}

fn changed_meanwhile(info: &SnapshotInfo, name: &[u8]) -> Error {
    let key = emberkeep_hot::show(name);
    Error::ChangedMeanwhile { snapshot: info.id.to_string(), key }
}

/// The key as it was, in place of what is there. One whose deadline has passed meanwhile is removed.
fn replace(tx: &mut RawTx<'_>, key: &KeyDump) -> emberkeep_hot::Result<()> {
    tx.write(key.key.clone(), Write::Del)?;
    if key.deadline.is_some_and(|deadline| deadline <= tx.now()) {
        return Ok(());
    }
    key.writes().into_iter().try_for_each(|write| tx.write(key.key.clone(), write))
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::testing::{fresh_ring, keys_of, put_ships, state};
    use crate::{FileStore, Label, SnapshotStore, Snapshots};
    use emberkeep_hot::embedded::Embedded;
    use emberkeep_testkit::{block_on, scratch};

    #[test]
    fn a_key_that_changed_between_two_readings_is_not_written() {
        let scratch = scratch();
        block_on(async {
            let hot = Store::new(Arc::new(Embedded::in_memory()));
            let store = FileStore::open(scratch.path()).expect("a folder").shared();
            let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store.clone()));
            let keys = keys_of(&ring);
            let taken = async |value| {
                put_ships(&hot, &ring, 0..5, value).await;
                snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot").id
            };
            let (first, second) = (taken(1).await, taken(2).await);
            let reader = async |id| VerifiedReader::new(store.open(id).await.expect("it is there"));
            let all = KeyChoice::all();
            let wanted = Fingerprints::of_snapshot(&mut reader(&first).await, &all, None).await;
            let before = state(&hot, &keys).await;
            let names = Names::of(hot.key_layout(), &keys);
            let (done, progress) = (Progress::default(), &mut |_: Progress| ());
            let mut applying = Applying { hot: &hot, keys: &keys, names, total: 5, done, progress };
            let live = Fingerprints::default();
            let refused = applying.apply(reader(&second).await, &live, &wanted.expect("sound")).await;
            assert!(matches!(refused, Err(Error::ChangedMeanwhile { .. })), "{refused:?}");
            assert_eq!(state(&hot, &keys).await, before);
        });
    }
}
