//! Limit of wrong room codes per client address: codes are short, so guessing must be slow.
//!
//! A token bucket per address pays for each missing room. A request takes its token before it is served, so
//! that parallel guesses do not pass the limit, and returns it unless the room is missing. While all tokens
//! are taken and some may be returned, requests wait. While the bucket is empty, the address reaches only
//! rooms that it has found or created before, so that players behind the same router go on. Services with a
//! token are not limited.

use super::token_bucket::TokenBucket;
use crate::limits::*;
use emberkeep_games::party::RoomCode;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The text of the refusal, over HTTP and WebSocket.
pub(crate) const REFUSED: &str =
    "too many rooms that do not exist were named from this address; wait, then try again";

pub(crate) struct RoomCodeLimiter {
    /// Time in which one token returns; `None` = unlimited.
    interval: Option<Duration>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    clients: HashMap<IpAddr, Client>,
    /// When clients with a full bucket were last removed from a full table.
    purged_at: Option<Instant>,
    /// Two generations, so that the memory is bounded without a search for the oldest.
    found: HashSet<(IpAddr, RoomCode)>,
    found_before: HashSet<(IpAddr, RoomCode)>,
}

/// An address that named missing rooms, or has requests in flight that may.
struct Client {
    bucket: TokenBucket,
    /// Requests that have a token and no answer yet.
    in_flight: usize,
    /// Wakes requests that wait for a token.
    returned: Arc<Notify>,
}

enum Decision<'a> {
    Allow(Guess<'a>),
    Refuse,
    /// Other requests of the address hold the last tokens and may return them.
    Wait(OwnedNotified),
}

/// A request that names a room. Dropping it returns its token: the caller has learnt nothing.
#[must_use]
pub(crate) struct Guess<'a> {
    limiter: &'a RoomCodeLimiter,
    address: IpAddr,
    code: Option<RoomCode>,
    has_token: bool,
}

impl Guess<'_> {
    /// Spends the token: the caller learned that the room does not exist.
    pub(crate) fn confirm_missing(mut self) {
        self.finish(false);
    }

    /// Remembers the room for this address, and returns the token.
    pub(crate) fn confirm_found(self) {
        if let Some(code) = self.code {
            self.limiter.remember(self.address, code);
        }
    }

    fn finish(&mut self, refund: bool) {
        if std::mem::take(&mut self.has_token) {
            self.limiter.state.lock().finish(self.address, refund, Instant::now());
        }
    }
}

impl Drop for Guess<'_> {
    fn drop(&mut self) {
        self.finish(true);
    }
}

impl RoomCodeLimiter {
    /// A limit of missing rooms per minute and address; 0 = any number.
    pub(crate) fn new(per_minute: u32) -> RoomCodeLimiter {
        let interval = (per_minute > 0).then(|| Duration::from_secs(60) / per_minute.max(1));
        RoomCodeLimiter { interval, state: Mutex::default() }
    }

    /// Takes a token, unless the address knows the room. `code` is `None` for a text that is not a code. The
    /// error is how long to wait.
    pub(crate) async fn check(&self, address: IpAddr, code: Option<RoomCode>) -> Result<Guess<'_>, Duration> {
        let Some(interval) = self.interval else {
            return Ok(Guess { limiter: self, address, code, has_token: false });
        };
        loop {
            match self.check_at(address, code, interval, Instant::now()) {
                Decision::Allow(guess) => return Ok(guess),
                Decision::Refuse => return Err(interval),
                Decision::Wait(returned) => returned.await,
            }
        }
    }

    fn check_at(
        &self,
        address: IpAddr,
        code: Option<RoomCode>,
        interval: Duration,
        now: Instant,
    ) -> Decision<'_> {
        let mut state = self.state.lock();
        if code.is_some_and(|code| state.has_found(address, code)) {
            return Decision::Allow(Guess { limiter: self, address, code, has_token: false });
        }
        let Some(client) = state.client(address, interval, now) else { return Decision::Refuse };
        if client.bucket.try_take(now) {
            client.in_flight += 1;
            return Decision::Allow(Guess { limiter: self, address, code, has_token: true });
        }
        // Created under the lock, so that no token that is returned later is missed.
        let wait = || Decision::Wait(client.returned.clone().notified_owned());
        if client.in_flight > 0 { wait() } else { Decision::Refuse }
    }

    /// Remembers that an address found or created a room.
    pub(crate) fn remember(&self, address: IpAddr, code: RoomCode) {
        if self.interval.is_none() {
            return;
        }
        let mut state = self.state.lock();
        if state.found.len() >= FOUND_ROOMS_REMEMBERED_MAX {
            state.found_before = std::mem::take(&mut state.found);
        }
        state.found.insert((address, code));
    }
}

impl State {
    fn has_found(&self, address: IpAddr, code: RoomCode) -> bool {
        self.found.contains(&(address, code)) || self.found_before.contains(&(address, code))
    }

    /// The bucket of an address; `None` if the table is full.
    fn client(&mut self, address: IpAddr, interval: Duration, now: Instant) -> Option<&mut Client> {
        if self.clients.len() >= RATE_LIMITED_ADDRESSES_MAX && !self.clients.contains_key(&address) {
            self.purge(now);
            if self.clients.len() >= RATE_LIMITED_ADDRESSES_MAX {
                return None;
            }
        }
        Some(self.clients.entry(address).or_insert_with(|| Client {
            bucket: TokenBucket::with_interval(interval, MISSING_ROOMS_BURST, now),
            in_flight: 0,
            returned: Arc::default(),
        }))
    }

