//! Transactions of one commit that share keys: validated, written and answered as one.

use super::merge::join_ranges;
use crate::cache::{KeyMap, Reads, shows_absence};
use crate::commit::queued::{Combine, QueuedTransaction};
use crate::script::in_order;
use emberkeep_hot::command::*;
use foldhash::fast::RandomState;
use hashbrown::HashSet;

/// Transactions that share keys.
#[derive(Default)]
pub(crate) struct Group {
    transactions: Vec<QueuedTransaction>,
    keys: Vec<RawKey>,
    /// What its transactions have read, while transactions join it.
    reads: Reads,
    /// Reads with another reply than the same read in `reads`. That must not happen; if it does, the commit
    /// compares both and fails, rather than accept one that was not validated.
    contradictions: Vec<(RawKey, Read, Reply)>,
    /// The reads as the script compares them, after [`Group::close`].
    compared: Vec<(RawKey, Read, Reply)>,
    effects: Effects,
    /// What its transactions require of the state below, also by writes that later ones cover.
    required: Vec<Precondition>,
    /// The tick of the call that carries it.
    tick: u64,
    /// Its call asks for leases where it proves stale.
    asks_lease: bool,
    /// The narrowest of its transactions.
    combine: Combine,
}

impl Group {
    pub(crate) fn transactions(&self) -> &[QueuedTransaction] {
        &self.transactions
    }

    pub(crate) fn transactions_mut(&mut self) -> impl Iterator<Item = &mut QueuedTransaction> {
        self.transactions.iter_mut()
    }

    pub(crate) fn into_transactions(self) -> Vec<QueuedTransaction> {
        self.transactions
    }

    pub(crate) fn keys(&self) -> &[RawKey] {
        &self.keys
    }

    /// The reads that the script compares, in its order.
    pub(crate) fn reads(&self) -> &[(RawKey, Read, Reply)] {
        &self.compared
    }

    pub(crate) fn take_reads(&mut self) -> Vec<(RawKey, Read, Reply)> {
        std::mem::take(&mut self.compared)
    }

    pub(crate) fn effects(&self) -> &Effects {
        &self.effects
    }

    pub(crate) fn tick(&self) -> u64 {
        self.tick
    }

    pub(crate) fn set_tick(&mut self, tick: u64) {
        self.tick = tick;
    }

    pub(crate) fn asks_lease(&self) -> bool {
        self.asks_lease
    }

    pub(crate) fn set_asks_lease(&mut self, asks: bool) {
        self.asks_lease = asks;
    }

    pub(super) fn combine(&self) -> Combine {
        self.combine
    }

    pub(super) fn add_key(&mut self, key: RawKey) {
        self.keys.push(key);
    }

    /// Adds a transaction whose writes were merged into those of the batch.
    pub(super) fn add(&mut self, transaction: QueuedTransaction, reads: Reads, effects: Effects) {
        self.add_reads(reads);
        self.combine = self.combine.max(transaction.combine());
        self.effects.log.extend(effects.log);
        self.effects.woken.extend(effects.woken);
        self.effects.messages.extend(effects.messages);
        self.transactions.push(transaction);
    }

    fn add_reads(&mut self, reads: Reads) {
        for ((key, read), reply) in reads {
            match self.reads.entry((key, read)) {
                indexmap::map::Entry::Vacant(vacant) => drop(vacant.insert(reply)),
                indexmap::map::Entry::Occupied(same) if *same.get() == reply => {}
                indexmap::map::Entry::Occupied(other) => {
                    debug_assert!(false, "one commit gives one reply to a read");
                    let (key, read) = other.key().clone();
                    self.contradictions.push((key, read, reply));
                }
            }
        }
    }

    /// Takes over another group that turned out to share a key.
    pub(super) fn absorb(&mut self, other: Group) {
        self.transactions.extend(other.transactions);
        self.keys.extend(other.keys);
        self.add_reads(other.reads);
        self.contradictions.extend(other.contradictions);
        self.effects.log.extend(other.effects.log);
        self.effects.woken.extend(other.effects.woken);
        self.effects.messages.extend(other.effects.messages);
        self.combine = self.combine.max(other.combine);
    }

    /// Takes its part of the batch's requirements and merged writes.
    pub(super) fn close(&mut self, required: &Preconditions, writes: &mut KeyMap<Vec<Write>>) {
        let reads =
            std::mem::take(&mut self.reads).into_iter().map(|((key, read), reply)| (key, read, reply));
        self.compared = in_order(join_ranges(reads.chain(self.contradictions.drain(..)).collect()));
        self.required = self.keys.iter().flat_map(|key| required.of(key)).collect();
        let absent = self.compared.iter().filter(|(_, read, reply)| shows_absence(read, reply));
        let absent: HashSet<&RawKey, RandomState> = absent.map(|(key, ..)| key).collect();
        for key in &self.keys {
            let writes = writes.remove(key).unwrap_or_default();
            // A key that is validated as absent need not be deleted.
            if writes[..] != [Write::Del] || !absent.contains(key) {
                self.effects.writes.extend(writes.into_iter().map(|write| (key.clone(), write)));
            }
        }
        if self.effects.writes.is_empty() {
            // What was appended by a write was removed again: there is nothing to wake for.
            self.effects.woken.clear();
        }
    }

    /// The keys it writes, each once.
    pub(crate) fn written(&self) -> impl Iterator<Item = &RawKey> {
        self.effects.writes.chunk_by(|(key, _), (next, _)| key == next).map(|of_key| &of_key[0].0)
    }

    /// The logs that it appends to without reading them, once for each entry.
    pub(crate) fn appended(&self) -> impl Iterator<Item = &RawKey> {
        self.effects.log.iter().map(|append| &append.log)
    }

    /// The keys that its transactions may have leases on.
    pub(crate) fn leased(&self) -> Vec<RawKey> {
        let leased = self.transactions.iter().flat_map(QueuedTransaction::leased_keys);
        let mut keys: Vec<RawKey> = leased.cloned().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether it only gives memory back.
    pub(crate) fn frees(&self) -> bool {
        use Write::*;
        let frees = |write: &Write| {
            write.is_of_deadline()
                || matches!(write, Del | HDel(_) | SRem(_) | ZRem(_) | LPop(_) | RPop(_) | LTrim(..))
        };
        self.effects.log.is_empty() && self.effects.writes.iter().all(|(_, write)| frees(write))
    }

    /// What the script must check before the first write: the types that no validated read proves already.
    pub(crate) fn requirements(&self) -> Vec<Precondition> {
        let unproved = |r: &&Precondition| r.countable.is_some() || !self.proves(&r.key, r.kind);
        let mut required: Vec<Precondition> = self.required.iter().filter(unproved).cloned().collect();
        for LogAppend { log, .. } in &self.effects.log {
            if !required.iter().any(|r| r.key == *log) {
                required.push(Precondition {
                    key: log.clone(),
                    kind: Kind::List,
                    field: None,
                    countable: None,
                });
            }
        }
        required
    }

    fn proves(&self, key: &RawKey, kind: Kind) -> bool {
        self.compared.iter().any(|(k, read, reply)| {
            let of_kind = || read.kind() == Some(kind) && !matches!(reply, Reply::WrongType(_));
            // A hash whose fields have all expired by deadlines of their own is empty, but still present.
            let absent = || read.kind() != Some(Kind::Hash) && shows_absence(read, reply);
            k == key && (of_kind() || absent())
        })
    }
}
