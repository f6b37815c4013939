//! Removes expired keys. Reads never return an expired key, so this only frees memory.
//!
//! Algorithm: each shard is scanned from the end to the beginning, again and again, [`SWEEP_SLOTS_PER_LOCK`]
//! entries under one lock. A cycle visits every shard once; if more than a quarter of the visited entries
//! had expired, it visits the shard again at once. A shard whose earliest deadline is in the future is
//! skipped.
//!
//! Budget: a cycle ends after the given time; the next one begins where it stopped. Values are freed after
//! the lock is released. With a journal, each visit appends DELs first and removes only those keys: the load
//! of a journal has no clock, and a later write must not find the expired value.

use super::Inner;
use super::shard::Shard;
use super::slab::Entry;
use crate::command::{RawKey, Write};
use crate::limits::{SHARDS, SWEEP_RECORD_BYTES_MAX, SWEEP_SLOTS_PER_LOCK};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The result of a cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cycle {
    /// Keys that were removed.
    pub(super) removed: usize,
    /// The budget ended before every shard was visited.
    pub(super) cut_short: bool,
}

/// One pass over all shards, until the budget is used up. The next one begins where this one ended.
pub(super) fn cycle(inner: &Inner, budget: Duration) -> Cycle {
    let started = Instant::now();
    let first = inner.sweep_next.load(Ordering::Relaxed);
    let mut removed = 0;
    for turn in 0..SHARDS {
        let index = (first + turn) % SHARDS;
        loop {
            let visit = visit(inner, index);
            removed += visit.removed;
            let more = visit.removed * 4 > visit.visited;
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
struct Visit {
    visited: usize,
    removed: usize,
}

/// Visits some entries of one shard and removes the expired ones.
fn visit(inner: &Inner, index: usize) -> Visit {
    let mut shard = inner.shards[index].lock();
    let now = inner.ticker.now();
    if shard.sweep.soonest >= now {
        return Visit::default();
    }
    let (visited, ended) = find_expired(&mut shard, now);
    let gone = remove(inner, &mut shard, &ended);
    drop(shard);
    Visit { visited, removed: gone.len() }
}

/// Number of visited entries, and the positions of the expired ones, from the highest down.
fn find_expired(shard: &mut Shard, now: i64) -> (usize, Vec<usize>) {
    if shard.sweep.from == 0 || shard.sweep.from > shard.len() {
        shard.sweep.from = shard.len();
        shard.sweep.soonest_next = super::slab::NEVER;
    }
    let end = shard.sweep.from;
    let begin = end.saturating_sub(SWEEP_SLOTS_PER_LOCK);
    let mut ended = Vec::new();
    for position in (begin..end).rev() {
        let entry = shard.at(position);
        if entry.is_expired(now) {
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

/// Removes entries as long as the journal accepts their DELs; the others wait for a later visit.
fn remove(inner: &Inner, shard: &mut Shard, mut ended: &[usize]) -> Vec<Entry> {
    let mut gone = Vec::with_capacity(ended.len());
    while !ended.is_empty() {
        let (record, later) = ended.split_at(record_entries(shard, ended));
        let delete = |position: &usize| (RawKey::copy_from_slice(&shard.at(*position).key), Write::Del);
        if inner.append_deletes(|| record.iter().map(delete).collect()).is_err() {
            break;
        }
        // From the highest position down: a removal moves the last entry into the gap, and that one is not
        // in the list.
        gone.extend(record.iter().map(|position| shard.remove_expired(*position)));
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
