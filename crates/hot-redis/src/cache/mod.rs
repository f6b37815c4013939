//! The read cache of one partition: replies that this process last received, or that its own commits in
//! flight will leave behind. Transactions read from it speculatively; the commit validates every such read.
//!
//! A wrong speculative read costs a commit that fails. So after a conflict on a key, its replies are used
//! only while they are fresh, and otherwise read again, until [`CONTENDED`] has passed without another
//! conflict. The cache never answers a plain read.

pub(crate) mod budget;
mod derive;
mod key;
mod sorted_set;
mod view;

pub(crate) use derive::shows_absence;
pub(crate) use sorted_set::WholeSet;
pub(crate) use view::{Fetches, KeyMap, Keys, ReadRef, Reads, Trace, View, WholeSets};

use crate::limits::*;
use derive::{derive_after, latest_whole_set};
use emberkeep_hot::command::{RawKey, Read, Reply, Write};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use key::CachedKey;
use smallvec::SmallVec;
use std::time::Instant;

/// Cached replies of one partition.
#[derive(Default)]
pub(crate) struct ReadCache {
    keys: HashMap<RawKey, Entry, RandomState>,
    bytes: usize,
    /// Counts the calls that were sent: a reply of an earlier call is not fresh.
    tick: u64,
    /// When the last conflict or lease of another process, on any key, is over. `None` = there was none.
    contended_until: Option<Instant>,
}

#[derive(Default)]
struct Entry {
    cached: CachedKey,
    contended_until: Option<Instant>,
    fresh_at: u64,
    /// What commits in flight write to the key, each with the tick at which it was sent.
    in_flight: SmallVec<[(u64, Vec<Write>); 2]>,
    /// Another process has the lease until about then.
    leased_until: Option<Instant>,
}

impl Entry {
    fn is_contended(&self, now: Instant) -> bool {
        self.contended_until.is_some_and(|until| now < until)
    }
}

impl ReadCache {
    /// A speculative reply. `None` = nothing is cached that is worth trying.
    #[cfg(test)]
    pub(crate) fn get(&self, key: &RawKey, read: &Read, now: Instant) -> Option<Reply> {
        self.usable(key, now)?.cached.get(read)
    }

    /// A speculative reply and, if it is a long range that follows from a whole sorted set, the read and the reply
    /// of that set: the commit compares it in place of each range that was derived from it. A short reply is
    /// compared itself: that costs the server less, and neighbours in the set may change.
    pub(crate) fn get_with_basis(
        &self,
        key: &RawKey,
        read: &Read,
        now: Instant,
    ) -> Option<(Reply, Option<&(Read, Reply)>)> {
        let entry = self.usable(key, now)?;
        let (reply, set) = entry.cached.get_with_basis(read)?;
        let is_short = !matches!(&reply, Reply::Scored(list) if list.len() > COMPARED_PART_MAX);
        // Where other processes write, a stale answer should bring the set, on which all transactions can run again.
        Some((reply, set.filter(|_| !is_short || entry.is_contended(now))))
    }

    /// The sorted set at this key, if all of its members are cached.
    pub(crate) fn whole_set(&self, key: &RawKey, now: Instant) -> Option<&(Read, Reply)> {
        latest_whole_set(self.usable(key, now)?.cached.replies())
    }

    /// Whether [`ReadCache::get_with_basis`] has a reply.
    pub(crate) fn can_answer(&self, key: &RawKey, read: &Read, now: Instant) -> bool {
        self.usable(key, now).is_some_and(|entry| entry.cached.can_answer(read))
    }

    fn usable(&self, key: &RawKey, now: Instant) -> Option<&Entry> {
        let entry = self.keys.get(key)?;
        (entry.fresh_at == self.tick || !entry.is_contended(now)).then_some(entry)
    }

