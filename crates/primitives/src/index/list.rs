//! Reading an index and removing its stale entries.

use super::{Indexed, belongs_to, owner};
use crate::limits::{LISTED_PER_READ, PRUNED_PER_TRANSACTION};
use bytes::Bytes;
use emberkeep_hot::engine::MemberCursor;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::Key;
use std::collections::BTreeSet;

/// The records of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<V> {
    /// Records that exist and belong to the index, in the order of their ids.
    pub living: Vec<V>,
    /// Records that cannot be decoded. Each error names its key.
    pub corrupt: Vec<Error>,
    /// Stale entries that were removed. Includes entries that another transaction removed meanwhile: pruning
    /// reads the record, not the entry.
    pub pruned: usize,
}

/// An index entry without a record that belongs to the index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StaleEntry<M> {
    /// An id without such a record.
    Id(M),
    /// Bytes that are not an id.
    Invalid(Bytes),
}

/// Reads an index and removes its stale entries. A scope that acts as another service than the owner of the index
/// leaves them in it.
pub async fn list<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<Listing<X::Value>> {
    prune_all::<X>(scope, index, read_all::<X>(scope, index).await?).await
}

/// One page of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexPage<V> {
    /// Records of this page, possibly none although more follow. A record may be on two pages.
    pub listing: Listing<V>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<MemberCursor>,
}

/// Reads about `count` entries of an index of any size and removes the stale ones, as [`list`] does.
pub async fn page<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<IndexPage<X::Value>> {
    let page = scope.members(index, from, count).await?;
    let (ids, stale) = split::<X>(page.members);
    let listing = prune_all::<X>(scope, index, read_entries::<X>(scope, index, ids, stale).await?).await?;
    Ok(IndexPage { listing, next: page.next })
}

/// Reads an index without changing it.
pub async fn living<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<Listing<X::Value>> {
    Ok(read_all::<X>(scope, index).await?.0)
}

/// The records of all entries, and the stale entries.
async fn read_all<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<(Listing<X::Value>, Vec<StaleEntry<X::Member>>)> {
    let (members, stale) = members::<X>(scope, index).await?;
    read_entries::<X>(scope, index, members, stale).await
}

/// The records of some entries, and the stale entries.
async fn read_entries<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    members: Vec<X::Member>,
    mut stale: Vec<StaleEntry<X::Member>>,
) -> Result<(Listing<X::Value>, Vec<StaleEntry<X::Member>>)> {
    let mut listing = Listing { living: Vec::new(), corrupt: Vec::new(), pruned: 0 };
    for members in members.chunks(LISTED_PER_READ) {
        stale.extend(classify::<X>(scope, index, members, &mut listing).await?);
    }
    Ok((listing, stale))
}

/// Removes the stale entries that were found, if the scope may write the index.
async fn prune_all<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    (mut listing, stale): (Listing<X::Value>, Vec<StaleEntry<X::Member>>),
) -> Result<Listing<X::Value>> {
    if !scope.may_write(index) {
        return Ok(listing);
    }
    match prune::<X>(scope, index, stale).await {
        Ok(pruned) => listing.pruned = pruned,
        // The result is right without pruning, and the next reader finds the same stale entries.
        Err(error) if error.is_transient() => {}
        Err(error) => return Err(error),
    }
    Ok(listing)
}

/// All entries, each once: ids in order, and entries that are not ids.
async fn members<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<(Vec<X::Member>, Vec<StaleEntry<X::Member>>)> {
    let (mut members, mut from) = (Vec::new(), None);
    loop {
        let page = scope.members(index, from, LISTED_PER_READ).await?;
        members.extend(page.members);
        from = page.next;
        if from.is_none() {
            return Ok(split::<X>(members));
        }
    }
}

fn split<X: Indexed>(members: Vec<Member<X::Member>>) -> (Vec<X::Member>, Vec<StaleEntry<X::Member>>) {
    let (mut ids, mut invalid) = (BTreeSet::new(), BTreeSet::new());
    for member in members {
        match member {
            Member::Known(id) => drop(ids.insert(id)),
            Member::External(bytes) => drop(invalid.insert(StaleEntry::Invalid(bytes))),
        }
    }
    (ids.into_iter().collect(), invalid.into_iter().collect())
}

/// Reads the records of some entries in one round trip and returns the stale entries.
pub(super) async fn classify<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    members: &[X::Member],
    listing: &mut Listing<X::Value>,
) -> Result<Vec<StaleEntry<X::Member>>> {
    let keys: Vec<_> = members.iter().map(X::record).collect();
    let (owner, mut stale) = (owner::<X>(scope), Vec::new());
    for (member, found) in members.iter().zip(scope.get_each(&keys).await?) {
        match found {
            Ok(Some(value)) if belongs_to::<X>(&value, index, owner.as_ref()) => listing.living.push(value),
            Ok(_) => stale.push(StaleEntry::Id(member.clone())),
            Err(error) => listing.corrupt.push(error),
        }
    }
    Ok(stale)
}

/// Removes entries that are still stale when the transaction commits, and returns how many.
pub(super) async fn prune<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    stale: Vec<StaleEntry<X::Member>>,
) -> Result<usize> {
    let mut pruned = 0;
    for some in stale.chunks(PRUNED_PER_TRANSACTION) {
        let records = some.iter().filter_map(|entry| match entry {
            StaleEntry::Id(member) => Some(X::record(member)),
            StaleEntry::Invalid(_) => None,
        });
        let prefetched = records.fold(scope.clone(), |scope, key| scope.prefetch_get(&key));
        let (index, owner, some) = (index.clone(), owner::<X>(scope), some.to_vec());
        pruned += prefetched.transact(move |tx| remove::<X>(tx, &index, owner.as_ref(), &some)).await?;
    }
    Ok(pruned)
}

fn remove<X: Indexed>(
    tx: &mut Tx<'_, X::Partition>,
    index: &Key<X::Index>,
    owner: Option<&X::Partition>,
    stale: &[StaleEntry<X::Member>],
) -> Result<usize> {
    let mut removed = 0;
    for entry in stale {
        match entry {
            StaleEntry::Invalid(bytes) => tx.srem_raw(index, bytes.clone())?,
            StaleEntry::Id(member) if !is_valid::<X>(tx, index, owner, member)? => tx.srem(index, member)?,
            StaleEntry::Id(_) => continue,
        }
        removed += 1;
    }
    Ok(removed)
}

/// Whether the record belongs to this index. A record that cannot be decoded may, so its entry stays.
fn is_valid<X: Indexed>(
    tx: &mut Tx<'_, X::Partition>,
    index: &Key<X::Index>,
    owner: Option<&X::Partition>,
    member: &X::Member,
) -> Result<bool> {
    match tx.get(&X::record(member)) {
        Ok(found) => Ok(found.is_some_and(|value| belongs_to::<X>(&value, index, owner))),
        Err(error) if error.is_corrupt() => Ok(true),
        Err(error) => Err(error),
    }
}
