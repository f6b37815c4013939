//! Snapshots of a store: what users call.

use crate::choice::KeyChoice;
use crate::compare::{Changes, Fingerprints};
use crate::contract::{Listing, SnapshotStore};
use crate::create::{self, KeySource, Progress};
use crate::error::{Error, Result};
use crate::id::SnapshotId;
use crate::info::{Label, SnapshotInfo};
use crate::limits::CANDIDATES_MAX;
use crate::names::Names;
use crate::prune::Retention;
use crate::restore::{self, Applying, RestoreMark, RestoreReport};
use crate::verify::VerifiedReader;
use emberkeep_hot::Store;
use emberkeep_hot::store::PartitionKeys;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Snapshots of hot state in a store of snapshots.
#[derive(Clone)]
pub struct Snapshots {
    hot: Store,
    store: Arc<dyn SnapshotStore>,
}

impl Snapshots {
    /// Snapshots of this hot state, in this store.
    pub fn new(hot: Store, store: Arc<dyn SnapshotStore>) -> Snapshots {
        Snapshots { hot, store }
    }

    /// The hot state.
    pub fn hot(&self) -> &Store {
        &self.hot
    }

    /// The store of snapshots.
    pub fn store(&self) -> &Arc<dyn SnapshotStore> {
        &self.store
    }

