//! Memory of request bodies that have arrived in part, limited in total and per client address.
//!
//! A body that arrives in one piece is never counted: it is handled before anything else is read. Loopback is
//! limited by the total only, because a proxy on this machine forwards for all of its clients.

use crate::limits::{BODIES_BYTES_MAX, BODIES_BYTES_PER_ADDRESS_MAX};
use crate::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of partial bodies by address.
pub(crate) struct PartialBodies {
    metrics: Arc<Metrics>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// The bytes of one partial body, counted until this is dropped.
pub(crate) struct BodyReservation<'a> {
    bodies: &'a PartialBodies,
    address: IpAddr,
    bytes: usize,
}

/// Which limit a body would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLimit {
    Address,
    Total,
}

impl PartialBodies {
    pub(crate) fn new(metrics: Arc<Metrics>) -> PartialBodies {
        PartialBodies { metrics, by_address: Mutex::default() }
    }

    /// A reservation without bytes; [`grow`](BodyReservation::grow) adds what arrives.
    pub(crate) fn reserve(&self, address: IpAddr) -> BodyReservation<'_> {
        BodyReservation { bodies: self, address, bytes: 0 }
    }
}

impl BodyReservation<'_> {
    /// Adds bytes to the reservation. On error nothing is added, and the refusal is counted.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), BodyLimit> {
        let counters = &self.bodies.metrics.limits;
        let mut by_address = self.bodies.by_address.lock();
        let of_address = by_address.get(&self.address).copied().unwrap_or(0) + bytes;
        let exceeded = if of_address > BODIES_BYTES_PER_ADDRESS_MAX && !self.address.is_loopback() {
            BodyLimit::Address
        } else if counters.body_bytes.load(Relaxed) + bytes as i64 > BODIES_BYTES_MAX as i64 {
            BodyLimit::Total
        } else {
            by_address.insert(self.address, of_address);
            counters.body_bytes.fetch_add(bytes as i64, Relaxed);
            self.bytes += bytes;
            return Ok(());
        };
        counters.bodies_refused.fetch_add(1, Relaxed);
        Err(exceeded)
    }
}

impl Drop for BodyReservation<'_> {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.bodies.metrics.limits.body_bytes.fetch_sub(self.bytes as i64, Relaxed);
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
    fn an_address_has_its_share_of_bytes_and_all_have_a_total() {
        let metrics = Arc::new(Metrics::default());
        let bodies = PartialBodies::new(metrics.clone());
        let from = |last: u8| bodies.reserve(IpAddr::from([10, 0, 0, last]));
        let (mut first, mut second) = (from(1), from(1));
        first.grow(BODIES_BYTES_PER_ADDRESS_MAX).unwrap();
        assert_eq!(second.grow(1), Err(BodyLimit::Address));
        let addresses = (BODIES_BYTES_MAX / BODIES_BYTES_PER_ADDRESS_MAX) as u8;
        let all: Vec<BodyReservation<'_>> = (2..=addresses)
            .map(|last| {
                let mut reservation = from(last);
                reservation.grow(BODIES_BYTES_PER_ADDRESS_MAX).unwrap();
                reservation
            })
            .collect();
        let mut here = bodies.reserve(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(here.grow(1), Err(BodyLimit::Total), "loopback counts in the total");
        drop(first);
        here.grow(BODIES_BYTES_PER_ADDRESS_MAX).unwrap();
        drop((all, here, second));
        assert_eq!(metrics.limits.body_bytes.load(Relaxed), 0);
        assert!(bodies.by_address.lock().is_empty());
    }
}
