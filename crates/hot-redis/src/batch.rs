//! A commit under construction: transactions run over what is known and over each other, and are sorted into groups.
//!
//! Transactions that share a key run one after the other on the same state and become one group: its reads are validated
//! once, its writes are merged, and all of them commit or none does. Groups share no key, so one stale group does
//! not hold up the others of the same call.

use crate::distinct::Distinct;
use crate::group::Group;
use crate::inferred::shows_absence;
use crate::job::Job;
use crate::known::Known;
use crate::limits::*;
use crate::merge::{join_ranges, push_merged};
use crate::view::Reads;
use crate::wire::in_order;
use emberkeep_hot::command::*;
use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use std::time::Instant;

pub(crate) type Map<V> = HashMap<RawKey, V, RandomState>;
/// Keys of one transaction: mostly one or two.
pub(crate) type Keys = Distinct<RawKey>;
/// Places of groups.
type Touched = SmallVec<[usize; 4]>;

/// Room that is made for the keys of a transaction.
const KEYS_PER_TRANSACTION_USUAL: usize = 3;

/// One commit.
pub(crate) struct Batch {
    pub(crate) groups: Vec<Group>,
    /// Reads that transactions still miss; made after the writes of the same call.
    pub(crate) fetches: Distinct<(RawKey, Read)>,
    /// The transactions that miss them.
    pub(crate) waiting: Vec<Job>,
    /// Transactions that must go into a later commit.
    pub(crate) deferred: Vec<Job>,
    /// The estimate of the server's time that bodies used.
    pub(crate) estimate_ms: Option<i64>,
    by_key: Map<usize>,
    pub(crate) writes: Map<Vec<Write>>,
    required: Preconditions,
    /// The time that bodies were shown.
    pub(crate) now_ms: Option<i64>,
    pub(crate) started: Instant,
    /// When the last body ended: the next one begins then, and one look at the clock serves both.
    pub(crate) ran_until: Instant,
    pub(crate) transactions: usize,
    bytes: usize,
    /// The keys of the partition's log, and whether a transaction has added to it: entries follow the writes of all groups, so
    /// nobody in this batch sees them.
    log_keys: (RawKey, RawKey),
    records: bool,
    /// Its one transaction shares it with nobody.
    pub(crate) solo: bool,
}

impl Batch {
    pub(crate) fn new(now: Instant, log_keys: (RawKey, RawKey), transactions: usize) -> Batch {
        // Tables that grow while transactions come hash all of their keys again and again.
        let keys = (transactions * KEYS_PER_TRANSACTION_USUAL).min(BATCH_KEYS_MAX);
        let mut required = Preconditions::default();
        required.reserve(keys);
        Batch {
            groups: vec![],
            fetches: Distinct::default(),
            waiting: vec![],
            deferred: vec![],
            estimate_ms: None,
            by_key: Map::with_capacity_and_hasher(keys, RandomState::default()),
            writes: Map::with_capacity_and_hasher(keys, RandomState::default()),
            required,
            now_ms: None,
            started: now,
            ran_until: now,
            transactions: 0,
            bytes: 0,
            log_keys,
            records: false,
            solo: false,
        }
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.fetches.is_empty()
    }

    pub(crate) fn sort_in(
        &mut self,
        mut job: Job,
        reads: Reads,
        layered: Keys,
        mut effects: Effects,
        known: &Known,
    ) -> Option<Job> {
        let keys = keys_of(&reads, layered, &effects);
        let (touched, new_keys) = self.groups_of(&keys);
        if self.must_wait(&mut job, &keys, &touched, known) {
            job.held_up_by = keys.into_vec();
            self.deferred.push(job);
            return None;
        }
        let bytes = reads.iter().map(|(_, _, reply)| reply.bytes()).sum::<usize>() + bytes_of(&effects);
        let full = self.bytes + bytes > BATCH_BYTES_MAX || self.by_key.len() + new_keys > BATCH_KEYS_MAX;
        if full && self.transactions > 0 {
            return Some(job);
        }
        if self.required.add(&effects.writes).is_err() {
            match Preconditions::default().add(&effects.writes) {
                Err(error) => job.verdict = Some(error),
                Ok(()) => {
                    // It only contradicts the transactions before it, and what those leave behind is not known for certain.
                    self.deferred.push(job);
                    return None;
                }
            }
            effects.clear();
        }
        self.transactions += 1;
        self.bytes += bytes;
        self.join(job, keys, touched, reads, effects);
        None
    }

