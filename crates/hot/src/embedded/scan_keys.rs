//! Scans: pages of keys by position, from the end of each shard to its beginning.
//!
//! Why descending: a removal moves the last entry into the gap. Positions at and above the cursor have been
//! returned. So an entry that moves down was returned already (and may be returned again), or moves within
//! the positions to come. No entry moves up, and new keys are added at the end. So every key that exists
//! during the whole scan is returned.
//!
//! Budget: about `count` entries a page, a lock held for [`SWEEP_SLOTS_PER_LOCK`] of them at a time.

use super::Inner;
use super::glob;
use super::slab::NEVER;
use crate::command::RawKey;
use crate::engine::{Cursor, Page};
use crate::limits::{SCAN_PAGE_MAX, SHARDS, SWEEP_SLOTS_PER_LOCK};

/// Positions below `position` of shard `place` are still to come; larger than the shard = all of it.
const START: Cursor = Cursor { place: 0, position: u64::MAX };

/// One page from a cursor on.
pub(super) fn page(inner: &Inner, from: Option<Cursor>, pattern: &[u8], count: usize) -> Page {
    let mut cursor = from.unwrap_or(START);
    let mut left = count.clamp(1, SCAN_PAGE_MAX);
    let mut keys = Vec::new();
    while (cursor.place as usize) < SHARDS {
        if left == 0 {
            return Page { keys, next: Some(cursor) };
        }
        let visited = visit(inner, &mut cursor, pattern, left.min(SWEEP_SLOTS_PER_LOCK), &mut keys);
        left -= visited.min(left);
        if cursor.position == 0 {
            cursor = Cursor { place: cursor.place + 1, position: u64::MAX };
        }
    }
    Page { keys, next: None }
}

/// Looks at up to `slots` entries under one lock; answers how many there were.
fn visit(inner: &Inner, cursor: &mut Cursor, pattern: &[u8], slots: usize, keys: &mut Vec<RawKey>) -> usize {
    let shard = inner.shards[cursor.place as usize].lock();
    let now = inner.ticker.now();
    let end = shard.len().min(usize::try_from(cursor.position).unwrap_or(usize::MAX));
    let begin = end.saturating_sub(slots);
    for position in (begin..end).rev() {
        let entry = shard.at(position);
        if (entry.deadline == NEVER || !entry.is_expired(now)) && glob::matches(pattern, &entry.key) {
            keys.push(RawKey::copy_from_slice(&entry.key));
        }
    }
    cursor.position = begin as u64;
    end - begin
}
