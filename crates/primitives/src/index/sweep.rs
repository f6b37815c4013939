//! The sweep: every index of a family and every record, in bounded turns.
//!
//! Budget of a turn: one page of a scan, or [`SWEPT_PER_TURN`] entries or records with the transactions that mend them. It holds nothing
//! between turns, so it may be dropped at any time; what a turn mended stays. Two sweeps at once only do the work twice.

use super::list::{Ghost, Listing, prune, sort};
use super::{Indexed, enter};
use crate::limits::{PRUNED_PER_TRANSACTION, SWEPT_PER_TURN};
use emberkeep_hot::command::Read;
use emberkeep_hot::engine::{Cursor, MemberCursor};
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Scope, Store, Tx};
use emberkeep_schema::{Codec, Id, Key};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// One walk over all indexes and records of `X`.
pub struct Sweeper<X: Indexed> {
    store: Store,
    stage: Stage<X>,
    swept: Swept,
}

/// What a sweep found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Swept {
    /// Entries of indexes that were looked at.
    pub entries: usize,
    /// Records that were looked at.
    pub records: usize,
    /// Entries without a record that were removed.
    pub ghosts: usize,
    /// Records without an entry that got theirs.
    pub orphans: usize,
    /// Records that cannot be read; each error names its key.
    pub corrupt: Vec<Error>,
}

/// Where the walk is.
enum Stage<X: Indexed> {
    /// Entries of the indexes whose keys were found.
    Entries { found: VecDeque<(X::Partition, Key<X::Index>)>, at: Option<MemberCursor>, keys: Walk },
    /// Records whose keys were found.
    Records { found: Vec<(X::Partition, Key<X::Record>)>, keys: Walk },
    /// At its end.
    Over,
}

/// A scan that goes on at a place, or is over.
#[derive(Clone, Copy)]
enum Walk {
    From(Option<Cursor>),
    Over,
}

impl Walk {
    fn of(next: Option<Cursor>) -> Walk {
        next.map_or(Walk::Over, |cursor| Walk::From(Some(cursor)))
    }
}

impl<X: Indexed> Sweeper<X> {
    /// A walk over a store, at its start.
    pub fn new(store: Store) -> Self {
        let keys = Walk::From(None);
        Sweeper {
            store,
            stage: Stage::Entries { found: VecDeque::new(), at: None, keys },
            swept: Swept::default(),
        }
    }

    /// What was found so far.
    pub fn swept(&self) -> &Swept {
        &self.swept
    }

    /// Makes turns until the end, with a pause after each: the pause is the rate limit.
    pub async fn run(mut self, pause: Duration) -> Result<Swept> {
        while self.turn().await? {
            tokio::time::sleep(pause).await;
        }
        Ok(self.swept)
    }

    /// One turn. `false` = the walk is at its end. After an error the same turn can be made again.
    pub async fn turn(&mut self) -> Result<bool> {
        match &self.stage {
            Stage::Entries { found, .. } if !found.is_empty() => self.entries().await?,
            Stage::Entries { keys: Walk::From(cursor), .. } => self.find_indexes(*cursor).await?,
            Stage::Entries { keys: Walk::Over, .. } => {
                self.stage = Stage::Records { found: Vec::new(), keys: Walk::From(None) };
            }
            Stage::Records { found, .. } if !found.is_empty() => self.records().await?,
            Stage::Records { keys: Walk::From(cursor), .. } => self.find_records(*cursor).await?,
            Stage::Records { keys: Walk::Over, .. } => self.stage = Stage::Over,
            Stage::Over => {}
        }
        Ok(!matches!(self.stage, Stage::Over))
    }

    async fn find_indexes(&mut self, from: Option<Cursor>) -> Result<()> {
        let page = self.store.scan::<X::Index>(from, SWEPT_PER_TURN).await?;
        let found = page.keys.into_iter().filter_map(located::<X, _>).collect();
        self.stage = Stage::Entries { found, at: None, keys: Walk::of(page.next) };
        Ok(())
    }

    async fn find_records(&mut self, from: Option<Cursor>) -> Result<()> {
        let page = self.store.scan::<X::Record>(from, SWEPT_PER_TURN).await?;
        let found = page.keys.into_iter().filter_map(located::<X, _>).collect();
        self.stage = Stage::Records { found, keys: Walk::of(page.next) };
        Ok(())
    }

