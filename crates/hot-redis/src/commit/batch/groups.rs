//! The groups of a batch.
//!
//! Transactions that share a key run one after the other on the same state and become one group: its reads
//! are validated once, its writes are merged, and either all of them commit or none does. Two groups share no
//! key, so a stale group does not hold up the others of the same call.

use super::group::Group;
use super::merge::push_merged;
use crate::cache::{KeyMap, Keys, Reads, WholeSet, WholeSets};
use crate::commit::queued::{Combine, QueuedTransaction};
use crate::limits::*;
use emberkeep_hot::command::*;
use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

/// Room that is made for the keys of a transaction.
const KEYS_PER_TRANSACTION_USUAL: usize = 3;

/// The groups that a transaction shares keys with, and how many of its keys are in no group.
pub(super) struct SharedGroups {
    groups: SmallVec<[usize; 4]>,
    new_keys: usize,
}

/// What became of a transaction. Boxed where it comes back, which is rare.
pub(super) enum Admission {
    Added,
    /// It contradicts the transactions before it, whose outcome is not certain.
    Deferred(Box<QueuedTransaction>),
    /// The commit would become too large.
    Full(Box<QueuedTransaction>),
}

pub(super) struct Groups {
    groups: Vec<Group>,
    by_key: KeyMap<usize>,
    /// The merged writes of all transactions.
    writes: KeyMap<Vec<Write>>,
    /// Sorted sets as the writes leave them, where a transaction has read one after many writes.
    sets: WholeSets,
    required: Preconditions,
    transactions: usize,
    bytes: usize,
    /// Logs that transactions append to. The script does that after the writes of all groups, so no
    /// transaction of this batch can read the entries.
    appended: Keys,
}

impl Groups {
    pub(super) fn new(transactions: usize) -> Groups {
        // A table that grows hashes all of its keys again.
        let keys = (transactions * KEYS_PER_TRANSACTION_USUAL).min(BATCH_KEYS_MAX);
        let mut required = Preconditions::default();
        required.reserve(keys);
        Groups {
            groups: vec![],
            by_key: KeyMap::with_capacity_and_hasher(keys, RandomState::default()),
            writes: KeyMap::with_capacity_and_hasher(keys, RandomState::default()),
            sets: WholeSets::default(),
            required,
            transactions: 0,
            bytes: 0,
            appended: Keys::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn transactions(&self) -> usize {
        self.transactions
    }

    pub(super) fn writes(&self) -> &KeyMap<Vec<Write>> {
        &self.writes
    }

    /// The merged writes, and the sorted sets that they leave, for the next body.
    pub(super) fn layers(&mut self) -> (&KeyMap<Vec<Write>>, &mut WholeSets) {
        (&self.writes, &mut self.sets)
    }

    pub(super) fn touched_by(&self, keys: &Keys) -> SharedGroups {
        let mut groups: SmallVec<[usize; 4]> =
            keys.iter().filter_map(|key| self.by_key.get(key).copied()).collect();
        let new_keys = keys.len() - groups.len();
        groups.sort_unstable();
        groups.dedup();
        SharedGroups { groups, new_keys }
    }

    /// Whether a transaction on these keys, with these entries of logs, may share the commit.
    pub(super) fn may_share(
        &self,
        combine: Combine,
        keys: &Keys,
        touched: &SharedGroups,
        appends: &[LogAppend],
    ) -> bool {
        let is_separate = combine != Combine::Freely
            || touched.groups.iter().any(|group| self.groups[*group].combine() != Combine::Freely);
        // What it read of the log would be older than what it read of the transactions before it.
        let reads_log = self.appended.iter().any(|log| keys.contains(log));
        // The script counts the entries of a log before the writes of the call: it would not see theirs.
        let appends_to_written = appends.iter().any(|append| self.writes.contains_key(&append.log));
        (touched.groups.is_empty() || !is_separate) && !reads_log && !appends_to_written
    }

    /// Adds a transaction to the groups that it touches, or to a new one.
    pub(super) fn add(
        &mut self,
        mut transaction: QueuedTransaction,
        keys: Keys,
        touched: SharedGroups,
        reads: Reads,
        mut effects: Effects,
    ) -> Admission {
        let bytes = reads.values().map(Reply::bytes).sum::<usize>() + bytes_of(&effects);
        let new_logs: Keys = effects
            .log
            .iter()
            .map(|append| &append.log)
            .filter(|log| !self.appended.contains(*log))
            .cloned()
            .collect();
        let keys_after = self.by_key.len() + touched.new_keys + self.appended.len() + new_logs.len();
        let is_full = self.bytes + bytes > BATCH_BYTES_MAX || keys_after > BATCH_KEYS_MAX;
        if is_full && self.transactions > 0 {
            return Admission::Full(Box::new(transaction));
        }
        if self.required.add(&effects.writes).is_err() {
            match Preconditions::default().add(&effects.writes) {
                Err(error) => transaction.set_verdict(error),
                Ok(()) => return Admission::Deferred(Box::new(transaction)),
            }
            effects.clear();
        }
        self.transactions += 1;
        self.bytes += bytes;
        if !effects.log.is_empty() {
            self.appended.extend(new_logs);
        }
        let home = self.home_of(&touched.groups);
        self.carry_sets(&effects.writes);
        for (key, write) in std::mem::take(&mut effects.writes) {
            push_merged(self.writes.entry_ref(&key).or_default(), write);
        }
        let group = &mut self.groups[home];
        for key in keys {
            if let Entry::Vacant(vacant) = self.by_key.entry(key) {
                group.add_key(vacant.key().clone());
                vacant.insert(home);
            }
        }
        group.add(transaction, reads, effects);
        Admission::Added
    }

    /// Applies the writes of a transaction to the sorted sets that transactions have read.
    fn carry_sets(&mut self, writes: &[(RawKey, Write)]) {
        self.sets.retain(|key, set| {
            let own = writes.iter().filter(|(of, _)| of == key).map(|(_, write)| write);
            WholeSet::apply(set, own)
        });
    }

    /// The group of a transaction that touches these: the first, which absorbs the others, or a new one.
    fn home_of(&mut self, touched: &[usize]) -> usize {
        let Some((home, others)) = touched.split_first() else {
            self.groups.push(Group::default());
            return self.groups.len() - 1;
        };
        for other in others {
            let absorbed = std::mem::take(&mut self.groups[*other]);
            for key in absorbed.keys() {
                self.by_key.insert(key.clone(), *home);
            }
            self.groups[*home].absorb(absorbed);
        }
        *home
    }

    /// The finished groups, each with its merged writes.
    pub(super) fn close(mut self) -> Vec<Group> {
        self.groups.retain(|group| !group.transactions().is_empty());
        for group in &mut self.groups {
            group.close(&self.required, &mut self.writes);
        }
        self.groups
    }
}

fn bytes_of(effects: &Effects) -> usize {
    let writes = effects.writes.iter().map(|(_, write)| write.bytes()).sum::<usize>();
    let log = effects.log.iter().map(|append| append.log.len() + append.entry.len()).sum::<usize>();
    writes
        + log
        + effects.messages.iter().map(|(channel, payload)| channel.len() + payload.len()).sum::<usize>()
}
