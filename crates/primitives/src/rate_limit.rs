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
//! Cost: four short reads, made together; more only to remove old events or where there are more than `limit` + 4. No
//! write if the event is refused. On Redis the key of [`RateLimit::prefetched`] is cached as a whole, so that
//! events of one process need no reads between them.
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
use emberkeep_hot::command::{RawKey, Read, Reply, Score, Write, ZSlice};
use emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
use emberkeep_hot::{Error, ReadTx, Result, Scope, Tx};
use emberkeep_schema::{Codec, Family, Key, Partition, Refresh, SortedSet, Ttl};
use std::time::Duration;

/// The order of a range, as its reads say it.
const OLDEST_FIRST: bool = false;
const NEWEST_FIRST: bool = true;
/// How many of the oldest events are read at once: one of them has usually left the window since the last event.
const OLDEST: usize = 2;

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
#[derive(Default)]
struct Events {
    /// Events within the window.
    counted: usize,
    /// The time of the oldest of those that fill the limit, or of all if it is not filled.
    oldest: i64,
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
        if events.known || events.counted >= self.limit {
            return Ok(self.admission(events.known, &events, now));
        }
        for old in events.old.chunks(REPLY_ELEMENTS_MAX) {
            tx.raw_write_of(F::DECLARATION, tx.raw_name(&self.key), Write::ZRem(old.to_vec()))?;
        }
        tx.zadd(&self.key, event, now as f64)?;
        if let Ttl::Refresh { ms } = F::DECLARATION.ttl
            && ms < self.window_ms
        {
            let expiry = Write::ExpireAt(now + self.window_ms);
            tx.raw_write_of(F::DECLARATION, tx.raw_name(&self.key), expiry)?;
        }
        events.count(now);
        Ok(self.admission(true, &events, now))
    }

    /// Whether an event would be admitted now. Nothing is counted.
    pub fn peek(&self, tx: &mut ReadTx<'_, P>) -> Result<Admission> {
        let now = tx.now();
        let events = self.events(tx, now, None)?;
        Ok(self.admission(events.counted < self.limit, &events, now))
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
        ranks(first, count, NEWEST_FIRST)
    }

    fn page_len(&self) -> usize {
        (self.limit + RATE_TIDIED_PER_EVENT).min(REPLY_ELEMENTS_MAX)
    }

    /// What is at the key. Both ends show what counts: whatever is between them counts, too.
    fn events(&self, tx: &mut ReadTx<'_, P>, now: i64, event: Option<&Bytes>) -> Result<Events> {
        let key = tx.raw_name(&self.key);
        let ends = [Read::ZCard, ranks(0, OLDEST, OLDEST_FIRST), ranks(0, 1, NEWEST_FIRST)];
        let known = event.map(|event| Read::ZScore(event.clone()));
        let reads: Vec<_> = ends.into_iter().chain(known).map(|read| (key.clone(), read)).collect();
        let replies = tx.raw_read_many(&reads);
        if replies == Err(Error::Suspended) {
            // The whole of it, in the same round trip: the events after this one need no reads then.
            tx.raw_prefetch(&key, self.page(0));
        }
        let mut replies = replies?.into_iter();
        let mut next = || replies.next().unwrap_or(Ok(Reply::Nil));
        let Reply::Int(all) = next()? else { return Ok(Events::default()) };
        let (oldest, newest, own) = (scored(next()?), scored(next()?), next()?);
        if all as usize > self.page_len() {
            return self.events_of_pages(tx, &key, now, event);
        }
        let (mut old, first) = self.outside(tx, &key, now, (oldest, OLDEST_FIRST))?;
        let Some(first) = first else { return Ok(Events { old, ..Events::default() }) };
        let (ahead, _) = self.outside(tx, &key, now, (newest, NEWEST_FIRST))?;
        let (before, counted) = (old.len(), (all as usize).saturating_sub(old.len() + ahead.len()));
        // More than the limit: it was higher, or other services do not keep to it.
        let oldest = match counted.saturating_sub(self.limit) {
            0 => Some(first),
            more => scored(tx.raw_read(&key, ranks(before + more, 1, OLDEST_FIRST))?).first().map(time),
        };
        old.extend(ahead);
        let known = matches!(own, Reply::Score(score) if self.counts(score, now));
        Ok(Events { counted, oldest: oldest.unwrap_or(now).min(now), known, old })
    }

    /// The members at one end that do not count, and the time of the first one that does. The reply to the first
    /// read of that end is given.
    fn outside(
        &self,
        tx: &mut ReadTx<'_, P>,
        key: &RawKey,
        now: i64,
        (mut end, order): (Vec<(Bytes, Score)>, bool),
    ) -> Result<(Vec<Bytes>, Option<i64>)> {
        let counts = |one: &(Bytes, Score)| self.counts(one.1, now);
        if !end.is_empty() && !end.iter().any(counts) {
            end = scored(tx.raw_read(key, ranks(0, self.page_len(), order))?);
        }
        let first = end.iter().position(counts);
        let time = first.map(|first| time(&end[first]));
        end.truncate(first.unwrap_or(end.len()));
        Ok((end.into_iter().map(|(member, _)| member).collect(), time))
    }

    /// What counts among more events than one page has: page by page, the newest first. Events of the far future come
    /// first and must not hide those that count.
    fn events_of_pages(
        &self,
        tx: &mut ReadTx<'_, P>,
        key: &RawKey,
        now: i64,
        event: Option<&Bytes>,
    ) -> Result<Events> {
        let mut events = Events::default();
        for number in 0..RATE_PAGES_MAX {
            let page = scored(tx.raw_read(key, self.page(number))?);
            let is_last = page.len() < self.page_len()
                || page.last().is_some_and(|last| time(last) <= now.saturating_sub(self.window_ms));
            for one in page {
                if !self.counts(one.1, now) {
                    events.old.push(one.0);
                    continue;
                }
                events.known |= event == Some(&one.0);
                if events.counted < self.limit {
                    events.oldest = time(&one).min(now);
                }
                events.counted += 1;
            }
            if is_last || events.counted >= self.limit {
                break;
            }
        }
        Ok(events)
    }

    /// Whether an event of this time is within the window.
    fn counts(&self, score: Score, now: i64) -> bool {
        let at = score.get() as i64;
        at > now.saturating_sub(self.window_ms) && at <= now.saturating_add(self.window_ms)
    }

    /// The state with these events.
    fn admission(&self, allowed: bool, events: &Events, now: i64) -> Admission {
        // There is room again when the last of the newest `limit` events has left the window.
        let is_full = events.counted >= self.limit;
        let retry_ms = if is_full { (events.oldest + self.window_ms - now).max(0) as u64 } else { 0 };
        let remaining = self.limit.saturating_sub(events.counted);
        Admission { allowed, remaining, retry_after: Duration::from_millis(retry_ms) }
    }
}

impl Events {
    /// Adds an event of this moment.
    fn count(&mut self, now: i64) {
        self.oldest = if self.counted == 0 { now } else { self.oldest };
        self.counted += 1;
    }
}

/// Positions of a sorted set.
fn ranks(first: usize, count: usize, reverse: bool) -> Read {
    Read::ZRange(ZSlice::Rank(first as i64, (first + count) as i64 - 1), reverse)
}

fn scored(reply: Reply) -> Vec<(Bytes, Score)> {
    if let Reply::Scored(list) = reply { list } else { vec![] }
}

fn time((_, score): &(Bytes, Score)) -> i64 {
    score.get() as i64
}
