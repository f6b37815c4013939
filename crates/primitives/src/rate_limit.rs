//! A rate limit: at most so many events within a sliding window.
//!
//! Promises:
//! 1. No window of the given length, wherever it begins, has more than `limit` counted events, in all
//!    processes together. An event counts from its millisecond until the window has passed, and not longer.
//! 2. A refused event is not counted: a caller that keeps trying is admitted as soon as there is room.
//! 3. An event that counts already is admitted again and not counted twice: a retry costs nothing.
//! 4. A store that cannot be reached is an error, never an admission.
//!
//! One key, the caller's: a sorted set of event ids by their time, as other services write it with `ZADD`.
//! Their events count, too. The key lives as long as its family says, or as the window if that is longer.
//! What has left the window is removed when the next event is admitted. An event of the future, which a clock
//! that was set back leaves, counts as one of this millisecond. One that is more than a window ahead does not
//! count, and is removed when the next event is admitted.
//!
//! Cost: one read of at most `limit` + 4 members, more only behind events far ahead; no write if the event is
//! refused.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::{Clock, Embedded, ManualClock}};
//! use emberkeep_primitives::RateLimit;
//! use emberkeep_schema::{Id, Name, SortedSet, family, partition};
//! use std::{sync::Arc, time::Duration};
//!
//! partition! {
//!     /// One player.
//!     pub struct Player(Name) as "player";
//! }
//! family! {
//!     /// What a player did lately, by action.
//!     pub RATE = "ratelimit:{player}:{action}" {
//!         kind: SortedSet<Id<u64>>, partition: Player, parts: (action: Name), ttl: refresh(60_000),
//!         owner: "zones"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let clock = ManualClock::at(1_000_000);
//! let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open()?;
//! let scope = Store::new(Arc::new(engine)).scope(Player(Name::new("ann").expect("a word")));
//! let attack = RATE.key(Name::new("attack").expect("a word"));
//! let attacks = RateLimit::new(attack, 2, Duration::from_secs(1))?;
//! assert_eq!(attacks.acquire_in(&scope, 71).await?.remaining, 1);
//! clock.advance(400);
//! assert!(attacks.acquire_in(&scope, 72).await?.allowed);
//! let refused = attacks.acquire_in(&scope, 73).await?;
//! assert_eq!((refused.allowed, refused.retry_after), (false, Duration::from_millis(600)));
//! clock.advance(600);
//! assert!(attacks.acquire_in(&scope, 73).await?.allowed);
//! # Ok(())
//! # }
//! ```

use crate::encode::encoded;
use crate::limits::{RATE_EVENTS_MAX, RATE_PAGES_MAX, RATE_TIDIED_PER_EVENT, RATE_WINDOW_MS_MAX};
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Write, ZSlice};
use emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
use emberkeep_hot::{Error, ReadTx, Result, Scope, Tx};
use emberkeep_schema::{Codec, Family, Key, Partition, Refresh, SortedSet, Ttl};
use std::time::Duration;

/// A limit on the events of one key.
#[derive(Clone, Debug)]
pub struct RateLimit<F: Family> {
    key: Key<F>,
    limit: usize,
    window_ms: i64,
}

/// Whether an event is admitted, and how many more would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// The event counts, now or since an earlier call.
    pub allowed: bool,
    /// Further events that would be admitted now.
    pub remaining: usize,
    /// How long until a further event is admitted; zero if one is now.
    pub retry_after: Duration,
}

/// The events of a key.
struct Events {
    /// Times of those that count, newest first.
    counted: Vec<i64>,
    /// Whether the caller's event is one of them.
    known: bool,
    /// Members that count no longer.
    old: Vec<Bytes>,
}

