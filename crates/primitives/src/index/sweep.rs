//! The sweep: the background pass over every index of a family and every record, in bounded turns.
//!
//! Budget of a turn: one page of a scan, or about [`SWEPT_PER_TURN`] entries or records with the
//! transactions that repair them. The entries of one turn come from as many indexes as it takes. A sweep
//! holds nothing between turns, so it can be dropped at any time; finished repairs stay. Two sweeps at once
//! only do the work twice.

use super::list::{Listing, StaleEntry, classify, prune};
use super::{Indexed, enter};
use crate::encode::part_bytes;
use crate::limits::{PRUNED_PER_TRANSACTION, SWEPT_PER_TURN};
use emberkeep_hot::command::Read;
use emberkeep_hot::engine::{Cursor, MemberCursor};
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Scope, Store, Tx};
use emberkeep_schema::Key;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// One sweep over all indexes and records of `X`.
pub struct Sweeper<X: Indexed> {
    store: Store,
    stage: Stage<X>,
    swept: SweepReport,
}

/// What a sweep examined and repaired.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SweepReport {
    /// Index entries that were examined.
    pub entries: usize,
    /// Records that were examined.
    pub records: usize,
    /// Stale index entries that were removed.
    pub stale: usize,
    /// Records without an index entry that were entered.
    pub orphans: usize,
    /// Records that cannot be decoded. Each error names its key.
    pub corrupt: Vec<Error>,
}

/// The stage of a sweep.
enum Stage<X: Indexed> {
    /// Entries of the indexes whose keys were found.
    Entries { found: VecDeque<(X::Partition, Key<X::Index>)>, at: Option<MemberCursor>, keys: Walk },
    /// Records whose keys were found.
    Records { found: Vec<(X::Partition, Key<X::Record>)>, keys: Walk },
    /// Everything was visited.
    Over,
}

/// A scan that continues at a cursor, or is finished.
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
    /// A sweep of a store, at its start.
    pub fn new(store: Store) -> Self {
        let keys = Walk::From(None);
        Sweeper {
            store,
            stage: Stage::Entries { found: VecDeque::new(), at: None, keys },
            swept: SweepReport::default(),
        }
    }

    /// The report so far.
    pub fn swept(&self) -> &SweepReport {
        &self.swept
    }

    /// Runs turns until the end, with a pause after each: the pause is the rate limit. Zero is none.
    pub async fn run(mut self, pause: Duration) -> Result<SweepReport> {
        while self.turn().await? {
            rest(pause).await;
        }
        Ok(self.swept)
    }

    /// Runs one turn. `false` = the sweep is finished. After an error the same turn can be repeated.
    pub async fn turn(&mut self) -> Result<bool> {
        match &self.stage {
            Stage::Entries { found, .. } if !found.is_empty() => self.fill().await?,
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

    /// Entries of the indexes that were found, until the budget of a turn is used.
    async fn fill(&mut self) -> Result<()> {
        let mut left = SWEPT_PER_TURN;
        while let Stage::Entries { found, .. } = &self.stage
            && !found.is_empty()
            && left > 0
        {
            let before = self.swept.entries;
            self.entries(left).await?;
            // An empty page was read, too: it costs as much as an entry.
            left = left.saturating_sub((self.swept.entries - before).max(1));
        }
        Ok(())
    }

    /// A page of about `count` entries of the first index that was found.
    async fn entries(&mut self, count: usize) -> Result<()> {
        let Stage::Entries { found, at, .. } = &mut self.stage else { return Ok(()) };
        let Some((partition, index)) = found.front() else { return Ok(()) };
        let (scope, index) = (self.store.scope(partition.clone()), index.clone());
        let page = match scope.members(&index, at.clone(), count).await {
            // An external client put another type here: report it and leave it.
            Err(error @ Error::WrongType { .. }) => {
                self.swept.corrupt.push(error);
                found.pop_front();
                return Ok(());
            }
            page => page?,
        };
        self.swept.entries += page.members.len();
        self.swept.stale += remove_stale::<X>(&scope, &index, page.members).await?;
        *at = page.next;
        if at.is_none() {
            found.pop_front();
        }
        Ok(())
    }

    /// Enters the records that were found into their indexes if they are missing there.
    async fn records(&mut self) -> Result<()> {
        let Stage::Records { found, .. } = &mut self.stage else { return Ok(()) };
        let mut homes: HashMap<X::Partition, Vec<RecordHome<X>>> = HashMap::new();
        let mut corrupt = Vec::new();
        for (partition, keys) in by_partition::<X>(found) {
            let values = self.store.scope(partition.clone()).get_each(&keys).await?;
            for (key, value) in keys.iter().zip(values) {
                match value {
                    Ok(Some(value)) => {
                        let partition = X::partition(&value).unwrap_or_else(|| partition.clone());
                        homes.entry(partition).or_default().push((X::member(key), X::home(&value)));
                    }
                    Ok(None) => {}
                    Err(error) => corrupt.push(error),
                }
            }
        }
        for (partition, records) in homes {
            let scope = self.store.scope(partition);
            self.swept.orphans += enter_orphans::<X>(&scope, records, &mut corrupt).await?;
        }
        self.swept.records += found.len();
        self.swept.corrupt.extend(corrupt);
        found.clear();
        Ok(())
    }
}

/// The pause between two turns of a sweep. Zero only lets other tasks run: a timer never waits for less than
/// a millisecond.
pub async fn rest(pause: Duration) {
    match pause.is_zero() {
        true => tokio::task::yield_now().await,
        false => tokio::time::sleep(pause).await,
    }
}

/// A record's id and the index it belongs to.
type RecordHome<X> = (<X as Indexed>::Member, Key<<X as Indexed>::Index>);

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

/// Removes the stale ones of some entries, and returns how many.
async fn remove_stale<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    entries: Vec<Member<X::Member>>,
) -> Result<usize> {
    let (mut members, mut stale) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Member::Known(member) => members.push(member),
            Member::External(bytes) => stale.push(StaleEntry::Invalid(bytes)),
        }
    }
    let mut listing = Listing { living: Vec::new(), corrupt: Vec::new(), pruned: 0 };
    stale.extend(classify::<X>(scope, index, &members, &mut listing).await?);
    prune::<X>(scope, index, stale).await
}

/// Enters the records that are in no index, and returns how many.
async fn enter_orphans<X: Indexed>(
    scope: &Scope<X::Partition>,
    records: Vec<RecordHome<X>>,
    corrupt: &mut Vec<Error>,
) -> Result<usize> {
    let mut orphans = 0;
    for some in records.chunks(PRUNED_PER_TRANSACTION) {
        let mut prefetched = scope.clone();
        for (member, home) in some {
            let is_member = Read::SIsMember(part_bytes(member).into());
            prefetched = prefetched.prefetch_get(&X::record(member)).prefetch(home, is_member);
        }
        let some = some.to_vec();
        let (entered, unreadable) = prefetched.transact(move |tx| enter_missing::<X>(tx, &some)).await?;
        orphans += entered;
        corrupt.extend(unreadable);
    }
    Ok(orphans)
}

/// Enters those of some records that are in no index. An index of another type is reported and does not stop
/// the others.
fn enter_missing<X: Indexed>(
    tx: &mut Tx<'_, X::Partition>,
    records: &[RecordHome<X>],
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
