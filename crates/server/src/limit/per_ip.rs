//! Rate limit per client address for room creation and setup, which need no token and write to the store.

use super::token_bucket::TokenBucket;
use crate::limits::*;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

/// One token bucket per address.
pub(crate) struct PerIpLimiter {
    /// Requests of one address per second, and its burst in proportion; 0 = any number.
    per_second: u32,
    buckets: Mutex<HashMap<IpAddr, TokenBucket>>,
}

impl PerIpLimiter {
    pub(crate) fn new(per_second: u32) -> PerIpLimiter {
        PerIpLimiter { per_second, buckets: Mutex::default() }
    }

    /// Takes a token of an address; `false` if it must wait about a second.
    pub(crate) fn try_take(&self, address: IpAddr) -> bool {
        self.per_second == 0 || self.try_take_at(address, Instant::now())
    }

    fn try_take_at(&self, address: IpAddr, now: Instant) -> bool {
        let mut buckets = self.buckets.lock();
        if buckets.len() >= RATE_LIMITED_ADDRESSES_MAX && !buckets.contains_key(&address) {
            buckets.retain(|_, bucket| !bucket.is_full(now));
            if buckets.len() >= RATE_LIMITED_ADDRESSES_MAX {
                return false;
            }
        }
        let burst = self.per_second.saturating_mul(ROOMS_BURST_SECONDS);
        let bucket = buckets.entry(address).or_insert_with(|| TokenBucket::new(self.per_second, burst, now));
        bucket.try_take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_address_has_its_own_bucket() {
        let (limiter, now) = (PerIpLimiter::new(2), Instant::now());
        let passed = |last: u8| {
            let address = IpAddr::from([10, 0, 0, last]);
            (0..1_000).filter(|_| limiter.try_take_at(address, now)).count()
        };
        let burst = 2 * ROOMS_BURST_SECONDS as usize;
        assert_eq!((passed(1), passed(1), passed(2)), (burst, 0, burst));
        assert!((0..1_000).all(|_| PerIpLimiter::new(0).try_take(IpAddr::from([10, 0, 0, 1]))));
    }

    #[test]
    fn memory_is_bounded_and_full_buckets_make_room() {
        let (limiter, now) = (PerIpLimiter::new(1), Instant::now());
        for number in 0..RATE_LIMITED_ADDRESSES_MAX as u32 {
            assert!(limiter.try_take_at(IpAddr::from(number.to_be_bytes()), now));
        }
        let newcomer = IpAddr::from([255, 0, 0, 1]);
        assert!(!limiter.try_take_at(newcomer, now), "no bucket is full");
        assert!(limiter.try_take_at(newcomer, now + Duration::from_secs(2)));
        assert_eq!(limiter.buckets.lock().len(), 1);
    }
}
