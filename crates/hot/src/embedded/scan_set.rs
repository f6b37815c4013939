//! Pages of a set's members, in the order of their bytes. A page continues after the last member of the page
//! before, so every member that is there during the whole scan is returned exactly once.
//!
//! Budget: a lock is held for one page, of at most [`SCAN_PAGE_MAX`] members or [`REPLY_BYTES_MAX`] and one
//! more.

use super::Inner;
use super::value::{Collection, Members, Value, copy};
use crate::command::{Kind, KindFound, RawKey, wrong_type};
use crate::engine::{MemberCursor, MemberPage};
use crate::error::Result;
use crate::limits::{REPLY_BYTES_MAX, SCAN_PAGE_MAX};
use bytes::Bytes;
use std::ops::Bound;

/// One page from a cursor on.
pub(super) fn page(
    inner: &Inner,
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<MemberPage> {
    let after = MemberCursor::after(from)?;
    let hashed = inner.hash(key);
    let shard = inner.shards[hashed.shard()].lock();
    match shard.living(hashed, key, || inner.ticker.now()) {
        Some(entry) => Ok(walk(members_of(key, &entry.value)?, after.as_deref(), count)),
        None => Ok(MemberPage { members: vec![], next: None }),
    }
}

fn members_of<'a>(key: &RawKey, value: &'a Value) -> Result<&'a Members> {
    if let Value::Many(collection) = value
        && let Collection::Set(members) = &**collection
    {
        return Ok(members);
    }
    Err(wrong_type(key, Kind::Set, KindFound::Kind(value.kind())))
}

fn walk(members: &Members, after: Option<&[u8]>, count: usize) -> MemberPage {
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut ahead = members.set.range::<[u8], _>((start, Bound::Unbounded)).peekable();
    let (mut page, mut bytes): (Vec<Bytes>, _) = (Vec::new(), 0);
    while page.len() < count.clamp(1, SCAN_PAGE_MAX)
        && bytes < REPLY_BYTES_MAX
        && let Some(member) = ahead.next()
    {
        bytes += member.len();
        page.push(copy(member));
    }
    let next = ahead.peek().and(page.last()).map(|last| MemberCursor::After(last.clone()));
    MemberPage { members: page, next }
}
