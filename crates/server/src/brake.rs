//! Wrong master keys are answered slower and slower: whoever guesses gets nowhere, whoever mistyped hardly notices.
//!
//! A right key passes at once, whatever others at the same address do: a party sits behind one router. Of a caller's wrong keys
//! one waits for its answer; those that come meanwhile are told to come back later.

use crate::limits::*;
use crate::problem::{Problem, public_text};
use crate::room_codes::LIMITED;
use axum::http::StatusCode;
use emberkeep_games::party::{Error, Master, MasterKey, RoomCode, Rooms};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A room, and the address from which somebody shows keys to it.
type Place = (RoomCode, IpAddr);

/// Wrong keys by where they were shown.
#[derive(Default)]
pub(crate) struct Brake(Mutex<HashMap<Place, Failures>>);

struct Failures {
    count: u32,
    last: Instant,
    /// When the answer to the last one that waits is given.
    answered_at: Instant,
}

/// Why a caller does not lead a room.
pub(crate) enum Refusal {
    Room(Error),
    /// An answer to a wrong key is still waiting.
    TooMany {
        wait: Duration,
    },
    /// The address named too many rooms that do not exist.
    TooManyMissing,
}

impl Refusal {
    /// The stable word, and the sentence for people.
    pub(crate) fn told(&self) -> (&'static str, String) {
        match self {
            Refusal::Room(Error::Store(error)) => (Error::Store(error.clone()).code(), public_text(error)),
            Refusal::Room(error) => (error.code(), error.to_string()),
            Refusal::TooManyMissing => ("rate_limited", LIMITED.into()),
            Refusal::TooMany { .. } => {
                ("rate_limited", "too many wrong master keys; wait, then try again".into())
            }
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Room(error)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let (word, message) = refusal.told();
        match refusal {
            Refusal::Room(error) => error.into(),
            Refusal::TooManyMissing => Problem::new(StatusCode::TOO_MANY_REQUESTS, word, message),
            Refusal::TooMany { wait } => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, word, message).retry_after(wait)
            }
        }
    }
}

impl Brake {
    /// Proof that a caller has a room's key.
    pub(crate) async fn master(
        &self,
        rooms: &Rooms,
        code: RoomCode,
        key: &MasterKey,
        caller: IpAddr,
    ) -> Result<Master, Refusal> {
        let proof = rooms.master(code, key).await;
        if let Err(Error::NotMaster(_)) = proof {
            let wait = self.failed((code, caller), Instant::now());
            let wait = wait.map_err(|wait| Refusal::TooMany { wait })?;
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
        Ok(proof?)
    }

    /// Notes a wrong key. `Ok` = how long its answer waits, `Err` = how long until another is listened to.
    fn failed(&self, place: Place, now: Instant) -> Result<Duration, Duration> {
        let mut known = self.0.lock();
        make_room(&mut known, &place, now);
        let failures = known.entry(place).or_insert(Failures { count: 0, last: now, answered_at: now });
        if now.duration_since(failures.last) >= KEY_FAILURES_REMEMBERED {
            failures.count = 0;
        }
        failures.last = now;
        if failures.answered_at > now {
            return Err(failures.answered_at - now);
        }
        let wait = wait_after(failures.count);
        failures.count = failures.count.saturating_add(1);
        failures.answered_at = now + wait;
        Ok(wait)
    }
}

fn wait_after(failures: u32) -> Duration {
    match failures.checked_sub(KEY_FAILURES_FREE) {
        None => Duration::ZERO,
        Some(beyond) => KEY_WAIT_FIRST.saturating_mul(1 << beyond.min(16)).min(KEY_WAIT_MAX),
    }
}

/// Forgets what is old, and the oldest if that is not enough.
fn make_room(known: &mut HashMap<Place, Failures>, place: &Place, now: Instant) {
    if known.len() < KEY_FAILURES_REMEMBERED_MAX || known.contains_key(place) {
        return;
    }
    known.retain(|_, failures| now.duration_since(failures.last) < KEY_FAILURES_REMEMBERED);
    if known.len() >= KEY_FAILURES_REMEMBERED_MAX {
        let oldest = known.iter().min_by_key(|(_, failures)| failures.last).map(|(place, _)| *place);
        oldest.and_then(|oldest| known.remove(&oldest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn somebody(last: u8) -> Place {
        (RoomCode::new("AB23CD").unwrap(), IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn waits_grow_to_a_bound_and_are_of_one_caller() {
        let (brake, mut now) = (Brake::default(), Instant::now());
        let waits: Vec<u128> = (0..12)
            .map(|_| {
                let wait = brake.failed(somebody(1), now).unwrap();
                now += wait;
                wait.as_millis()
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000]);
        assert_eq!(brake.failed(somebody(2), now), Ok(Duration::ZERO));
        assert_eq!(brake.failed(somebody(1), now + KEY_FAILURES_REMEMBERED), Ok(Duration::ZERO));
    }

    #[test]
    fn one_wrong_key_waits_and_the_others_are_sent_away() {
        let (brake, now) = (Brake::default(), Instant::now());
        let answers: Vec<_> = (0..60).map(|_| brake.failed(somebody(1), now)).collect();
        assert_eq!(
            answers.iter().filter(|answer| answer.is_ok()).count(),
            4,
            "three free ones, and one that waits"
        );
        assert_eq!(answers[59], Err(KEY_WAIT_FIRST));
    }

    #[test]
    fn memory_is_bounded() {
        let (brake, now) = (Brake::default(), Instant::now());
        for number in 0..KEY_FAILURES_REMEMBERED_MAX as u32 + 100 {
            let place = (somebody(0).0, IpAddr::from(number.to_be_bytes()));
            let _ = brake.failed(place, now + Duration::from_millis(u64::from(number)));
        }
        assert_eq!(brake.0.lock().len(), KEY_FAILURES_REMEMBERED_MAX);
    }
}
