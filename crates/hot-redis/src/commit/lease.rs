//! Leases that a partition's transactions may have: given back by the last of them, whatever becomes of it.
//!
//! A lease is granted with a stale answer, so that the next commit on the key is its owner's. That commit ends it. A
//! transaction that does not commit after all, or not on that key, must not keep others waiting until the lease ends.

use emberkeep_hot::command::RawKey;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The leases of one partition's transactions.
#[derive(Default)]
pub(crate) struct LeaseRegistry {
    /// How many transactions rely on each.
    owners: Mutex<HashMap<RawKey, usize>>,
    /// Those that nobody relies on any more.
    unneeded: Mutex<Vec<RawKey>>,
}

impl LeaseRegistry {
    /// The leases to give back.
    pub(crate) fn take_unneeded(&self) -> Vec<RawKey> {
        std::mem::take(&mut *self.unneeded.lock())
    }
}

/// The keys that one transaction may have a lease on.
#[derive(Default)]
pub(crate) struct Leases {
    book: Option<Arc<LeaseRegistry>>,
    keys: Vec<RawKey>,
}

impl Leases {
    /// The transaction may have been granted one.
    pub(crate) fn add(&mut self, book: &Arc<LeaseRegistry>, key: &RawKey) {
        if self.keys.contains(key) {
            return;
        }
        self.book = Some(book.clone());
        self.keys.push(key.clone());
        *book.owners.lock().entry(key.clone()).or_default() += 1;
    }

    /// The keys.
    pub(crate) fn keys(&self) -> &[RawKey] {
        &self.keys
    }

    /// A commit has ended them all.
    pub(crate) fn ended(&mut self) {
        self.leave();
    }

    /// Leaves the book. Answers the keys that nobody else relies on.
    fn leave(&mut self) -> Vec<RawKey> {
        let (Some(book), keys) = (self.book.take(), std::mem::take(&mut self.keys)) else { return vec![] };
        let mut owners = book.owners.lock();
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
        let book = self.book.clone();
        let unneeded = self.leave();
        book.iter().for_each(|book| book.unneeded.lock().extend(unneeded.iter().cloned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_owner_gives_a_lease_back_unless_a_commit_ended_it() {
        let (book, key) = (Arc::<LeaseRegistry>::default(), RawKey::from_static(b"k"));
        let (mut one, mut two) = (Leases::default(), Leases::default());
        one.add(&book, &key);
        one.add(&book, &key);
        two.add(&book, &key);
        drop(one);
        assert!(book.take_unneeded().is_empty(), "another transaction relies on it");
        drop(two);
        assert_eq!(book.take_unneeded(), std::slice::from_ref(&key));
        let mut three = Leases::default();
        three.add(&book, &key);
        three.ended();
        drop(three);
        assert!(book.take_unneeded().is_empty() && book.owners.lock().is_empty());
    }
}
