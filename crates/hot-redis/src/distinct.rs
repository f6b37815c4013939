//! A list without repetitions, in which a transaction of two reads and one of a thousand are both found fast.

use emberkeep_hot::command::{RawKey, Read, Reply};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};

/// Up to here looking at each one is the faster way.
const LOOK_AT_EACH_MAX: usize = 16;

/// What is told apart by a name.
pub(crate) trait Named {
    /// What tells it apart.
    type Name<'a>: Hash + PartialEq
    where
        Self: 'a;

    fn name(&self) -> Self::Name<'_>;

    /// Whether another one of the same name says the same.
    fn agrees(&self, _other: &Self) -> bool {
        true
    }
}

impl Named for (RawKey, Read, Reply) {
    type Name<'a> = (&'a RawKey, &'a Read);

    fn name(&self) -> Self::Name<'_> {
        (&self.0, &self.1)
    }

    fn agrees(&self, other: &Self) -> bool {
        self.2 == other.2
    }
}

impl Named for (RawKey, Read) {
    type Name<'a> = (&'a RawKey, &'a Read);

    fn name(&self) -> Self::Name<'_> {
        (&self.0, &self.1)
    }
}

impl Named for RawKey {
    type Name<'a> = &'a RawKey;

    fn name(&self) -> Self::Name<'_> {
        self
    }
}

/// Items in the order in which they came, each name once.
pub(crate) struct Distinct<T> {
    items: Vec<T>,
    /// Places of all items by their names, once there are many.
    places: HashTable<usize>,
    hasher: RandomState,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Distinct { items: vec![], places: HashTable::new(), hasher: RandomState::default() }
    }
}

impl<T> std::ops::Deref for Distinct<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T: Named> Distinct<T> {
    /// The item of this name.
    pub(crate) fn find<'a>(&'a self, name: &T::Name<'a>) -> Option<&'a T> {
        if self.items.len() <= LOOK_AT_EACH_MAX {
            return self.items.iter().find(|item| item.name() == *name);
        }
        let place = self.places.find(self.hasher.hash_one(name), |place| self.items[*place].name() == *name);
        place.map(|place| &self.items[*place])
    }

    /// Adds an item, unless there is one of its name. One that says something else is not dropped even so: of two
    /// replies to one read, neither may go unvalidated.
    pub(crate) fn add(&mut self, item: T) {
        let agrees = self.find(&item.name()).map(|found| found.agrees(&item));
        debug_assert_ne!(agrees, Some(false), "one commit gives one reply to a read");
        if agrees != Some(true) {
            self.push(item);
        }
    }

    /// Adds an item whose name is new.
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
        let from = match self.items.len() {
            ..=LOOK_AT_EACH_MAX => return,
            len if self.places.is_empty() => len - LOOK_AT_EACH_MAX - 1,
            len => len - 1,
        };
        let (items, hasher) = (&self.items, &self.hasher);
        for place in from..items.len() {
            let hash = |place: &usize| hasher.hash_one(items[*place].name());
            self.places.insert_unique(hash(&place), place, hash);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.items
    }
}

impl<T: Named> Extend<T> for Distinct<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.add(item));
    }
}

impl<T: Named> FromIterator<T> for Distinct<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut distinct = Distinct::default();
        distinct.extend(items);
        distinct
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_and_kept_once() {
        for many in [1, LOOK_AT_EACH_MAX, LOOK_AT_EACH_MAX + 1, 1_000] {
            let keys = || (0..many).map(|n| RawKey::from(n.to_string()));
            let distinct: Distinct<RawKey> = keys().chain(keys()).collect();
            assert_eq!(distinct.len(), many);
            for key in keys() {
                assert_eq!(distinct.find(&&key), Some(&key));
            }
            assert_eq!(distinct.find(&&RawKey::from_static(b"none")), None);
            assert_eq!(distinct.into_vec(), keys().collect::<Vec<_>>());
        }
    }
}
