//! Room codes are short, so that guessing must be slow: an address may name only so many rooms that do not exist.
//!
//! A token bucket per address pays for each missing room. A request takes its token before it is served, so that parallel guesses do
//! not pass the limit, and gives it back unless the room is missing. While all tokens are taken and some may come back, requests wait.
//! While the bucket is empty, the address reaches only the rooms that it has found or created before: those who play behind the same
//! router go on. Services with a token are not limited.

mod layer;

pub(crate) use layer::LimitRoomCodes;

use crate::limits::*;
use crate::pace::Pace;
use emberkeep_games::party::RoomCode;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The stable word for a room that does not exist.
const MISSING: &str = "room_not_found";

/// What a limited caller hears.
pub(crate) const LIMITED: &str =
    "too many rooms that do not exist were named from this address; wait, then try again";

/// Which rooms addresses have found, and how many they have missed.
pub(crate) struct RoomCodes {
    /// Time for one missing room; `None` = any number.
    every: Option<Duration>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    callers: HashMap<IpAddr, Caller>,
    /// When the callers with a full bucket were last removed from a full table.
    purged_at: Option<Instant>,
    /// Two generations, so that the memory is bounded without a search for the oldest.
    found: HashSet<(IpAddr, RoomCode)>,
    found_before: HashSet<(IpAddr, RoomCode)>,
}

/// An address that has missed rooms, or has requests that may.
struct Caller {
    pace: Pace,
    /// Requests that have a token and no answer yet.
    in_flight: usize,
    /// Wakes requests that wait for a token.
    settled: Arc<Notify>,
}

/// What becomes of a request.
enum Checked<'a> {
    Passed(Guess<'a>),
    Refused,
    /// Other requests of the address have the last tokens and may give them back.
    Wait(OwnedNotified),
}

/// A request that may name a room. Dropped without a word, it gives its token back: the caller has learnt nothing.
#[must_use]
pub(crate) struct Guess<'a> {
    codes: &'a RoomCodes,
    address: IpAddr,
    code: Option<RoomCode>,
    has_token: bool,
}

impl Guess<'_> {
    /// The room does not exist: the token is spent.
    pub(crate) fn missed(mut self) {
        self.settle(false);
    }

    /// The room exists.
    pub(crate) fn found(self) {
        if let Some(code) = self.code {
            self.codes.found(self.address, code);
        }
    }

    fn settle(&mut self, gives_back: bool) {
        if std::mem::take(&mut self.has_token) {
            self.codes.known.lock().settle(self.address, gives_back, Instant::now());
        }
    }
}

impl Drop for Guess<'_> {
    fn drop(&mut self) {
        self.settle(true);
    }
}

impl RoomCodes {
    /// Limits to so many missing rooms per minute; 0 is any number.
    pub(crate) fn new(per_minute: u32) -> RoomCodes {
        let every = (per_minute > 0).then(|| Duration::from_secs(60) / per_minute.max(1));
        RoomCodes { every, known: Mutex::default() }
    }

    /// Lets an address name a room; the error is how long it waits before it tries again.
    pub(crate) async fn check(&self, address: IpAddr, code: Option<RoomCode>) -> Result<Guess<'_>, Duration> {
        let Some(every) = self.every else {
            return Ok(Guess { codes: self, address, code, has_token: false });
        };
        loop {
            match self.check_at(address, code, every, Instant::now()) {
                Checked::Passed(guess) => return Ok(guess),
                Checked::Refused => return Err(every),
                Checked::Wait(settled) => settled.await,
            }
        }
    }

    fn check_at(
        &self,
        address: IpAddr,
        code: Option<RoomCode>,
        every: Duration,
        now: Instant,
    ) -> Checked<'_> {
        let mut known = self.known.lock();
        if code.is_some_and(|code| known.has_found(address, code)) {
            return Checked::Passed(Guess { codes: self, address, code, has_token: false });
        }
        let Some(caller) = known.caller(address, every, now) else { return Checked::Refused };
        if caller.pace.allows(now) {
            caller.in_flight += 1;
            return Checked::Passed(Guess { codes: self, address, code, has_token: true });
        }
        // Made under the lock, it hears of everything that is settled after it.
        let wait = || Checked::Wait(caller.settled.clone().notified_owned());
        if caller.in_flight > 0 { wait() } else { Checked::Refused }
    }

    /// Notes a room that exists, for the address that has found or created it.
    pub(crate) fn found(&self, address: IpAddr, code: RoomCode) {
        if self.every.is_none() {
            return;
        }
        let mut known = self.known.lock();
        if known.found.len() >= FOUND_ROOMS_REMEMBERED_MAX {
            known.found_before = std::mem::take(&mut known.found);
        }
        known.found.insert((address, code));
    }
}

