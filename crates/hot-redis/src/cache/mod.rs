//! What the process last saw of a partition: guesses for reads. Never an answer to a plain read, always validated.
//!
//! A guess for a key that others keep changing costs a commit that fails; so after a stale answer a key's guesses
//! are used only at once, while they are fresh, and otherwise read again, until it has been quiet for a while.

pub(crate) mod budget;
pub(crate) mod derive;
pub(crate) mod key;
pub(crate) mod view;

use crate::cache::derive::carried;
use crate::cache::key::CachedKey;
use crate::limits::{CACHE_BYTES_MAX, CACHE_KEY_BYTES, CACHE_KEYS_MAX, CACHE_READS_PER_KEY_MAX, CONTENDED};
use emberkeep_hot::command::{RawKey, Read, Reply, Write};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::time::Instant;

/// Guesses of one partition.
#[derive(Default)]
pub(crate) struct ReadCache {
    keys: HashMap<RawKey, CacheEntry, RandomState>,
    bytes: usize,
    /// Grows with every commit that is sent: what was seen before it is no longer fresh.
    tick: u64,
    /// When the last trouble with others will be over, on whatever key; `None` = there never was any.
    calm_from: Option<Instant>,
}

#[derive(Default)]
struct CacheEntry {
    kept: CachedKey,
    contended_until: Option<Instant>,
    fresh_at: u64,
    /// What commits in in_flight write to the key, each with the tick at which it was sent.
    in_flight: SmallVec<[(u64, Vec<Write>); 2]>,
    /// Somebody else has the turn until about then.
    wait_until: Option<Instant>,
}

impl CacheEntry {
    fn is_contended(&self, now: Instant) -> bool {
        self.contended_until.is_some_and(|until| now < until)
    }
}

impl ReadCache {
    /// A guess, if there is one worth trying.
    pub(crate) fn guess(&self, key: &RawKey, read: &Read, now: Instant) -> Option<Reply> {
        self.trusted(key, now)?.inferred(read)
    }

    /// Whether there is a guess worth trying.
    pub(crate) fn knows(&self, key: &RawKey, read: &Read, now: Instant) -> bool {
        self.trusted(key, now).is_some_and(|kept| kept.answers(read))
    }

    fn trusted(&self, key: &RawKey, now: Instant) -> Option<&CachedKey> {
        let known = self.keys.get(key)?;
        (known.fresh_at == self.tick || !known.is_contended(now)).then_some(&known.kept)
    }

    /// A reply that came with the call of this tick. What the commits behind that call will leave is the better guess.
    pub(crate) fn saw(&mut self, key: &RawKey, read: &Read, reply: Reply, tick: u64) {
        let known = self.keys.entry_ref(key).or_default();
        known.fresh_at = self.tick;
        let before = known.kept.bytes();
        let behind = known.in_flight.iter().filter(|(sent, _)| *sent > tick).flat_map(|(_, writes)| writes);
        let behind: Vec<&Write> = behind.collect();
        if behind.is_empty() {
            known.kept.keep(read.clone(), reply, tick);
        } else if known.kept.inferred(read).is_none() {
            let after = carried(key, &[(read.clone(), reply.clone())], &behind);
            after.into_iter().for_each(|(read, reply)| known.kept.keep(read, reply, tick));
            if known.kept.inferred(read).is_none() {
                // What the commits behind it leave cannot be told. Without a guess the transaction would miss this read for as
                // long as we write the key; a wrong one ends with a stale answer, after which commits on the key wait.
                known.kept.keep_beside(read.clone(), reply, tick);
            }
        }
        self.bytes = self.bytes + known.kept.bytes() - before;
    }

    /// A guess proved wrong: others write this key.
    pub(crate) fn contended(&mut self, key: &RawKey, now: Instant) {
        self.calm_from = self.calm_from.max(Some(now + CONTENDED));
        let known = self.keys.entry_ref(key).or_default();
        known.contended_until = Some(now + CONTENDED);
        self.bytes -= known.kept.bytes();
        known.kept = CachedKey::default();
    }

    /// Somebody else has the turn on these keys.
    pub(crate) fn wait(&mut self, key: &RawKey, until: Instant) {
        self.calm_from = self.calm_from.max(Some(until));
        self.keys.entry_ref(key).or_default().wait_until = Some(until);
    }

    /// Whether no key is contended and nobody else has a turn: [`ReadCache::waits`] and [`ReadCache::is_busy`] need not be asked.
    pub(crate) fn is_calm(&self, now: Instant) -> bool {
        self.calm_from.is_none_or(|from| now >= from)
    }