impl<P, F, C> RateLimit<F>
where
    P: Partition,
    F: Family<Partition = P, Kind = SortedSet<C>, Ttl = Refresh>,
    C: Codec,
{
    /// At most `limit` events (1 to [`RATE_EVENTS_MAX`]) within `window` (1 ms to [`RATE_WINDOW_MS_MAX`]).
    pub fn new(key: Key<F>, limit: usize, window: Duration) -> Result<Self> {
        if !(1..=RATE_EVENTS_MAX).contains(&limit) {
            let problem = format!("{limit} events, expected 1 to {RATE_EVENTS_MAX}");
            return Err(Error::Invalid { what: "rate limit", problem });
        }
        // Rounded up, so that no event is admitted early.
        match i64::try_from(window.as_nanos().div_ceil(1_000_000)) {
            Ok(window_ms @ 1..=RATE_WINDOW_MS_MAX) => Ok(RateLimit { key, limit, window_ms }),
            _ => {
                let max = Duration::from_millis(RATE_WINDOW_MS_MAX as u64);
                let problem = format!("a window of {window:?}, expected 1 ms to {max:?}");
                Err(Error::Invalid { what: "rate limit", problem })
            }
        }
    }

    /// Counts an event if there is room for it.
    pub fn acquire(&self, tx: &mut Tx<'_, P>, event: &C::Value) -> Result<Admission> {
        let (now, member) = (tx.now(), Bytes::from(encoded::<C>("event", event)?));
        let mut events = self.events(tx, now, Some(&member))?;
        if events.known || events.counted.len() >= self.limit {
            return Ok(self.admission(events.known, &events.counted, now));
        }
        for old in events.old.chunks(REPLY_ELEMENTS_MAX) {
            tx.raw_write(tx.raw_name(&self.key), Write::ZRem(old.to_vec()))?;
        }
        tx.zadd(&self.key, event, now as f64)?;
        if let Ttl::Refresh { ms } = F::DECLARATION.ttl
            && ms < self.window_ms
        {
            tx.raw_write(tx.raw_name(&self.key), Write::ExpireAt(now + self.window_ms))?;
        }
        events.counted.push(now);
        events.counted.sort_unstable_by(|a, b| b.cmp(a));
        Ok(self.admission(true, &events.counted, now))
    }

    /// Whether an event would be admitted now. Nothing is counted.
    pub fn peek(&self, tx: &mut ReadTx<'_, P>) -> Result<Admission> {
        let now = tx.now();
        let counted = self.events(tx, now, None)?.counted;
        Ok(self.admission(counted.len() < self.limit, &counted, now))
    }

    /// [`acquire`](Self::acquire) in a transaction of its own.
    pub async fn acquire_in(&self, scope: &Scope<P>, event: C::Value) -> Result<Admission> {
        let limit = self.clone();
        self.prefetched(scope.clone()).transact(move |tx| limit.acquire(tx, &event)).await
    }

    /// The scope with a prefetch of what [`acquire`](Self::acquire) reads.
    pub fn prefetched(&self, scope: Scope<P>) -> Scope<P> {
        scope.prefetch(&self.key, self.page(0))
    }

    /// One page of events, the newest first, by rank: a range by score would be a different read in every run
    /// of the body.
    fn page(&self, number: usize) -> Read {
        let (first, count) = (number * self.page_len(), self.page_len());
        Read::ZRange(ZSlice::Rank(first as i64, (first + count) as i64 - 1), true)
    }

    fn page_len(&self) -> usize {
        (self.limit + RATE_TIDIED_PER_EVENT).min(REPLY_ELEMENTS_MAX)
    }

    fn events(&self, tx: &mut ReadTx<'_, P>, now: i64, event: Option<&Bytes>) -> Result<Events> {
        let mut events = Events { counted: Vec::new(), known: false, old: Vec::new() };
        let key = tx.raw_name(&self.key);
        for number in 0..RATE_PAGES_MAX {
            let Reply::Scored(page) = tx.raw_read(&key, self.page(number))? else { break };
            let oldest = now.saturating_sub(self.window_ms);
            // Events of the far future come first and must not hide those that count.
            let is_last = page.len() < self.page_len()
                || page.last().is_some_and(|(_, score)| score.get() as i64 <= oldest);
            for (member, score) in page {
                let at = score.get() as i64;
                if at > oldest && at <= now + self.window_ms {
                    events.known |= event == Some(&member);
                    events.counted.push(at.min(now));
                } else {
                    events.old.push(member);
                }
            }
            if is_last || events.counted.len() >= self.limit {
                break;
            }
        }
        Ok(events)
    }

    /// The state with these events, newest first.
    fn admission(&self, allowed: bool, counted: &[i64], now: i64) -> Admission {
        // There is room again when the last of the newest `limit` events has left the window.
        let retry_ms = match counted.get(self.limit - 1) {
            Some(at) => (at + self.window_ms - now).max(0) as u64,
            None => 0,
        };
        let remaining = self.limit.saturating_sub(counted.len());
        Admission { allowed, remaining, retry_after: Duration::from_millis(retry_ms) }
    }
}
