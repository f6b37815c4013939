//! The peer in process: what one would write by hand. 64 locked maps, a copy on every read, nothing else:
//! no deadlines, no types, no transactions, no journal.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::BuildHasher;

/// As many as the embedded engine has.
const SHARDS: usize = emberkeep::hot::limits::SHARDS;

type Shard = Mutex<HashMap<Box<[u8]>, Box<[u8]>, RandomState>>;

/// Hash maps behind one lock each: the least that a store in process can cost.
pub(super) struct BareMap {
    shards: Vec<Shard>,
    hasher: RandomState,
}

impl BareMap {
    pub(super) fn new() -> BareMap {
        BareMap { shards: (0..SHARDS).map(|_| Shard::default()).collect(), hasher: RandomState::default() }
    }

    fn shard(&self, key: &[u8]) -> &Shard {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    /// A copy of the value.
    pub(super) fn get(&self, key: &[u8]) -> Option<Box<[u8]>> {
        self.shard(key).lock().get(key).cloned()
    }

    /// Replaces the value of a key.
    pub(super) fn set(&self, key: &[u8], value: &[u8]) {
        let mut shard = self.shard(key).lock();
        match shard.get_mut(key) {
            Some(held) => *held = value.into(),
            None => drop(shard.insert(key.into(), value.into())),
        }
    }
}