    /// A page of the entries of the first index that was found.
    async fn entries(&mut self) -> Result<()> {
        let Stage::Entries { found, at, .. } = &mut self.stage else { return Ok(()) };
        let Some((partition, index)) = found.front() else { return Ok(()) };
        let (scope, index) = (self.store.scope(partition.clone()), index.clone());
        let page = match scope.members(&index, at.clone(), SWEPT_PER_TURN).await {
            // Somebody else's: told, and not ours to mend.
            Err(error @ Error::WrongType { .. }) => {
                self.swept.corrupt.push(error);
                found.pop_front();
                return Ok(());
            }
            page => page?,
        };
        self.swept.entries += page.members.len();
        self.swept.ghosts += without_ghosts::<X>(&scope, &index, page.members).await?;
        *at = page.next;
        if at.is_none() {
            found.pop_front();
        }
        Ok(())
    }

    /// Looks whether the records that were found are in their indexes.
    async fn records(&mut self) -> Result<()> {
        let Stage::Records { found, .. } = &mut self.stage else { return Ok(()) };
        let mut homed: HashMap<X::Partition, Vec<Homed<X>>> = HashMap::new();
        let mut corrupt = Vec::new();
        for (partition, keys) in by_partition::<X>(found) {
            let values = self.store.scope(partition.clone()).get_each(&keys).await?;
            for (key, value) in keys.iter().zip(values) {
                match value {
                    Ok(Some(value)) => {
                        let partition = X::partition(&value).unwrap_or_else(|| partition.clone());
                        homed.entry(partition).or_default().push((X::member(key), X::home(&value)));
                    }
                    Ok(None) => {}
                    Err(error) => corrupt.push(error),
                }
            }
        }
        for (partition, records) in homed {
            let scope = self.store.scope(partition);
            self.swept.orphans += without_orphans::<X>(&scope, records, &mut corrupt).await?;
        }
        self.swept.records += found.len();
        self.swept.corrupt.extend(corrupt);
        found.clear();
        Ok(())
    }
}

/// A record's id, and the index in which it belongs.
type Homed<X> = (<X as Indexed>::Member, Key<<X as Indexed>::Index>);

/// A key with the partition through which it is reached.
fn located<X: Indexed, K>((partition, key): (Option<X::Partition>, K)) -> Option<(X::Partition, K)> {
    Some((partition.or_else(X::anywhere)?, key))
}

fn by_partition<X: Indexed>(
    found: &[(X::Partition, Key<X::Record>)],
) -> HashMap<X::Partition, Vec<Key<X::Record>>> {
    let mut sorted: HashMap<X::Partition, Vec<Key<X::Record>>> = HashMap::new();
    for (partition, key) in found {
        sorted.entry(partition.clone()).or_default().push(key.clone());
    }
    sorted
}

/// Removes the ghosts among some entries. Answers how many there were.
async fn without_ghosts<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    entries: Vec<Member<X::Member>>,
) -> Result<usize> {
    let (mut members, mut ghosts) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Member::Known(member) => members.push(member),
            Member::External(bytes) => ghosts.push(Ghost::Rubbish(bytes)),
        }
    }
    let mut listing = Listing { living: Vec::new(), corrupt: Vec::new(), pruned: 0 };
    ghosts.extend(sort::<X>(scope, index, &members, &mut listing).await?);
    prune::<X>(scope, index, ghosts).await
}

/// Enters the records that are in no index. Answers how many there were.
async fn without_orphans<X: Indexed>(
    scope: &Scope<X::Partition>,
    records: Vec<Homed<X>>,
    corrupt: &mut Vec<Error>,
) -> Result<usize> {
    let mut orphans = 0;
    for some in records.chunks(PRUNED_PER_TRANSACTION) {
        let mut prefetched = scope.clone();
        for (member, home) in some {
            let mut text = Vec::new();
            Id::<X::Member>::encode(member, &mut text)
                .map_err(|error| Error::Invalid { what: "id", problem: error.to_string() })?;
            prefetched =
                prefetched.prefetch_get(&X::record(member)).prefetch(home, Read::SIsMember(text.into()));
        }
        let some = some.to_vec();
        let (entered, unreadable) = prefetched.transact(move |tx| bring_home::<X>(tx, &some)).await?;
        orphans += entered;
        corrupt.extend(unreadable);
    }
    Ok(orphans)
}

/// Enters those of some records that are in no index. One whose index is no set is told, and holds nobody up.
fn bring_home<X: Indexed>(
    tx: &mut Tx<'_, X::Partition>,
    records: &[Homed<X>],
) -> Result<(usize, Vec<Error>)> {
    let (mut orphans, mut corrupt) = (0, Vec::new());
    for (member, _) in records {
        let value = match tx.get(&X::record(member)) {
            Ok(Some(value)) => value,
            Ok(None) => continue,
            Err(error) if error.is_corrupt() => continue,
            Err(error) => return Err(error),
        };
        match tx.sismember(&X::home(&value), member) {
            Ok(true) => {}
            Ok(false) => {
                enter::<X>(tx, member, &value)?;
                orphans += 1;
            }
            Err(error @ Error::WrongType { .. }) => corrupt.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok((orphans, corrupt))
}
