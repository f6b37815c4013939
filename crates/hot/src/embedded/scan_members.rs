//! Pages of a set's members or a hash's fields, in the order of their bytes. A page continues after the last
//! one of the page before, so everything that is there during the whole scan is returned exactly once.
//!
//! Budget: a lock is held for one page, of at most [`SCAN_PAGE_MAX`] elements or [`REPLY_BYTES_MAX`] and one
//! more.

use super::Inner;
use super::value::{Collection, Value, copy};
use crate::command::{Kind, KindFound, RawKey, wrong_type};
use crate::engine::{FieldPage, MemberCursor, MemberPage};
use crate::error::Result;
use crate::limits::{REPLY_BYTES_MAX, SCAN_PAGE_MAX};
use bytes::Bytes;
use std::ops::Bound;

/// One page of a set from a cursor on.
pub(super) fn members(
    inner: &Inner,
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<MemberPage> {
    let (members, next) = page(inner, key, from, |value, start| match collection(value) {
        Some(Collection::Set(members)) => {
            let range = members.set.range::<[u8], _>((start, Bound::Unbounded));
            Ok(walk(range.map(|member| (&**member, &[][..])), count))
        }
        _ => Err(wrong_type(key, Kind::Set, KindFound::Kind(value.kind()))),
    })?;
    Ok(MemberPage { members: members.into_iter().map(|(member, _)| member).collect(), next })
}

/// The same page, lent member by member under the lock. Returns the cursor of the next one.
pub(super) fn visit(
    inner: &Inner,
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<Option<MemberCursor>> {
    let (_, next) = page(inner, key, from, |value, start| match collection(value) {
        Some(Collection::Set(members)) => {
            let mut range = members.set.range::<[u8], _>((start, Bound::Unbounded)).peekable();
            let mut last = None;
            for member in range.by_ref().take(count.clamp(1, SCAN_PAGE_MAX)) {
                visit(member);
                last = Some(member);
            }
            let next = range.peek().and(last).map(|last| MemberCursor::After(copy(last)));
            Ok((vec![], next))
        }
        _ => Err(wrong_type(key, Kind::Set, KindFound::Kind(value.kind()))),
    })?;
    Ok(next)
}

/// One page of a hash from a cursor on.
pub(super) fn fields(
    inner: &Inner,
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<FieldPage> {
    let (fields, next) = page(inner, key, from, |value, start| match collection(value) {
        Some(Collection::Hash(fields)) => {
            let range = fields.map.range::<[u8], _>((start, Bound::Unbounded));
            Ok(walk(range.map(|(field, value)| (&**field, &**value)), count))
        }
        _ => Err(wrong_type(key, Kind::Hash, KindFound::Kind(value.kind()))),
    })?;
    Ok(FieldPage { fields, next })
}

/// Elements (a set's have an empty value) and the cursor of the next page.
type ElementPage = (Vec<(Bytes, Bytes)>, Option<MemberCursor>);

fn page(
    inner: &Inner,
    key: &RawKey,
    from: Option<MemberCursor>,
    read: impl FnOnce(&Value, Bound<&[u8]>) -> Result<ElementPage>,
) -> Result<ElementPage> {
    let after = MemberCursor::after(from)?;
    let hashed = inner.hash(key);
    let shard = inner.shards[hashed.shard()].lock();
    match shard.living(hashed, key, || inner.ticker.now()) {
        Some(entry) => read(&entry.value, after.as_deref().map_or(Bound::Unbounded, Bound::Excluded)),
        None => Ok((vec![], None)),
    }
}

fn collection(value: &Value) -> Option<&Collection> {
    match value {
        Value::Many(collection) => Some(collection),
        Value::Text(_) => None,
    }
}

fn walk<'a>(elements: impl Iterator<Item = (&'a [u8], &'a [u8])>, count: usize) -> ElementPage {
    let mut ahead = elements.peekable();
    let (mut page, mut bytes): (Vec<(Bytes, Bytes)>, _) = (Vec::new(), 0);
    while page.len() < count.clamp(1, SCAN_PAGE_MAX)
        && bytes < REPLY_BYTES_MAX
        && let Some((element, value)) = ahead.next()
    {
        bytes += element.len() + value.len();
        page.push((copy(element), copy(value)));
    }
    let next = ahead.peek().and(page.last()).map(|(last, _)| MemberCursor::After(last.clone()));
    (page, next)
}
