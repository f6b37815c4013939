//! Reading an index, and removing what should not be in it.

use super::{Indexed, owner, says};
use crate::limits::{LISTED_PER_READ, PRUNED_PER_TRANSACTION};
use bytes::Bytes;
use emberkeep_hot::engine::MemberCursor;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::Key;
use std::collections::BTreeSet;

/// What an index holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<V> {
    /// Records that live and belong there, in the order of their ids.
    pub living: Vec<V>,
    /// Records that cannot be read; each error names its key.
    pub corrupt: Vec<Error>,
    /// Entries that were removed because no such record belongs there. One that left with its record meanwhile may be
    /// counted, too: the transaction that prunes looks at the record, not at the entry.
    pub pruned: usize,
}

/// An entry that should not be there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ghost<M> {
    /// An id without a record of this index.
    Id(M),
    /// No id at all.
    Rubbish(Bytes),
}

/// Reads an index, and removes the ghosts in it. For the owner of the index.
pub async fn list<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<Listing<X::Value>> {
    settle::<X>(scope, index, look::<X>(scope, index).await?).await
}

/// A part of what an index holds.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexPage<V> {
    /// Records of this page, possibly none although more follow; one may stand on two pages.
    pub listing: Listing<V>,
    /// Where to go on; `None` at the end.
    pub next: Option<MemberCursor>,
}

/// Reads about `count` entries of an index of any size, and removes the ghosts among them. For the owner of the index.
pub async fn page<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<IndexPage<X::Value>> {
    let page = scope.members(index, from, count).await?;
    let (ids, ghosts) = sorted::<X>(page.members);
    let listing = settle::<X>(scope, index, look_at::<X>(scope, index, ids, ghosts).await?).await?;
    Ok(IndexPage { listing, next: page.next })
}

/// Reads an index without touching it. For those who may only read.
pub async fn living<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<Listing<X::Value>> {
    Ok(look::<X>(scope, index).await?.0)
}

/// What lives, and what does not.
async fn look<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<(Listing<X::Value>, Vec<Ghost<X::Member>>)> {
    let (members, ghosts) = members::<X>(scope, index).await?;
    look_at::<X>(scope, index, members, ghosts).await
}

/// The same, of some entries.
async fn look_at<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    members: Vec<X::Member>,
    mut ghosts: Vec<Ghost<X::Member>>,
) -> Result<(Listing<X::Value>, Vec<Ghost<X::Member>>)> {
    let mut listing = Listing { living: Vec::new(), corrupt: Vec::new(), pruned: 0 };
    for members in members.chunks(LISTED_PER_READ) {
        ghosts.extend(sort::<X>(scope, index, members, &mut listing).await?);
    }
    Ok((listing, ghosts))
}

/// Removes the ghosts that were seen.
async fn settle<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    (mut listing, ghosts): (Listing<X::Value>, Vec<Ghost<X::Member>>),
) -> Result<Listing<X::Value>> {
    match prune::<X>(scope, index, ghosts).await {
        Ok(pruned) => listing.pruned = pruned,
        // What was read is true without it, and the next reader meets the same ghosts.
        Err(error) if error.is_transient() => {}
        Err(error) => return Err(error),
    }
    Ok(listing)
}

/// All entries, each once: ids in order, and what is none.
async fn members<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
) -> Result<(Vec<X::Member>, Vec<Ghost<X::Member>>)> {
    let (mut members, mut from) = (Vec::new(), None);
    loop {
        let page = scope.members(index, from, LISTED_PER_READ).await?;
        members.extend(page.members);
        from = page.next;
        if from.is_none() {
            return Ok(sorted::<X>(members));
        }
    }
}

fn sorted<X: Indexed>(members: Vec<Member<X::Member>>) -> (Vec<X::Member>, Vec<Ghost<X::Member>>) {
    let (mut ids, mut rubbish) = (BTreeSet::new(), BTreeSet::new());
    for member in members {
        match member {
            Member::Known(id) => drop(ids.insert(id)),
            Member::External(bytes) => drop(rubbish.insert(Ghost::Rubbish(bytes))),
        }
    }
    (ids.into_iter().collect(), rubbish.into_iter().collect())
}

/// Reads the records of some entries in one round trip. Gives the entries that have none here.
pub(super) async fn sort<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    members: &[X::Member],
    listing: &mut Listing<X::Value>,
) -> Result<Vec<Ghost<X::Member>>> {
    let keys: Vec<_> = members.iter().map(X::record).collect();
    let (owner, mut ghosts) = (owner::<X>(scope), Vec::new());
    for (member, found) in members.iter().zip(scope.get_each(&keys).await?) {
        match found {
            Ok(Some(value)) if says::<X>(&value, index, owner.as_ref()) => listing.living.push(value),
            Ok(_) => ghosts.push(Ghost::Id(member.clone())),
            Err(error) => listing.corrupt.push(error),
        }
    }
    Ok(ghosts)
}

/// Removes entries that are ghosts still when the transaction commits. Answers how many were.
pub(super) async fn prune<X: Indexed>(
    scope: &Scope<X::Partition>,
    index: &Key<X::Index>,
    ghosts: Vec<Ghost<X::Member>>,
) -> Result<usize> {
    let mut pruned = 0;
    for some in ghosts.chunks(PRUNED_PER_TRANSACTION) {
        let records = some.iter().filter_map(|ghost| match ghost {
            Ghost::Id(member) => Some(X::record(member)),
            Ghost::Rubbish(_) => None,
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
    ghosts: &[Ghost<X::Member>],
) -> Result<usize> {
    let mut removed = 0;
    for ghost in ghosts {
        match ghost {
            Ghost::Rubbish(bytes) => tx.srem_raw(index, bytes.clone())?,
            Ghost::Id(member) if !belongs::<X>(tx, index, owner, member)? => tx.srem(index, member)?,
            Ghost::Id(_) => continue,
        }
        removed += 1;
    }
    Ok(removed)
}

/// Whether a record is there that belongs to this index, or that nobody can tell.
fn belongs<X: Indexed>(
    tx: &mut Tx<'_, X::Partition>,
    index: &Key<X::Index>,
    owner: Option<&X::Partition>,
    member: &X::Member,
) -> Result<bool> {
    match tx.get(&X::record(member)) {
        Ok(found) => Ok(found.is_some_and(|value| says::<X>(&value, index, owner))),
        Err(error) if error.is_corrupt() => Ok(true),
        Err(error) => Err(error),
    }
}