impl Known {
    fn has_found(&self, address: IpAddr, code: RoomCode) -> bool {
        self.found.contains(&(address, code)) || self.found_before.contains(&(address, code))
    }

    /// The bucket of an address; `None` if the table is full.
    fn caller(&mut self, address: IpAddr, every: Duration, now: Instant) -> Option<&mut Caller> {
        if self.callers.len() >= CALLERS_PACED_MAX && !self.callers.contains_key(&address) {
            self.purge(now);
            if self.callers.len() >= CALLERS_PACED_MAX {
                return None;
            }
        }
        Some(self.callers.entry(address).or_insert_with(|| Caller {
            pace: Pace::every(every, MISSING_ROOMS_BURST, now),
            in_flight: 0,
            settled: Arc::default(),
        }))
    }

    /// Removes callers with a full bucket, who are as good as new. Not with every request: the search is long.
    fn purge(&mut self, now: Instant) {
        if self.purged_at.is_none_or(|at| now >= at + CALLERS_PURGED_EVERY) {
            self.purged_at = Some(now);
            self.callers.retain(|_, caller| caller.in_flight > 0 || !caller.pace.is_rested(now));
        }
    }

    /// A request with a token was answered, or is gone.
    fn settle(&mut self, address: IpAddr, gives_back: bool, now: Instant) {
        let Some(caller) = self.callers.get_mut(&address) else { return };
        caller.in_flight = caller.in_flight.saturating_sub(1);
        if gives_back {
            caller.pace.give_back();
        }
        // Without a token to come, those who wait are refused.
        if gives_back || caller.in_flight == 0 {
            caller.settled.notify_waiters();
        }
        if caller.in_flight == 0 && caller.pace.is_rested(now) {
            self.callers.remove(&address);
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
    fn misses(codes: &RoomCodes, address: IpAddr, code: Option<RoomCode>, now: Instant) -> bool {
        match codes.check_at(address, code, EVERY, now) {
            Checked::Passed(guess) => {
                guess.missed();
                true
            }
            Checked::Refused => false,
            Checked::Wait(_) => panic!("nothing is in flight"),
        }
    }

    #[test]
    fn guesses_run_out_and_rooms_that_were_found_stay_in_reach() {
        let (codes, now) = (RoomCodes::new(6), Instant::now());
        let (guesser, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        codes.found(guesser, code("AB23CD"));
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
        let (codes, address) = (RoomCodes::new(1), IpAddr::from([10, 0, 0, 1]));
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
        guess.found();
        assert!(passes.await.is_ok_and(|guess| !guess.has_token), "the room was found meanwhile");
        let last = check("ZZZZZZ").await.expect("the token of the room that was found");
        first.push(last);
        first.into_iter().for_each(Guess::missed);
        assert!(fails.await.is_err(), "no token comes back any more");
        assert_eq!(codes.known.lock().callers[&address].in_flight, 0);
    }

    #[tokio::test]
    async fn callers_who_miss_nothing_are_not_remembered() {
        let (codes, address) = (RoomCodes::new(6), IpAddr::from([10, 0, 0, 1]));
        drop(codes.check(address, Some(code("AB23CD"))).await);
        assert!(codes.known.lock().callers.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_rested_callers_make_room() {
        let (codes, now) = (RoomCodes::new(6), Instant::now());
        let guess = |number: u32, now| misses(&codes, IpAddr::from(number.to_be_bytes()), None, now);
        assert!((0..CALLERS_PACED_MAX as u32).all(|number| guess(number, now)));
        assert!(!guess(u32::MAX, now), "no bucket is full again");
        assert_eq!(codes.known.lock().callers.len(), CALLERS_PACED_MAX);
        assert!(guess(u32::MAX, now + EVERY), "all of them are");
        assert_eq!(codes.known.lock().callers.len(), 1);
        for number in 0..3 * FOUND_ROOMS_REMEMBERED_MAX as u32 {
            codes.found(IpAddr::from(number.to_be_bytes()), code("AB23CD"));
        }
        let known = codes.known.lock();
        assert!(known.found.len() + known.found_before.len() <= 2 * FOUND_ROOMS_REMEMBERED_MAX);
    }
}