    /// Until when a transaction on this key had better not be sent: another's turn.
    pub(crate) fn waits(&self, key: &RawKey, now: Instant) -> Option<Instant> {
        self.keys.get(key)?.wait_until.filter(|until| *until > now)
    }

    /// Whether a commit on its way writes this key while others do too: guessing its outcome is in vain.
    pub(crate) fn is_busy(&self, key: &RawKey, now: Instant) -> bool {
        self.keys.get(key).is_some_and(|known| !known.in_flight.is_empty() && known.is_contended(now))
    }

    /// A commit with these writes of the key is sent: guesses become what it will leave behind.
    pub(crate) fn sent(&mut self, key: &RawKey, writes: &[(RawKey, Write)]) {
        let known = self.keys.entry_ref(key).or_default();
        let before = known.kept.bytes();
        let writes: Vec<&Write> = writes.iter().map(|(_, write)| write).collect();
        // Each is carried over every write: those who needed more at once have run.
        known.kept.trim(CACHE_READS_PER_KEY_MAX);
        known.kept.replace(carried(key, known.kept.replies(), &writes));
        known.in_flight.push((self.tick, writes.into_iter().cloned().collect()));
        self.bytes = self.bytes + known.kept.bytes() - before;
    }

    /// A commit of this tick that wrote the key came back; `false` = it did not happen, so the guesses are void.
    pub(crate) fn landed(&mut self, key: &RawKey, tick: u64, committed: bool) {
        let Some(known) = self.keys.get_mut(key) else { return };
        known.in_flight.retain(|(sent, _)| *sent != tick);
        if committed && known.in_flight.is_empty() {
            // As good as if it had been read just now: another read before the next commit would be in vain.
            known.fresh_at = self.tick;
        }
        if !committed {
            self.bytes -= known.kept.bytes();
            known.kept = CachedKey::default();
        }
    }

