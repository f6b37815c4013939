//! Fairness leases: a process that keeps losing conflicts on a key gets a short lease on it.
//!
//! The script grants a lease with a stale answer, so that the next commit on the key is the owner's. That
//! commit ends the lease. A transaction that does not commit after all, or not on that key, must not keep
//! other processes waiting until the lease expires: the last transaction that relies on it releases it.

use emberkeep_hot::command::RawKey;
use emberkeep_schema::KeyLayout;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The leases of one partition's transactions.
#[derive(Default)]
pub(crate) struct LeaseRegistry {
    /// How many transactions rely on each lease.
    owners: Mutex<HashMap<RawKey, usize>>,
    /// Leases that no transaction relies on any more.
    unneeded: Mutex<Vec<RawKey>>,
}

impl LeaseRegistry {
    /// The leases to release.
    pub(crate) fn take_unneeded(&self) -> Vec<RawKey> {
        std::mem::take(&mut *self.unneeded.lock())
    }
}

/// The keys that one transaction may have a lease on.
#[derive(Default)]
pub(crate) struct Leases {
    registry: Option<Arc<LeaseRegistry>>,
    keys: Vec<RawKey>,
}

impl Leases {
    /// The transaction may have been granted a lease on this key.
    pub(crate) fn add(&mut self, registry: &Arc<LeaseRegistry>, key: &RawKey) {
        if self.keys.contains(key) {
            return;
        }
        self.registry = Some(registry.clone());
        self.keys.push(key.clone());
        *registry.owners.lock().entry(key.clone()).or_default() += 1;
    }

    pub(crate) fn keys(&self) -> &[RawKey] {
        &self.keys
    }

    /// A commit has ended all of them.
    pub(crate) fn end(&mut self) {
        self.leave();
    }

    /// Leaves the registry. Returns the keys that no other transaction relies on.
    fn leave(&mut self) -> Vec<RawKey> {
        let (Some(registry), keys) = (self.registry.take(), std::mem::take(&mut self.keys)) else {
            return vec![];
        };
        let mut owners = registry.owners.lock();
        let is_last = |key: &RawKey| match owners.get_mut(key) {
            Some(count @ 2..) => {
                *count -= 1;
                false
            }
            _ => owners.remove(key).is_some(),
        };
        keys.into_iter().filter(is_last).collect()
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        let registry = self.registry.clone();
        let unneeded = self.leave();
        registry.iter().for_each(|registry| registry.unneeded.lock().extend(unneeded.iter().cloned()));
    }
}

/// The key of a lease, `ember:turn:<key>`, in the key's slot.
pub(crate) fn lease_key(layout: &KeyLayout, partition: &[u8], key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + partition.len() + 16);
    layout.write_own(partition, b"turn:", &mut out);
    out.extend_from_slice(key);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_owner_releases_a_lease_unless_a_commit_ended_it() {
        let (registry, key) = (Arc::<LeaseRegistry>::default(), RawKey::from_static(b"k"));
        let (mut one, mut two) = (Leases::default(), Leases::default());
        one.add(&registry, &key);
        one.add(&registry, &key);
        two.add(&registry, &key);
        drop(one);
        assert!(registry.take_unneeded().is_empty(), "another transaction relies on it");
        drop(two);
        assert_eq!(registry.take_unneeded(), std::slice::from_ref(&key));
        let mut three = Leases::default();
        three.add(&registry, &key);
        three.end();
        drop(three);
        assert!(registry.take_unneeded().is_empty() && registry.owners.lock().is_empty());
    }
}