    /// Makes a snapshot of a partition while the game runs. Which moment it shows depends on the engine, see
    /// [`Store::dump`]. Keys that all partitions share are in it only if they are asked for, see
    /// [`PartitionKeys::with_shared`]. After an error nothing is listed.
    pub async fn create(
        &self,
        keys: &PartitionKeys,
        label: Label,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<SnapshotInfo> {
        let mut dump = self.hot.dump(keys).await?;
        self.create_from(keys, &mut dump, label, progress).await
    }

    /// Makes a snapshot of what a source has: a game that can show a moment of its own, such as a tick.
    pub async fn create_from(
        &self,
        keys: &PartitionKeys,
        source: &mut dyn KeySource,
        label: Label,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<SnapshotInfo> {
        create::create(&self.hot, &*self.store, (keys, source), label, progress).await
    }

    /// All snapshots of the store, the newest last.
    pub async fn list(&self) -> Result<Listing> {
        self.store.list().await
    }

    /// The snapshot of an id, of the beginning of an id, or the newest of a name. A name that several partitions have is
    /// refused.
    pub async fn find(&self, text: &str) -> Result<SnapshotInfo> {
        find(&self.list().await?.snapshots, text, self.store.name())
    }

    /// Reads a snapshot from its first key to its last and compares its checksum.
    pub async fn verify(&self, id: &SnapshotId) -> Result<SnapshotInfo> {
        let mut reader = self.reader(id).await?;
        while reader.next().await?.is_some() {}
        Ok(reader.info().clone())
    }

    /// What differs from one snapshot to another.
    pub async fn diff(&self, from: &SnapshotId, to: &SnapshotId, choice: &KeyChoice) -> Result<Changes> {
        let from = Fingerprints::of_snapshot(&mut self.reader(from).await?, choice, None).await?;
        let to = Fingerprints::of_snapshot(&mut self.reader(to).await?, choice, None).await?;
        Ok(from.changes_to(&to))
    }

    /// What differs from a snapshot to hot state.
    pub async fn diff_live(
        &self,
        from: &SnapshotId,
        keys: &PartitionKeys,
        choice: &KeyChoice,
    ) -> Result<Changes> {
        let (live, stored) = self.both_sides(from, keys, choice).await?;
        Ok(stored.changes_to(&live))
    }

    /// What a restore would change. It reads the whole snapshot, so a damaged one is found here.
    pub async fn preview(
        &self,
        id: &SnapshotId,
        keys: &PartitionKeys,
        choice: &KeyChoice,
    ) -> Result<Changes> {
        let (live, wanted) = self.both_sides(id, keys, choice).await?;
        Ok(live.changes_to(&wanted))
    }

    /// The restore that has begun and not ended.
    pub async fn unfinished(&self, keys: &PartitionKeys) -> Result<Option<RestoreMark>> {
        restore::mark(&self.hot, keys).await
    }

    /// Makes the chosen keys what they are in the snapshot: keys that it does not have are removed, deadlines are the
    /// absolute ones, and keys whose deadline has passed stay away. Of keys that all partitions share only families are
    /// restored that were asked for and that the snapshot has. The game does not run meanwhile, or holds a lease
    /// that keeps its writers away; readers may see some keys before others.
    ///
    /// The generation is raised first, in the store of snapshots. A restore that was interrupted goes on when it is
    /// called again; see [`Snapshots::unfinished`].
    pub async fn restore(
        &self,
        id: &SnapshotId,
        keys: &PartitionKeys,
        choice: &KeyChoice,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<RestoreReport> {
        let mark = self.unfinished(keys).await?;
        restore::check_mark(mark.as_ref(), id, choice)?;
        // The whole snapshot is read and compared before anything is changed.
        let (live, wanted) = self.both_sides(id, keys, choice).await?;
        let changes = live.changes_to(&wanted);
        let resumed = mark.filter(|mark| mark.snapshot == *id && mark.choice == choice.to_string());
        let is_resumed = resumed.is_some();
        let generation = match resumed {
            Some(mark) => mark.generation,
            None => self.begin_restore(id, keys, choice).await?,
        };
        let mut applying = Applying {
            hot: &self.hot,
            keys,
            names: Names::of(self.hot.key_layout(), keys),
            total: changes.added + changes.changed + changes.removed,
            done: Progress::default(),
            progress,
        };
        applying.apply(self.reader(id).await?, &live, &wanted).await?;
        restore::clear_mark(&self.hot, keys).await?;
        Ok(RestoreReport { partition: keys.label(), generation, changes, resumed: is_resumed })
    }

    async fn begin_restore(&self, id: &SnapshotId, keys: &PartitionKeys, choice: &KeyChoice) -> Result<u64> {
        let label = keys.label();
        // A store that lost its generations must not begin anew: snapshots of before would count as newer.
        let listed = self.list().await?.greatest_generation(&label);
        let at_least = listed.map_or(0, |generation| generation.saturating_add(1));
        let generation = self.store.raise_generation(&label, at_least).await?;
        let (snapshot, choice) = (id.clone(), choice.to_string());
        let begun_at = self.hot.now().await?;
        let mark = RestoreMark { snapshot, generation, choice, begun_at };
        restore::set_mark(&self.hot, keys, &mark).await?;
        Ok(generation)
    }

    /// Removes the snapshots of a partition, or those of a name among them, that no rule keeps; returns them.
    pub async fn prune(
        &self,
        partition: &str,
        name: Option<&str>,
        keep: Retention,
    ) -> Result<Vec<SnapshotInfo>> {
        let chosen = self.prunable(partition, name, keep).await?;
        for info in &chosen {
            self.store.remove(&info.id).await?;
        }
        Ok(chosen)
    }

    /// The snapshots that [`Snapshots::prune`] would remove.
    pub async fn prunable(
        &self,
        partition: &str,
        name: Option<&str>,
        keep: Retention,
    ) -> Result<Vec<SnapshotInfo>> {
        if keep.is_empty() {
            return Err(Error::invalid("retention", "it keeps nothing, expected at least one rule"));
        }
        let mut all = self.list().await?.snapshots;
        all.retain(|info| info.partition == partition && name.is_none_or(|name| info.name == name));
        let ids = keep.to_remove(&all);
        all.retain(|info| ids.contains(&info.id));
        Ok(all)
    }

    async fn reader(&self, id: &SnapshotId) -> Result<VerifiedReader> {
        self.store.open(id).await.map(VerifiedReader::new)
    }

    /// Hot state and a snapshot of the same partition.
    async fn both_sides(
        &self,
        id: &SnapshotId,
        keys: &PartitionKeys,
        choice: &KeyChoice,
    ) -> Result<(Fingerprints, Fingerprints)> {
        let mut reader = self.reader(id).await?;
        let info = reader.info();
        // All partitions would lose the keys of a shared family of which the snapshot has nothing.
        let keys = &keys
            .clone()
            .without_shared_but(self.hot.key_layout(), |family| info.families.contains_key(family));
        if reader.info().partition != keys.label() {
            let problem = format!("{id} is of {}, not of {}", reader.info().partition, keys.label());
            return Err(Error::invalid("snapshot", problem));
        }
        let (layout, names) = (self.hot.key_layout().clone(), Names::of(self.hot.key_layout(), keys));
        let (meant, chosen) = (keys.clone(), choice.clone());
        let raw_names = Names::of(&layout, keys);
        // Families that the schema does not have any more, or that were not asked for, stay as they are.
        let known = KeyChoice::by(choice.to_string(), move |name| {
            let raw = raw_names.raw(&bytes::Bytes::copy_from_slice(name));
            chosen.chooses(name) && meant.family_of(&layout, &raw).is_some()
        });
        let now = self.hot.now().await?;
        let stored = Fingerprints::of_snapshot(&mut reader, &known, Some(now)).await?;
        let mut dump = self.hot.dump(keys).await?;
        let live = Fingerprints::of_source(&mut dump, &names, choice).await?;
        Ok((live, stored))
    }
}

fn find(snapshots: &[SnapshotInfo], text: &str, store: String) -> Result<SnapshotInfo> {
    let missing = || Error::NotFound { id: text.to_owned(), store };
    if text.is_empty() {
        return Err(missing());
    }
    let by_id: Vec<&SnapshotInfo> =
        snapshots.iter().filter(|info| info.id.as_str().starts_with(text)).collect();
    let of_name = snapshots.iter().filter(|info| info.name == text);
    // The newest come last, and take the place of those before.
    let newest: BTreeMap<&str, &SnapshotInfo> = of_name.map(|info| (info.partition.as_str(), info)).collect();
    let by_name: Vec<&SnapshotInfo> = newest.into_values().collect();
    match (&by_id[..], &by_name[..]) {
        ([one], _) | ([], [one]) => Ok((*one).clone()),
        ([], []) => Err(missing()),
        ([], several) | (several, _) => Err(ambiguous(text, several)),
    }
}

/// Names some of the candidates with their partitions.
fn ambiguous(text: &str, several: &[&SnapshotInfo]) -> Error {
    let shown = several.iter().take(CANDIDATES_MAX).map(|info| format!("{} of {}", info.id, info.partition));
    let mut shown = shown.collect::<Vec<_>>().join(", ");
    if several.len() > CANDIDATES_MAX {
        shown.push_str(&format!(" and {} more", several.len() - CANDIDATES_MAX));
    }
    Error::invalid("snapshot", format!("{text:?} may be {shown}; expected the id of one"))
}