    /// Caches a reply of the call of this tick, as the commits sent after that call will leave it.
    pub(crate) fn insert(&mut self, key: &RawKey, read: &Read, reply: Reply, tick: u64) {
        let entry = self.keys.entry_ref(key).or_default();
        entry.fresh_at = self.tick;
        let before = entry.cached.bytes();
        let later = entry.in_flight.iter().filter(|(sent, _)| *sent > tick).flat_map(|(_, writes)| writes);
        let later: Vec<&Write> = later.collect();
        if later.is_empty() {
            entry.cached.insert(read.clone(), reply, tick);
        } else if entry.cached.get(read).is_none() {
            let after = derive_after(key, &[(read.clone(), reply.clone())], &later);
            after.into_iter().for_each(|(read, reply)| entry.cached.insert(read, reply, tick));
            if entry.cached.get(read).is_none() {
                // What the later commits leave cannot be derived. Without any reply the transaction would
                // miss this read for as long as we write the key. A wrong one ends in a conflict, after which
                // commits on the key wait.
                entry.cached.insert_beside(read.clone(), reply, tick);
            }
        }
        self.bytes = self.bytes + entry.cached.bytes() - before;
    }

    /// A cached reply proved stale: another process writes this key.
    pub(crate) fn mark_contended(&mut self, key: &RawKey, now: Instant) {
        self.contended_until = self.contended_until.max(Some(now + CONTENDED));
        let entry = self.keys.entry_ref(key).or_default();
        entry.contended_until = Some(now + CONTENDED);
        self.bytes -= entry.cached.bytes();
        entry.cached = CachedKey::default();
    }

    /// Another process has the lease on this key.
    pub(crate) fn mark_leased(&mut self, key: &RawKey, until: Instant) {
        self.contended_until = self.contended_until.max(Some(until));
        self.keys.entry_ref(key).or_default().leased_until = Some(until);
    }

    /// Whether no key is contended or leased: then [`ReadCache::leased_until`] and
    /// [`ReadCache::is_in_flight_contended`] need not be asked for each key.
    pub(crate) fn is_uncontended(&self, now: Instant) -> bool {
        self.contended_until.is_none_or(|until| now >= until)
    }

    /// When a transaction on this key should be sent, because another process has the lease until then.
    pub(crate) fn leased_until(&self, key: &RawKey, now: Instant) -> Option<Instant> {
        self.keys.get(key)?.leased_until.filter(|until| *until > now)
    }

    /// Whether a commit in flight writes this key and other processes do too: speculation on its outcome is
    /// useless.
    pub(crate) fn is_in_flight_contended(&self, key: &RawKey, now: Instant) -> bool {
        self.keys.get(key).is_some_and(|entry| !entry.in_flight.is_empty() && entry.is_contended(now))
    }

    /// A commit with these writes of the key is sent: cached replies become what it will leave behind.
    pub(crate) fn record_sent(&mut self, key: &RawKey, writes: &[(RawKey, Write)]) {
        let entry = self.keys.entry_ref(key).or_default();
        let before = entry.cached.bytes();
        let writes: Vec<&Write> = writes.iter().map(|(_, write)| write).collect();
        // Each reply is derived again after every write. Transactions that needed more of them have run.
        entry.cached.trim(CACHE_READS_PER_KEY_MAX);
        entry.cached.replace(derive_after(key, entry.cached.replies(), &writes));
        entry.in_flight.push((self.tick, writes.into_iter().cloned().collect()));
        self.bytes = self.bytes + entry.cached.bytes() - before;
    }

    /// A commit is sent that appends to this log: what the server makes of it is not known here.
    pub(crate) fn record_append_sent(&mut self, log: &RawKey) {
        let entry = self.keys.entry_ref(log).or_default();
        self.bytes -= entry.cached.bytes();
        entry.cached = CachedKey::default();
        if entry.in_flight.iter().all(|(sent, _)| *sent != self.tick) {
            entry.in_flight.push((self.tick, vec![]));
        }
    }

