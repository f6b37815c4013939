//! What the process last saw of a partition: guesses for reads. Never an answer to a plain read, always validated.
//!
//! A guess for a key that others keep changing costs a commit that fails; so after a stale answer a key's guesses
//! are used only at once, while they are fresh, and otherwise read again, until it has been quiet for a while.

use crate::limits::{CONTENDED, KNOWN_BYTES_MAX, KNOWN_KEYS_MAX, KNOWN_READS_MAX};
use emberkeep_hot::command::{RawKey, Read, Reply, Write};
use emberkeep_hot::tx::{Base, read_through};
use emberkeep_hot::{Error, Result};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::time::Instant;

/// What a guess weighs beside its reply.
const READ_BYTES: usize = 64;

/// Guesses of one partition.
#[derive(Default)]
pub(crate) struct Known {
    keys: HashMap<RawKey, KnownKey, RandomState>,
    bytes: usize,
    /// Grows with every commit that is sent: what was seen before it is no longer fresh.
    tick: u64,
    /// When the last trouble with others will be over, on whatever key; `None` = there never was any.
    calm_from: Option<Instant>,
}

#[derive(Default)]
struct KnownKey {
    reads: Vec<(Read, Reply)>,
    contended_until: Option<Instant>,
    fresh_at: u64,
    /// Commits in flight that write the key.
    in_flight: u32,
    /// Somebody else has the turn until about then.
    wait_until: Option<Instant>,
}

impl KnownKey {
    fn is_contended(&self, now: Instant) -> bool {
        self.contended_until.is_some_and(|until| now < until)
    }
}

impl Known {
    /// A guess, if there is one worth trying.
    pub(crate) fn guess(&self, key: &RawKey, read: &Read, now: Instant) -> Option<&Reply> {
        let known = self.keys.get(key)?;
        if known.fresh_at != self.tick && known.is_contended(now) {
            return None;
        }
        known.reads.iter().find(|(r, _)| r == read).map(|(_, reply)| reply)
    }

    /// A reply that was just seen.
    pub(crate) fn saw(&mut self, key: &RawKey, read: &Read, reply: Reply) {
        let known = self.keys.entry_ref(key).or_default();
        known.fresh_at = self.tick;
        match known.reads.iter_mut().find(|(r, _)| r == read) {
            // What a commit on its way will leave behind is the better guess.
            Some(_) if known.in_flight > 0 => {}
            Some((_, old)) => {
                self.bytes = self.bytes + reply.bytes() - old.bytes();
                *old = reply;
            }
            None => {
                if known.reads.len() >= KNOWN_READS_MAX {
                    let (_, oldest) = known.reads.remove(0);
                    self.bytes -= oldest.bytes() + READ_BYTES;
                }
                self.bytes += reply.bytes() + READ_BYTES;
                known.reads.push((read.clone(), reply));
            }
        }
    }

    /// A guess proved wrong: others write this key.
    pub(crate) fn contended(&mut self, key: &RawKey, now: Instant) {
        self.calm_from = self.calm_from.max(Some(now + CONTENDED));
        let known = self.keys.entry_ref(key).or_default();
        known.contended_until = Some(now + CONTENDED);
        let dropped: usize = known.reads.drain(..).map(|(_, reply)| reply.bytes() + READ_BYTES).sum();
        self.bytes -= dropped;
    }

    /// Somebody else has the turn on these keys.
    pub(crate) fn wait(&mut self, key: &RawKey, until: Instant) {
        self.calm_from = self.calm_from.max(Some(until));
        self.keys.entry_ref(key).or_default().wait_until = Some(until);
    }

    /// Whether no key is contended and nobody else has a turn: [`Known::waits`] and [`Known::is_busy`] need not be asked.
    pub(crate) fn is_calm(&self, now: Instant) -> bool {
        self.calm_from.is_none_or(|from| now >= from)
    }

    /// Until when a step on this key had better not be sent: another's turn.
    pub(crate) fn waits(&self, key: &RawKey, now: Instant) -> Option<Instant> {
        self.keys.get(key)?.wait_until.filter(|until| *until > now)
    }

    /// Whether a commit on its way writes this key while others do too: guessing its outcome is in vain.
    pub(crate) fn is_busy(&self, key: &RawKey, now: Instant) -> bool {
        self.keys.get(key).is_some_and(|known| known.in_flight > 0 && known.is_contended(now))
    }

