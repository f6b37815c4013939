//! Exponential backoff after wrong master keys, against brute force.
//!
//! A correct key passes at once, also when other clients behind the same router send wrong ones. One wrong
//! key of an address and room at a time waits for its answer; those that arrive meanwhile are refused at
//! once.

use crate::limits::*;
use emberkeep_games::party::{Error, Master, MasterKey, RoomCode, Rooms};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Failures are counted per room and client address.
type Attempt = (RoomCode, IpAddr);

#[derive(Default)]
pub(crate) struct LoginBackoff(Mutex<HashMap<Attempt, Failures>>);

struct Failures {
    count: u32,
    last: Instant,
    /// When the delayed answer to the latest wrong key is due.
    answer_at: Instant,
}

/// Why a caller is not accepted as a room's master.
pub(crate) enum Refusal {
    Room(Error),
    /// An earlier wrong key still waits for its answer.
    Backoff {
        wait: Duration,
    },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Room(error)
    }
}

impl LoginBackoff {
    /// Verifies a master key. The answer to a wrong key is delayed.
    pub(crate) async fn verify_master(
        &self,
        rooms: &Rooms,
        code: RoomCode,
        key: &MasterKey,
        address: IpAddr,
    ) -> Result<Master, Refusal> {
        let verified = rooms.master(code, key).await;
        if let Err(Error::NotMaster(_)) = verified {
            let wait = self.record_failure((code, address), Instant::now());
            let wait = wait.map_err(|wait| Refusal::Backoff { wait })?;
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
        Ok(verified?)
    }

    /// `Ok` = the delay of this answer, `Err` = how long until another key is accepted.
    fn record_failure(&self, attempt: Attempt, now: Instant) -> Result<Duration, Duration> {
        let mut all = self.0.lock();
        make_room(&mut all, &attempt, now);
        let failures = all.entry(attempt).or_insert(Failures { count: 0, last: now, answer_at: now });
        if now.duration_since(failures.last) >= KEY_FAILURES_REMEMBERED {
            failures.count = 0;
        }
        failures.last = now;
        if failures.answer_at > now {
            return Err(failures.answer_at - now);
        }
        let wait = delay_after(failures.count);
        failures.count = failures.count.saturating_add(1);
        failures.answer_at = now + wait;
        Ok(wait)
    }
}

fn delay_after(failures: u32) -> Duration {
    match failures.checked_sub(KEY_FAILURES_FREE) {
        None => Duration::ZERO,
        Some(beyond) => KEY_DELAY_FIRST.saturating_mul(1 << beyond.min(16)).min(KEY_DELAY_MAX),
    }
}

/// Removes expired entries from a full table, and the oldest one if none is expired.
fn make_room(all: &mut HashMap<Attempt, Failures>, attempt: &Attempt, now: Instant) {
    if all.len() < KEY_FAILURES_REMEMBERED_MAX || all.contains_key(attempt) {
        return;
    }
    all.retain(|_, failures| now.duration_since(failures.last) < KEY_FAILURES_REMEMBERED);
    if all.len() >= KEY_FAILURES_REMEMBERED_MAX {
        let oldest = all.iter().min_by_key(|(_, failures)| failures.last).map(|(attempt, _)| *attempt);
        oldest.and_then(|oldest| all.remove(&oldest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(last: u8) -> Attempt {
        (RoomCode::new("AB23CD").unwrap(), IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn delays_grow_to_a_bound_and_are_of_one_address() {
        let (backoff, mut now) = (LoginBackoff::default(), Instant::now());
        let delays: Vec<u128> = (0..12)
            .map(|_| {
                let wait = backoff.record_failure(from(1), now).unwrap();
                now += wait;
                wait.as_millis()
            })
            .collect();
        assert_eq!(delays, [0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000]);
        assert_eq!(backoff.record_failure(from(2), now), Ok(Duration::ZERO));
        assert_eq!(backoff.record_failure(from(1), now + KEY_FAILURES_REMEMBERED), Ok(Duration::ZERO));
    }

    #[test]
    fn one_wrong_key_waits_and_the_others_are_refused() {
        let (backoff, now) = (LoginBackoff::default(), Instant::now());
        let answers: Vec<_> = (0..60).map(|_| backoff.record_failure(from(1), now)).collect();
        let served = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(served, 4, "three free ones, and one that waits");
        assert_eq!(answers[59], Err(KEY_DELAY_FIRST));
    }

    #[test]
    fn memory_is_bounded() {
        let (backoff, now) = (LoginBackoff::default(), Instant::now());
        for number in 0..KEY_FAILURES_REMEMBERED_MAX as u32 + 100 {
            let attempt = (from(0).0, IpAddr::from(number.to_be_bytes()));
            let _ = backoff.record_failure(attempt, now + Duration::from_millis(u64::from(number)));
        }
        assert_eq!(backoff.0.lock().len(), KEY_FAILURES_REMEMBERED_MAX);
    }
}
