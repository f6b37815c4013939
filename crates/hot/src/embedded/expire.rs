//! Removing keys whose time has come. Nobody sees such a key, so this only gives memory back.
//!
//! Algorithm: each shard is walked from the end to the beginning, again and again, [`SWEEP_SLOTS_PER_LOCK`]
//! entries under one lock. A cycle gives every shard one look; a look that found more than a quarter ended is
//! followed by another one at once, because there is probably more. A shard whose soonest deadline lies ahead is
//! not walked at all.
//!
//! Budget: a cycle ends after the time it was given; the next one begins where it stopped. Values are freed after
//! the lock is released. With a journal a look is one or more transactions of DELs, and only what they name is removed:
//! a load has no clock, and a later write of such a key must not find it.

use super::Inner;
use super::entries::Entry;
use super::shard::Shard;
use crate::command::{RawKey, Write};
use crate::limits::{SHARDS, SWEEP_RECORD_BYTES_MAX, SWEEP_SLOTS_PER_LOCK};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What a cycle did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cycle {
    /// Keys that were removed.
    pub(super) removed: usize,
    /// The budget was used up before every shard had its turn.
    pub(super) cut_short: bool,
}

/// One cycle.
pub(super) fn cycle(inner: &Inner, budget: Duration) -> Cycle {
    let started = Instant::now();
    let first = inner.sweep_next.load(Ordering::Relaxed);
    let mut removed = 0;
    for turn in 0..SHARDS {
        let index = (first + turn) % SHARDS;
        loop {
            let look = look(inner, index);
            removed += look.removed;
            let more = look.removed * 4 > look.looked;
            if started.elapsed() >= budget {
                inner.sweep_next.store(index + usize::from(!more), Ordering::Relaxed);
                return Cycle { removed, cut_short: true };
            }
            if !more {
                break;
            }
        }
    }
    Cycle { removed, cut_short: false }
}

#[derive(Default)]
struct Look {
    looked: usize,
    removed: usize,
}

/// Looks at some entries of one shard and removes those that have ended.
fn look(inner: &Inner, index: usize) -> Look {
    let mut shard = inner.shards[index].lock();
    let now = inner.ticker.now();
    if shard.sweep.soonest >= now {
        return Look::default();
    }
    let (looked, ended) = find_ended(&mut shard, now);
    let gone = remove(inner, &mut shard, &ended);
    drop(shard);
    Look { looked, removed: gone.len() }
}

/// Positions of ended entries, from the highest down, and how many entries were looked at.
fn find_ended(shard: &mut Shard, now: i64) -> (usize, Vec<usize>) {
    if shard.sweep.from == 0 || shard.sweep.from > shard.len() {
        shard.sweep.from = shard.len();
        shard.sweep.soonest_next = super::entries::NEVER;
    }
    let end = shard.sweep.from;
    let begin = end.saturating_sub(SWEEP_SLOTS_PER_LOCK);
    let mut ended = Vec::new();
    for position in (begin..end).rev() {
        let entry = shard.at(position);
        if entry.ended(now) {
            ended.push(position);
        } else {
            shard.sweep.soonest_next = shard.sweep.soonest_next.min(entry.deadline);
        }
    }
    shard.sweep.from = begin;
    if begin == 0 {
        shard.sweep.soonest = shard.sweep.soonest_next;
    }
    (end - begin, ended)
}

/// Removes entries as far as the journal takes their DELs; the others are left for a later look.
fn remove(inner: &Inner, shard: &mut Shard, mut ended: &[usize]) -> Vec<Entry> {
    let mut gone = Vec::with_capacity(ended.len());
    while !ended.is_empty() {
        let (record, later) = ended.split_at(record_entries(shard, ended));
        let delete = |position: &usize| (RawKey::copy_from_slice(&shard.at(*position).key), Write::Del);
        if inner.append_deletes(|| record.iter().map(delete).collect()).is_err() {
            break;
        }
        // From the highest position down: what takes the free place is no ended entry that is still to come.
        gone.extend(record.iter().map(|position| shard.remove_ended(*position)));
        ended = later;
    }
    for position in ended {
        let deadline = shard.at(*position).deadline;
        shard.sweep.note(deadline);
    }
    let bytes: usize = gone.iter().map(Shard::bytes_of).sum();
    inner.memory.adjust(-(bytes as i64));
    gone
}

/// How many entries go into the next record: one at least.
fn record_entries(shard: &Shard, ended: &[usize]) -> usize {
    let mut bytes = 0;
    let fits = |position: &&usize| {
        bytes += shard.at(**position).key.len();
        bytes <= SWEEP_RECORD_BYTES_MAX
    };
    ended.iter().take_while(fits).count().max(1)
}
