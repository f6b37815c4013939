//! How many sockets each address has: one that opens more than its share does not take them from the others.

use crate::limits::SOCKETS_PER_ADDRESS_MAX;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Open sockets by address.
#[derive(Clone, Default)]
pub(super) struct Crowd(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A socket that is counted until this is dropped.
pub(super) struct Counted {
    crowd: Crowd,
    address: IpAddr,
}

impl Crowd {
    /// Counts one more socket of an address; `None` if it has as many as it may have. A proxy on this machine speaks for
    /// everybody behind it, so that sockets from here are not refused.
    pub(super) fn admit(&self, address: IpAddr) -> Option<Counted> {
        let mut open = self.0.lock();
        let count = open.get(&address).copied().unwrap_or(0);
        if count >= SOCKETS_PER_ADDRESS_MAX && !address.is_loopback() {
            return None;
        }
        open.insert(address, count + 1);
        Some(Counted { crowd: self.clone(), address })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.crowd.0.lock();
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
        let (crowd, address) = (Crowd::default(), IpAddr::from([10, 0, 0, 1]));
        let mut open: Vec<Counted> =
            (0..SOCKETS_PER_ADDRESS_MAX).filter_map(|_| crowd.admit(address)).collect();
        assert_eq!(open.len(), SOCKETS_PER_ADDRESS_MAX);
        assert!(crowd.admit(address).is_none() && crowd.admit(IpAddr::from([10, 0, 0, 2])).is_some());
        open.pop();
        assert!(crowd.admit(address).is_some(), "one has left");
        drop(open);
        assert!(crowd.0.lock().is_empty(), "who has none is not remembered");
    }

    #[test]
    fn a_proxy_on_this_machine_speaks_for_many() {
        let (crowd, here) = (Crowd::default(), IpAddr::from([127, 0, 0, 1]));
        let open: Vec<Option<Counted>> =
            (0..SOCKETS_PER_ADDRESS_MAX + 1).map(|_| crowd.admit(here)).collect();
        assert!(open.iter().all(Option::is_some));
    }
}