    /// What the guesses weigh, with the table of their keys.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.keys.capacity() * CACHE_KEY_BYTES
    }

    /// The tick of the call that is made now.
    pub(crate) fn tick(&self) -> u64 {
        self.tick
    }

    /// A call was sent. Forgets everything when that has become too much.
    pub(crate) fn advance(&mut self) {
        self.tick += 1;
        if self.bytes > CACHE_BYTES_MAX || self.keys.len() > CACHE_KEYS_MAX {
            self.give_back();
        }
    }

    /// Forgets everything but the keys that commits in in_flight write, and frees their table.
    pub(crate) fn give_back(&mut self) {
        self.forget_guesses();
        self.keys.retain(|_, known| !known.in_flight.is_empty());
        self.keys.shrink_to_fit();
    }

    /// The connection broke: whatever was seen may be of another history.
    pub(crate) fn forget_guesses(&mut self) {
        self.keys.values_mut().for_each(|known| known.kept = CachedKey::default());
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::key::READ_BYTES;
    use bytes::Bytes;
    use emberkeep_hot::command::Expiry;

    fn blob(text: &'static str) -> Reply {
        Reply::Blob(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_guess_follows_our_own_commits() {
        let (mut known, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        known.saw(&key, &Read::Get, blob("1"), 0);
        known.sent(&key, &[(key.clone(), Write::Set(Bytes::from_static(b"2"), Expiry::Keep))]);
        known.advance();
        assert_eq!(known.guess(&key, &Read::Get, now), Some(blob("2")));
        known.landed(&key, 0, false);
        assert_eq!(known.guess(&key, &Read::Get, now), None, "the commit did not happen");
    }

    #[test]
    fn a_reply_is_carried_over_the_commits_behind_it() {
        let (mut known, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        let list = |elements: &[&'static str]| {
            Reply::List(elements.iter().map(|e| Bytes::from_static(e.as_bytes())).collect())
        };
        let read = known.tick();
        known.advance();
        let commit = known.tick();
        known.sent(&key, &[(key.clone(), Write::LPush(vec![Bytes::from_static(b"new")]))]);
        known.advance();
        known.saw(&key, &Read::LRange(0, 7), list(&["old"]), read);
        assert_eq!(known.guess(&key, &Read::LRange(0, 7), now), Some(list(&["new", "old"])));
        known.landed(&key, commit, true);
        known.saw(&key, &Read::LRange(0, 7), list(&["newer", "new", "old"]), commit);
        assert_eq!(known.guess(&key, &Read::LRange(0, 0), now), Some(list(&["newer"])));
    }

    #[test]
    fn a_reply_that_cannot_be_carried_is_a_guess_as_it_is() {
        let (mut known, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        let read = known.tick();
        known.advance();
        known.sent(&key, &[(key.clone(), Write::SAdd(vec![Bytes::from_static(b"m")]))]);
        known.advance();
        known.saw(&key, &Read::SCard, Reply::Int(7), read);
        assert_eq!(
            known.guess(&key, &Read::SCard, now),
            Some(Reply::Int(7)),
            "otherwise it is missed for ever"
        );
    }

    #[test]
    fn all_reads_of_one_call_are_kept_and_later_ones_bring_them_back_to_the_bound() {
        let (mut known, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        let field = |n: usize| Read::HGet(Bytes::from(n.to_string()));
        let many = 3 * CACHE_READS_PER_KEY_MAX;
        (0..many).for_each(|n| known.saw(&key, &field(n), blob("x"), 0));
        assert!((0..many).all(|n| known.guess(&key, &field(n), now).is_some()));
        known.saw(&key, &field(many), blob("x"), 1);
        assert!(known.guess(&key, &field(many), now).is_some());
        assert_eq!(known.bytes, CACHE_READS_PER_KEY_MAX * (1 + READ_BYTES));
    }

    #[test]
    fn memory_is_bounded_also_for_keys_that_are_never_read() {
        let mut known = ReadCache::default();
        for n in 0..2 * CACHE_KEYS_MAX as u64 {
            let key = RawKey::from(n.to_string());
            known.sent(&key, &[(key.clone(), Write::IncrBy(1))]);
            known.advance();
            known.landed(&key, n, true);
        }
        assert!(known.keys.len() <= CACHE_KEYS_MAX + 1, "{}", known.keys.len());
        let key = RawKey::from_static(b"k");
        for n in 0..10 * CACHE_READS_PER_KEY_MAX {
            known.saw(&key, &Read::LRange(-1 - n as i64, -1), blob("x"), n as u64);
        }
        assert_eq!(known.bytes, CACHE_READS_PER_KEY_MAX * (1 + READ_BYTES));
    }

    #[test]
    fn many_keys_of_many_partitions_stay_within_one_bound_and_are_given_back() {
        const MAX: usize = 4 * 1024 * 1024;
        let budget = crate::cache::budget::Budget::new(MAX);
        let mut partitions: Vec<(ReadCache, _)> =
            (0..40).map(|_| (ReadCache::default(), budget.share())).collect();
        for n in 0..partitions.len() {
            let (known, share) = &mut partitions[n];
            let blank = known.bytes();
            for key in 0..5_000_u64 {
                // Written and never read, as counters are: no reply is kept, but its place in the table.
                let key = RawKey::from(key.to_string());
                known.sent(&key, &[(key.clone(), Write::IncrBy(1))]);
                known.landed(&key, known.tick, true);
            }
            let busy = RawKey::from_static(b"busy");
            known.sent(&busy, &[(busy.clone(), Write::IncrBy(1))]);
            assert!(known.bytes() - blank >= 5_000 * CACHE_KEY_BYTES, "{}", known.bytes());
            share.report(known.bytes());
            for (known, share) in &mut partitions {
                if futures_util::FutureExt::now_or_never(share.give_back.notified()).is_some() {
                    known.give_back();
                    assert_eq!(known.keys.len(), 1, "a commit is in in_flight on it");
                    assert!(known.keys.capacity() < 100, "{}", known.keys.capacity());
                    share.report(known.bytes());
                }
            }
            let tables: usize = partitions.iter().map(|(known, _)| known.keys.capacity()).sum();
            assert!(tables * CACHE_KEY_BYTES <= 2 * MAX, "{tables} places after {n} partitions");
        }
    }

    #[test]
    fn after_a_stale_answer_a_guess_is_used_only_while_fresh() {
        let (mut known, key, now) = (ReadCache::default(), RawKey::from_static(b"k"), Instant::now());
        known.contended(&key, now);
        known.saw(&key, &Read::Get, blob("seen with the stale answer"), 0);
        assert!(known.guess(&key, &Read::Get, now).is_some());
        known.advance();
        assert_eq!(known.guess(&key, &Read::Get, now), None);
        assert!(known.guess(&key, &Read::Get, now + 2 * CONTENDED).is_some());
    }
}