    /// The groups that have these keys, and how many of the keys no group has.
    fn groups_of(&self, keys: &[RawKey]) -> (Touched, usize) {
        let mut touched: Touched = keys.iter().filter_map(|key| self.by_key.get(key).copied()).collect();
        let new_keys = keys.len() - touched.len();
        touched.sort_unstable();
        touched.dedup();
        (touched, new_keys)
    }

    /// Whether the transaction cannot go along: it or its neighbours must be alone, it is another's turn, or guessing would
    /// be in vain.
    fn must_wait(&self, job: &mut Job, keys: &[RawKey], touched: &[usize], known: &Known) -> bool {
        if !touched.is_empty() && (job.alone || touched.iter().any(|g| self.groups[*g].sealed)) {
            return true;
        }
        // What it saw of the log would be older than what it saw of the transactions before it.
        if self.records && keys.iter().any(|key| *key == self.log_keys.0 || *key == self.log_keys.1) {
            return true;
        }
        if known.is_calm(self.started) {
            return false;
        }
        job.not_before = keys.iter().filter_map(|key| known.waits(key, self.started)).max();
        job.not_before.is_some() || keys.iter().any(|key| known.is_busy(key, self.started))
    }

    fn join(&mut self, job: Job, keys: Keys, touched: Touched, reads: Reads, effects: Effects) {
        let home = self.home_of(&touched);
        for (key, write) in effects.writes {
            push_merged(self.writes.entry_ref(&key).or_default(), write);
        }
        let group = &mut self.groups[home];
        for key in keys.into_vec() {
            if let Entry::Vacant(vacant) = self.by_key.entry(key) {
                group.keys.push(vacant.key().clone());
                vacant.insert(home);
            }
        }
        group.reads.extend(reads.into_vec());
        group.sealed |= job.alone;
        self.records |= !effects.log.is_empty();
        group.effects.log.extend(effects.log);
        group.effects.messages.extend(effects.messages);
        group.jobs.push(job);
    }

    /// The group of a transaction that touches these: the first, which absorbs the others, or a new one.
    fn home_of(&mut self, touched: &[usize]) -> usize {
        let Some((home, others)) = touched.split_first() else {
            self.groups.push(Group::default());
            return self.groups.len() - 1;
        };
        for other in others {
            let absorbed = std::mem::take(&mut self.groups[*other]);
            for key in &absorbed.keys {
                self.by_key.insert(key.clone(), *home);
            }
            self.groups[*home].absorb(absorbed);
        }
        *home
    }

    /// Closes the batch: every group gets its merged writes.
    pub(crate) fn close(&mut self) {
        self.groups.retain(|group| !group.jobs.is_empty());
        for Group { keys, reads, compared, effects, required, .. } in &mut self.groups {
            *compared = in_order(join_ranges(std::mem::take(reads)));
            *required = keys.iter().filter_map(|key| self.required.of(key)).collect();
            let absent =
                compared.iter().filter(|(_, read, reply)| shows_absence(read, reply)).map(|(key, ..)| key);
            let absent: HashSet<&RawKey, RandomState> = absent.collect();
            for key in keys.iter() {
                let writes = self.writes.remove(key).unwrap_or_default();
                // What is proved to be absent need not be deleted.
                if writes[..] != [Write::Del] || !absent.contains(key) {
                    effects.writes.extend(writes.into_iter().map(|write| (key.clone(), write)));
                }
            }
        }
    }
}

fn bytes_of(effects: &Effects) -> usize {
    let writes = effects.writes.iter().map(|(_, write)| write.bytes()).sum::<usize>();
    let log = effects.log.iter().map(|append| append.entry.len()).sum::<usize>();
    writes
        + log
        + effects.messages.iter().map(|(channel, payload)| channel.len() + payload.len()).sum::<usize>()
}

fn keys_of(reads: &[(RawKey, Read, Reply)], layered: Keys, effects: &Effects) -> Keys {
    let mut keys = layered;
    for key in reads.iter().map(|(key, _, _)| key).chain(effects.writes.iter().map(|(key, _)| key)) {
        if keys.find(&key).is_none() {
            keys.push(key.clone());
        }
    }
    keys
}
