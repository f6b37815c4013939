//! How many rooms an address may create and set up: what needs no token must not fill the store.

use crate::limits::*;
use crate::pace::Pace;
use crate::problem::Problem;
use axum::http::StatusCode;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The pace of each address.
pub(crate) struct Throttle {
    /// 0 = as many as they like.
    per_second: u32,
    callers: Mutex<HashMap<IpAddr, Pace>>,
}

impl Throttle {
    pub(crate) fn new(per_second: u32) -> Throttle {
        Throttle { per_second, callers: Mutex::default() }
    }

    /// Refuses a caller who is ahead of its pace.
    pub(crate) fn pass(&self, caller: IpAddr) -> Result<(), Problem> {
        if self.per_second == 0 || self.allows(caller, Instant::now()) {
            return Ok(());
        }
        let message = "too many rooms created or set up from this address; wait, then try again";
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
        Err(problem.retry_after(Duration::from_secs(1)))
    }

    fn allows(&self, caller: IpAddr, now: Instant) -> bool {
        let mut callers = self.callers.lock();
        if callers.len() >= CALLERS_PACED_MAX && !callers.contains_key(&caller) {
            // Who is back at a full bucket is as good as new.
            callers.retain(|_, pace| !pace.is_rested(now));
            if callers.len() >= CALLERS_PACED_MAX {
                return false;
            }
        }
        let burst = self.per_second.saturating_mul(ROOMS_BURST_SECONDS);
        callers.entry(caller).or_insert_with(|| Pace::new(self.per_second, burst, now)).allows(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_own_pace() {
        let (throttle, now) = (Throttle::new(2), Instant::now());
        let passed = |last: u8| {
            let caller = IpAddr::from([10, 0, 0, last]);
            (0..1_000).filter(|_| throttle.allows(caller, now)).count()
        };
        let burst = 2 * ROOMS_BURST_SECONDS as usize;
        assert_eq!((passed(1), passed(1), passed(2)), (burst, 0, burst));
        assert!((0..1_000).all(|_| Throttle::new(0).pass(IpAddr::from([10, 0, 0, 1])).is_ok()));
    }

    #[test]
    fn memory_is_bounded_and_rested_callers_make_room() {
        let (throttle, now) = (Throttle::new(1), Instant::now());
        for number in 0..CALLERS_PACED_MAX as u32 {
            assert!(throttle.allows(IpAddr::from(number.to_be_bytes()), now));
        }
        let newcomer = IpAddr::from([255, 0, 0, 1]);
        assert!(!throttle.allows(newcomer, now), "nobody has rested");
        assert!(throttle.allows(newcomer, now + Duration::from_secs(2)));
        assert_eq!(throttle.callers.lock().len(), 1);
    }
}
