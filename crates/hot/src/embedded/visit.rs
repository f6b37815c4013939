//! Lends the strings at many keys without copying them: shard by shard, so that each lock is taken once and the memory of
//! the next keys is fetched while one is looked at.

use super::Inner;
use super::locks::text_of;
use super::shard::KeyHash;
use crate::engine::{KeyList, VisitText};
use crate::limits::SHARDS;

/// Visits the strings at these keys, those of one shard after the other.
pub(super) fn texts(inner: &Inner, keys: &KeyList, visit: VisitText<'_>) {
    let hashes: Vec<KeyHash> = keys.iter().map(|key| inner.hash(key)).collect();
    let now = inner.ticker.now();
    for of_shard in
        by_shard(&hashes).chunk_by(|one, next| shard_of(&hashes, *one) == shard_of(&hashes, *next))
    {
        let shard = inner.shards[shard_of(&hashes, of_shard[0])].lock();
        for place in of_shard {
            let (place, key) = (*place as usize, keys.at(*place as usize));
            let entry = shard.living(hashes[place], key, || now);
            visit(place, entry.map(|entry| text_of(key, &entry.value)).transpose());
        }
    }
}

fn shard_of(hashes: &[KeyHash], place: u32) -> usize {
    hashes[place as usize].shard()
}

/// The places of the keys, in the order of their shards.
fn by_shard(hashes: &[KeyHash]) -> Vec<u32> {
    let mut starts = [0; SHARDS + 1];
    hashes.iter().for_each(|hashed| starts[hashed.shard() + 1] += 1);
    (0..SHARDS).for_each(|shard| starts[shard + 1] += starts[shard]);
    let mut order = vec![0; hashes.len()];
    for (place, hashed) in (0u32..).zip(hashes) {
        let next = &mut starts[hashed.shard()];
        order[*next] = place;
        *next += 1;
    }
    order
}