    /// A commit with these writes of the key was sent: guesses become what it will leave behind.
    pub(crate) fn sent(&mut self, key: &RawKey, writes: &[Write]) {
        let known = self.keys.entry_ref(key).or_default();
        known.in_flight += 1;
        let writes: Vec<&Write> = writes.iter().collect();
        let before = std::mem::take(&mut known.reads);
        self.bytes -= before.iter().map(|(_, reply)| reply.bytes() + READ_BYTES).sum::<usize>();
        let after = before.iter().filter_map(|(read, _)| {
            let reply = read_through(&mut Replies(&before), key, &writes, read).ok()?;
            Some((read.clone(), reply))
        });
        known.reads = after.collect();
        self.bytes += known.reads.iter().map(|(_, reply)| reply.bytes() + READ_BYTES).sum::<usize>();
    }

    /// A commit that wrote the key came back; `false` = it did not happen, so the guesses are void.
    pub(crate) fn landed(&mut self, key: &RawKey, committed: bool) {
        let Some(known) = self.keys.get_mut(key) else { return };
        known.in_flight = known.in_flight.saturating_sub(1);
        if committed && known.in_flight == 0 {
            // As good as if it had been read just now: another read before the next commit would be in vain.
            known.fresh_at = self.tick;
        }
        if !committed {
            let dropped: usize = known.reads.drain(..).map(|(_, reply)| reply.bytes() + READ_BYTES).sum();
            self.bytes -= dropped;
        }
    }

    /// A commit was sent. Forgets everything when that has become too much.
    pub(crate) fn advance(&mut self) {
        self.tick += 1;
        if self.bytes > KNOWN_BYTES_MAX || self.keys.len() > KNOWN_KEYS_MAX {
            self.forget_guesses();
            self.keys.retain(|_, known| known.in_flight > 0);
        }
    }

    /// The connection broke: whatever was seen may be of another history.
    pub(crate) fn forget_guesses(&mut self) {
        self.keys.values_mut().for_each(|known| known.reads.clear());
        self.bytes = 0;
    }
}

/// Replies as a base, to carry them over one's own writes.
struct Replies<'a>(&'a [(Read, Reply)]);

impl Base for Replies<'_> {
    fn read(&mut self, _key: &RawKey, read: &Read) -> Result<Reply> {
        let found = self.0.iter().find(|(r, _)| r == read);
        found.map(|(_, reply)| reply.clone()).ok_or(Error::Suspended)
    }

    fn text(&mut self, _key: &RawKey) -> Result<Option<&[u8]>> {
        Err(Error::Suspended)
    }

    fn now(&mut self) -> i64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use emberkeep_hot::command::Expiry;

    fn blob(text: &'static str) -> Reply {
        Reply::Blob(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_guess_follows_our_own_commits() {
        let (mut known, key, now) = (Known::default(), RawKey::from_static(b"k"), Instant::now());
        known.saw(&key, &Read::Get, blob("1"));
        known.sent(&key, &[Write::Set(Bytes::from_static(b"2"), Expiry::Keep)]);
        known.advance();
        assert_eq!(known.guess(&key, &Read::Get, now), Some(&blob("2")));
        known.landed(&key, false);
        assert_eq!(known.guess(&key, &Read::Get, now), None, "the commit did not happen");
    }

    #[test]
    fn memory_is_bounded_also_for_keys_that_are_never_read() {
        let mut known = Known::default();
        for n in 0..2 * KNOWN_KEYS_MAX {
            let key = RawKey::from(n.to_string());
            known.sent(&key, &[Write::IncrBy(1)]);
            known.advance();
            known.landed(&key, true);
        }
        assert!(known.keys.len() <= KNOWN_KEYS_MAX + 1, "{}", known.keys.len());
        let key = RawKey::from_static(b"k");
        for n in 0..10 * KNOWN_READS_MAX {
            known.saw(&key, &Read::LRange(0, n as i64), blob("x"));
        }
        assert_eq!(known.keys[&key].reads.len(), KNOWN_READS_MAX);
        assert_eq!(known.bytes, KNOWN_READS_MAX * (1 + READ_BYTES));
    }

    #[test]
    fn after_a_stale_answer_a_guess_is_used_only_while_fresh() {
        let (mut known, key, now) = (Known::default(), RawKey::from_static(b"k"), Instant::now());
        known.contended(&key, now);
        known.saw(&key, &Read::Get, blob("seen with the stale answer"));
        assert!(known.guess(&key, &Read::Get, now).is_some());
        known.advance();
        assert_eq!(known.guess(&key, &Read::Get, now), None);
        assert!(known.guess(&key, &Read::Get, now + 2 * CONTENDED).is_some());
    }
}
