//! Wrong master keys are answered slower and slower: whoever guesses gets nowhere, whoever mistyped hardly notices.

use crate::limits::*;
use emberkeep_games::party::{Error, Master, MasterKey, RoomCode, Rooms};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Who failed where, how often, and when last.
#[derive(Default)]
pub(crate) struct Brake(Mutex<HashMap<(RoomCode, IpAddr), (u32, Instant)>>);

impl Brake {
    /// Proof that a caller has a room's key.
    pub(crate) async fn master(
        &self,
        rooms: &Rooms,
        code: RoomCode,
        key: &MasterKey,
        caller: IpAddr,
    ) -> Result<Master, Error> {
        let wait = self.wait((code, caller), Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let proof = rooms.master(code, key).await;
        match &proof {
            Err(Error::NotMaster(_)) => self.failed((code, caller), Instant::now()),
            Ok(_) => drop(self.0.lock().remove(&(code, caller))),
            Err(_) => {}
        }
        proof
    }

    fn wait(&self, who: (RoomCode, IpAddr), now: Instant) -> Duration {
        let failures = match self.0.lock().get(&who) {
            Some((failures, last)) if now.duration_since(*last) < KEY_FAILURES_REMEMBERED => *failures,
            _ => 0,
        };
        match failures.checked_sub(KEY_FAILURES_FREE) {
            None => Duration::ZERO,
            Some(beyond) => KEY_WAIT_FIRST.saturating_mul(1 << beyond.min(16)).min(KEY_WAIT_MAX),
        }
    }

    fn failed(&self, who: (RoomCode, IpAddr), now: Instant) {
        let mut known = self.0.lock();
        if known.len() >= KEY_FAILURES_REMEMBERED_MAX && !known.contains_key(&who) {
            known.retain(|_, (_, last)| now.duration_since(*last) < KEY_FAILURES_REMEMBERED);
        }
        if known.len() >= KEY_FAILURES_REMEMBERED_MAX {
            let oldest = known.iter().min_by_key(|(_, (_, last))| *last).map(|(who, _)| *who);
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        let (failures, last) = known.entry(who).or_insert((0, now));
        (*failures, *last) = (failures.saturating_add(1), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn somebody(last: u8) -> (RoomCode, IpAddr) {
        (RoomCode::new("AB23CD").unwrap(), IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn waits_grow_to_a_bound_and_are_of_one_caller() {
        let (brake, now) = (Brake::default(), Instant::now());
        let waits: Vec<u128> = (0..12)
            .map(|_| {
                let wait = brake.wait(somebody(1), now).as_millis();
                brake.failed(somebody(1), now);
                wait
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000]);
        assert_eq!(brake.wait(somebody(2), now), Duration::ZERO);
        assert_eq!(brake.wait(somebody(1), now + KEY_FAILURES_REMEMBERED), Duration::ZERO);
    }

    #[test]
    fn memory_is_bounded() {
        let (brake, now) = (Brake::default(), Instant::now());
        for number in 0..KEY_FAILURES_REMEMBERED_MAX as u32 + 100 {
            let who = (somebody(0).0, IpAddr::from(number.to_be_bytes()));
            brake.failed(who, now + Duration::from_millis(u64::from(number)));
        }
        assert_eq!(brake.0.lock().len(), KEY_FAILURES_REMEMBERED_MAX);
    }
}