    /// Removes clients with a full bucket. At most once a second, because it scans the whole table.
    fn purge(&mut self, now: Instant) {
        if self.purged_at.is_none_or(|at| now >= at + RATE_LIMITS_PURGED_EVERY) {
            self.purged_at = Some(now);
            self.clients.retain(|_, client| client.in_flight > 0 || !client.bucket.is_full(now));
        }
    }

    /// Ends a request with a token.
    fn finish(&mut self, address: IpAddr, refund: bool, now: Instant) {
        let Some(client) = self.clients.get_mut(&address) else { return };
        client.in_flight = client.in_flight.saturating_sub(1);
        if refund {
            client.bucket.refund();
        }
        // With no request in flight, no token can be returned: waiting requests wake up and are refused.
        if refund || client.in_flight == 0 {
            client.returned.notify_waiters();
        }
        if client.in_flight == 0 && client.bucket.is_full(now) {
            self.clients.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    const EVERY: Duration = Duration::from_secs(10);

    fn code(text: &str) -> RoomCode {
        RoomCode::new(text).unwrap()
    }

    /// Names a room that is missing; whether it was served.
    fn misses(codes: &RoomCodeLimiter, address: IpAddr, code: Option<RoomCode>, now: Instant) -> bool {
        match codes.check_at(address, code, EVERY, now) {
            Decision::Allow(guess) => {
                guess.confirm_missing();
                true
            }
            Decision::Refuse => false,
            Decision::Wait(_) => panic!("nothing is in flight"),
        }
    }

    #[test]
    fn guesses_run_out_and_known_rooms_stay_in_reach() {
        let (codes, now) = (RoomCodeLimiter::new(6), Instant::now());
        let (guesser, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        codes.remember(guesser, code("AB23CD"));
        let guess = |address, name, now| misses(&codes, address, Some(code(name)), now);
        assert!((0..MISSING_ROOMS_BURST).all(|_| guess(guesser, "ZZZZZZ", now)));
        assert!(!guess(guesser, "ZZZZZZ", now));
        assert!(!misses(&codes, guesser, None, now), "a code in an unusual spelling");
        assert!(guess(guesser, "AB23CD", now), "a room that was found before");
        assert!(guess(other, "ZZZZZZ", now));
        assert!(guess(guesser, "ZZZZZZ", now + EVERY), "one more after a while");
        assert!(!guess(guesser, "ZZZZZZ", now + EVERY), "and only one");
    }

    #[tokio::test]
    async fn parallel_requests_wait_for_the_tokens_of_the_others() {
        let (codes, address) = (RoomCodeLimiter::new(1), IpAddr::from([10, 0, 0, 1]));
        let check = |name| codes.check(address, Some(code(name)));
        let mut first = Vec::new();
        for _ in 0..MISSING_ROOMS_BURST {
            first.push(check("ZZZZZZ").await.expect("a token"));
        }
        let [mut finds, mut passes, mut fails] =
            ["AB23CD", "AB23CD", "YYYYYY"].map(|name| Box::pin(check(name)));
        assert!((&mut finds).now_or_never().is_none() && (&mut passes).now_or_never().is_none());
        assert!((&mut fails).now_or_never().is_none());
        drop(first.pop());
        let guess = finds.await.expect("the token that came back");
        guess.confirm_found();
        assert!(passes.await.is_ok_and(|guess| !guess.has_token), "the room was found meanwhile");
        let last = check("ZZZZZZ").await.expect("the token of the room that was found");
        first.push(last);
        first.into_iter().for_each(Guess::confirm_missing);
        assert!(fails.await.is_err(), "no token comes back any more");
        assert_eq!(codes.state.lock().clients[&address].in_flight, 0);
    }

    #[tokio::test]
    async fn clients_without_a_wrong_code_are_not_remembered() {
        let (codes, address) = (RoomCodeLimiter::new(6), IpAddr::from([10, 0, 0, 1]));
        drop(codes.check(address, Some(code("AB23CD"))).await);
        assert!(codes.state.lock().clients.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_full_buckets_make_room() {
        let (codes, now) = (RoomCodeLimiter::new(6), Instant::now());
        let guess = |number: u32, now| misses(&codes, IpAddr::from(number.to_be_bytes()), None, now);
        assert!((0..RATE_LIMITED_ADDRESSES_MAX as u32).all(|number| guess(number, now)));
        assert!(!guess(u32::MAX, now), "no bucket is full again");
        assert_eq!(codes.state.lock().clients.len(), RATE_LIMITED_ADDRESSES_MAX);
        assert!(guess(u32::MAX, now + EVERY), "all of them are");
        assert_eq!(codes.state.lock().clients.len(), 1);
        for number in 0..3 * FOUND_ROOMS_REMEMBERED_MAX as u32 {
            codes.remember(IpAddr::from(number.to_be_bytes()), code("AB23CD"));
        }
        let state = codes.state.lock();
        assert!(state.found.len() + state.found_before.len() <= 2 * FOUND_ROOMS_REMEMBERED_MAX);
    }
}
