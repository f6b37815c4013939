//! Open WebSockets per client address, so that one address cannot use up the server's connections.

use crate::limits::SOCKETS_PER_ADDRESS_MAX;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Open WebSockets by address. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ConnectionLimiter(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// An open WebSocket, counted until this is dropped.
pub(crate) struct ConnectionPermit {
    limiter: ConnectionLimiter,
    address: IpAddr,
}

impl ConnectionLimiter {
    /// `None` if the address has reached [`SOCKETS_PER_ADDRESS_MAX`]. Loopback is exempt: a proxy on this
    /// machine connects for all of its clients.
    pub(crate) fn acquire(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let mut open = self.0.lock();
        let count = open.get(&address).copied().unwrap_or(0);
        if count >= SOCKETS_PER_ADDRESS_MAX && !address.is_loopback() {
            return None;
        }
        open.insert(address, count + 1);
        Some(ConnectionPermit { limiter: self.clone(), address })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.0.lock();
        match open.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_of_sockets_and_no_more() {
        let (limiter, address) = (ConnectionLimiter::default(), IpAddr::from([10, 0, 0, 1]));
        let mut open: Vec<ConnectionPermit> =
            (0..SOCKETS_PER_ADDRESS_MAX).filter_map(|_| limiter.acquire(address)).collect();
        assert_eq!(open.len(), SOCKETS_PER_ADDRESS_MAX);
        assert!(limiter.acquire(address).is_none());
        assert!(limiter.acquire(IpAddr::from([10, 0, 0, 2])).is_some());
        open.pop();
        assert!(limiter.acquire(address).is_some(), "one has left");
        drop(open);
        assert!(limiter.0.lock().is_empty(), "addresses without a socket are removed");
    }

    #[test]
    fn a_proxy_on_this_machine_connects_for_many() {
        let (limiter, here) = (ConnectionLimiter::default(), IpAddr::from([127, 0, 0, 1]));
        let open: Vec<Option<ConnectionPermit>> =
            (0..SOCKETS_PER_ADDRESS_MAX + 1).map(|_| limiter.acquire(here)).collect();
        assert!(open.iter().all(Option::is_some));
    }
}