    /// A commit of this tick that appended to the log was answered.
    pub(crate) fn record_append_answered(&mut self, log: &RawKey, tick: u64) {
        if let Some(entry) = self.keys.get_mut(log) {
            entry.in_flight.retain(|(sent, _)| *sent != tick);
        }
    }

    /// A commit of this tick that wrote the key was answered. If it was not committed, the replies built on
    /// it are void.
    pub(crate) fn record_answered(&mut self, key: &RawKey, tick: u64, committed: bool) {
        let Some(entry) = self.keys.get_mut(key) else { return };
        entry.in_flight.retain(|(sent, _)| *sent != tick);
        if committed && entry.in_flight.is_empty() {
            // The commit validated them: reading again before the next commit would tell nothing new.
            entry.fresh_at = self.tick;
        }
        if !committed {
            self.bytes -= entry.cached.bytes();
            entry.cached = CachedKey::default();
        }
    }

    /// Estimated memory, with the table of keys.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.keys.capacity() * CACHE_KEY_BYTES
    }

    /// The tick of the call that is being made.
    pub(crate) fn tick(&self) -> u64 {
        self.tick
    }

    /// A call was sent. Empties a cache that has grown beyond its bounds.
    pub(crate) fn advance(&mut self) {
        self.tick += 1;
        if self.bytes > CACHE_BYTES_MAX || self.keys.len() > CACHE_KEYS_MAX {
            self.shrink();
        }
    }

    /// Drops everything but the keys that commits in flight write, and frees the memory.
    pub(crate) fn shrink(&mut self) {
        self.clear();
        self.keys.retain(|_, entry| !entry.in_flight.is_empty());
        self.keys.shrink_to_fit();
    }

    /// Drops all replies. After a broken connection they may be of another server's history.
    pub(crate) fn clear(&mut self) {
        self.keys.values_mut().for_each(|entry| entry.cached = CachedKey::default());
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::key::READ_BYTES;
    use super::*;
    use bytes::Bytes;
    use emberkeep_hot::command::Expiry;

    fn blob(text: &'static str) -> Reply {
        Reply::Blob(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_cached_reply_follows_our_own_commits() {
        let (mut cache, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        cache.insert(&key, &Read::Get, blob("1"), 0);
        cache.record_sent(&key, &[(key.clone(), Write::Set(Bytes::from_static(b"2"), Expiry::Keep))]);
        cache.advance();
        assert_eq!(cache.get(&key, &Read::Get, now), Some(blob("2")));
        cache.record_answered(&key, 0, false);
        assert_eq!(cache.get(&key, &Read::Get, now), None, "the commit did not happen");
    }

    #[test]
    fn a_reply_is_carried_over_the_commits_sent_after_it() {
        let (mut cache, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        let list = |elements: &[&'static str]| {
            Reply::List(elements.iter().map(|e| Bytes::from_static(e.as_bytes())).collect())
        };
        let read = cache.tick();
        cache.advance();
        let commit = cache.tick();
        cache.record_sent(&key, &[(key.clone(), Write::LPush(vec![Bytes::from_static(b"new")]))]);
        cache.advance();
        cache.insert(&key, &Read::LRange(0, 7), list(&["old"]), read);
        assert_eq!(cache.get(&key, &Read::LRange(0, 7), now), Some(list(&["new", "old"])));
        cache.record_answered(&key, commit, true);
        cache.insert(&key, &Read::LRange(0, 7), list(&["newer", "new", "old"]), commit);
        assert_eq!(cache.get(&key, &Read::LRange(0, 0), now), Some(list(&["newer"])));
    }

    #[test]
    fn a_reply_that_cannot_be_carried_over_is_used_as_it_is() {
        let (mut cache, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        let read = cache.tick();
        cache.advance();
        cache.record_sent(&key, &[(key.clone(), Write::SAdd(vec![Bytes::from_static(b"m")]))]);
        cache.advance();
        cache.insert(&key, &Read::SCard, Reply::Int(7), read);
        assert_eq!(
            cache.get(&key, &Read::SCard, now),
            Some(Reply::Int(7)),
            "otherwise it would be missed for ever"
        );
    }

    #[test]
    fn all_reads_of_one_call_are_cached_and_later_ones_bring_them_back_to_the_bound() {
        let (mut cache, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        let field = |n: usize| Read::HGet(Bytes::from(n.to_string()));
        let many = 3 * CACHE_READS_PER_KEY_MAX;
        (0..many).for_each(|n| cache.insert(&key, &field(n), blob("x"), 0));
        assert!((0..many).all(|n| cache.get(&key, &field(n), now).is_some()));
        cache.insert(&key, &field(many), blob("x"), 1);
        assert!(cache.get(&key, &field(many), now).is_some());
        assert_eq!(cache.bytes, CACHE_READS_PER_KEY_MAX * (1 + READ_BYTES));
    }

    #[test]
    fn memory_is_bounded_also_for_keys_that_are_never_read() {
        let mut cache = ReadCache::default();
        for n in 0..2 * CACHE_KEYS_MAX as u64 {
            let key = RawKey::from(n.to_string());
            cache.record_sent(&key, &[(key.clone(), Write::IncrBy(1))]);
            cache.advance();
            cache.record_answered(&key, n, true);
        }
        assert!(cache.keys.len() <= CACHE_KEYS_MAX + 1, "{}", cache.keys.len());
        let key = RawKey::from_static(b"k");
        for n in 0..10 * CACHE_READS_PER_KEY_MAX {
            cache.insert(&key, &Read::LRange(-1 - n as i64, -1), blob("x"), n as u64);
        }
        assert_eq!(cache.bytes, CACHE_READS_PER_KEY_MAX * (1 + READ_BYTES));
    }

    #[test]
    fn many_keys_of_many_partitions_stay_within_one_bound_and_are_freed() {
        const MAX: usize = 4 * 1024 * 1024;
        let budget = crate::cache::budget::Budget::new(MAX);
        let mut partitions: Vec<(ReadCache, _)> =
            (0..40).map(|_| (ReadCache::default(), budget.share())).collect();
        for n in 0..partitions.len() {
            let (cache, share) = &mut partitions[n];
            let blank = cache.bytes();
            for key in 0..5_000_u64 {
                // Written and never read, as counters are: no reply is cached, but the key has an entry.
                let key = RawKey::from(key.to_string());
                cache.record_sent(&key, &[(key.clone(), Write::IncrBy(1))]);
                cache.record_answered(&key, cache.tick, true);
            }
            let busy = RawKey::from_static(b"busy");
            cache.record_sent(&busy, &[(busy.clone(), Write::IncrBy(1))]);
            assert!(cache.bytes() - blank >= 5_000 * CACHE_KEY_BYTES, "{}", cache.bytes());
            share.report(cache.bytes());
            for (cache, share) in &mut partitions {
                if futures_util::FutureExt::now_or_never(share.shrink.notified()).is_some() {
                    cache.shrink();
                    assert_eq!(cache.keys.len(), 1, "a commit that writes it is in flight");
                    assert!(cache.keys.capacity() < 100, "{}", cache.keys.capacity());
                    share.report(cache.bytes());
                }
            }
            let tables: usize = partitions.iter().map(|(cache, _)| cache.keys.capacity()).sum();
            assert!(tables * CACHE_KEY_BYTES <= 2 * MAX, "{tables} places after {n} partitions");
        }
    }

    #[test]
    fn after_a_conflict_a_cached_reply_is_used_only_while_fresh() {
        let (mut cache, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        cache.mark_contended(&key, now);
        cache.insert(&key, &Read::Get, blob("came with the stale answer"), 0);
        assert!(cache.get(&key, &Read::Get, now).is_some());
        cache.advance();
        assert_eq!(cache.get(&key, &Read::Get, now), None);
        assert!(cache.get(&key, &Read::Get, now + 2 * CONTENDED).is_some());
    }
}
