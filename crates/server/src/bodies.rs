//! Bytes of request bodies of which a part is still to come: bounded in sum and by address.
//!
//! A body that arrives at once is never counted: it is answered before anything else is read. A proxy on this machine speaks for all of
//! its clients, so that loopback is bounded by the sum only.

use crate::limits::{BODIES_BYTES_MAX, BODIES_BYTES_PER_ADDRESS_MAX};
use crate::metrics::Metrics;
use crate::problem::Problem;
use axum::http::StatusCode;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// When to try again: bodies that do not arrive are given up within a minute, others leave at once.
const RETRY: Duration = Duration::from_secs(1);

/// The bytes by address.
pub(crate) struct Bodies {
    metrics: Arc<Metrics>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// The bytes of one body, counted until this is dropped.
pub(crate) struct Held<'a> {
    bodies: &'a Bodies,
    address: IpAddr,
    bytes: usize,
}

impl Bodies {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Bodies {
        Bodies { metrics, by_address: Mutex::default() }
    }

    /// A body of which nothing was counted yet.
    pub(crate) fn hold(&self, address: IpAddr) -> Held<'_> {
        Held { bodies: self, address, bytes: 0 }
    }
}

impl Held<'_> {
    /// Counts further bytes of the body, or says that there is no room for them.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        let bounds = &self.bodies.metrics.bounds;
        let mut by_address = self.bodies.by_address.lock();
        let of_address = by_address.get(&self.address).copied().unwrap_or(0) + bytes;
        let problem = if of_address > BODIES_BYTES_PER_ADDRESS_MAX && !self.address.is_loopback() {
            let message = "too many unfinished requests from this address; wait, then try again";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
        } else if bounds.body_bytes.load(Relaxed) + bytes as i64 > BODIES_BYTES_MAX as i64 {
            let message = "too many unfinished requests; wait, then try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
        } else {
            by_address.insert(self.address, of_address);
            bounds.body_bytes.fetch_add(bytes as i64, Relaxed);
            self.bytes += bytes;
            return Ok(());
        };
        bounds.bodies_refused.fetch_add(1, Relaxed);
        Err(problem.retry_after(RETRY))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.bodies.metrics.bounds.body_bytes.fetch_sub(self.bytes as i64, Relaxed);
        let mut by_address = self.bodies.by_address.lock();
        match by_address.get_mut(&self.address) {
            Some(bytes) if *bytes > self.bytes => *bytes -= self.bytes,
            _ => drop(by_address.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_of_bytes_and_all_have_a_sum() {
        let metrics = Arc::new(Metrics::default());
        let bodies = Bodies::new(metrics.clone());
        let from = |last: u8| bodies.hold(IpAddr::from([10, 0, 0, last]));
        let (mut first, mut second) = (from(1), from(1));
        first.add(BODIES_BYTES_PER_ADDRESS_MAX).unwrap();
        assert_eq!(second.add(1).unwrap_err().status(), 429);
        let addresses = (BODIES_BYTES_MAX / BODIES_BYTES_PER_ADDRESS_MAX) as u8;
        let all: Vec<Held<'_>> = (2..=addresses)
            .map(|last| {
                let mut held = from(last);
                held.add(BODIES_BYTES_PER_ADDRESS_MAX).unwrap();
                held
            })
            .collect();
        let mut here = bodies.hold(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(here.add(1).unwrap_err().status(), 503, "loopback counts in the sum");
        drop(first);
        here.add(BODIES_BYTES_PER_ADDRESS_MAX).unwrap();
        drop((all, here, second));
        assert_eq!(metrics.bounds.body_bytes.load(Relaxed), 0);
        assert!(bodies.by_address.lock().is_empty());
    }
}
