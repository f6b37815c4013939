//! A slab of entries in chunks. Adding an entry never moves the others, so no write waits for megabytes to
//! be copied. Removing one moves the last into its place, so a scan needs only a position.

use super::value::Value;

/// Entries of a chunk (48 KiB).
const CHUNK: usize = 1024;

/// The deadline of an entry that does not expire.
pub(super) const NEVER: i64 = i64::MAX;

/// A key with its value and deadline.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Box<[u8]>,
    pub(super) value: Value,
    /// Milliseconds since 1970, or [`NEVER`].
    pub(super) deadline: i64,
    /// The half of the key's hash that the index uses: moving an entry does not hash its key again.
    pub(super) hash: u32,
    /// The journal rewrite that has a copy of this entry.
    pub(super) saved: u32,
}

// Memory per key is what a session store is measured by.
const _: () = assert!(size_of::<Entry>() == 48);

impl Entry {
    /// Whether the key has expired at `now`. As in Redis it still exists in the millisecond of its deadline.
    #[inline]
    pub(super) fn is_expired(&self, now: i64) -> bool {
        self.deadline < now
    }
}

/// A dense, chunked list.
#[derive(Debug, Default)]
pub(super) struct Slab {
    /// Full chunks, then one that is filling, then at most one empty spare.
    chunks: Vec<Vec<Entry>>,
    len: usize,
}

impl Slab {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, position: usize) -> &Entry {
        &self.chunks[position / CHUNK][position % CHUNK]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, position: usize) -> &mut Entry {
        &mut self.chunks[position / CHUNK][position % CHUNK]
    }

    /// Adds at the end; answers the position.
    pub(super) fn push(&mut self, entry: Entry) -> usize {
        let position = self.len;
        if position / CHUNK == self.chunks.len() {
            // The first chunk grows as it needs: 64 nearly empty shards should not cost a megabyte.
            self.chunks.push(if position == 0 { Vec::new() } else { Vec::with_capacity(CHUNK) });
        }
        self.chunks[position / CHUNK].push(entry);
        self.len += 1;
        position
    }

    /// Removes an entry; the last one takes its place.
    pub(super) fn swap_remove(&mut self, position: usize) -> Entry {
        let last = self.chunks[(self.len - 1) / CHUNK].pop().expect("the last chunk ends at len");
        self.len -= 1;
        // One spare chunk stays, so that a shard at a boundary does not allocate at every other write.
        self.chunks.truncate(self.len / CHUNK + 2);
        if position == self.len { last } else { std::mem::replace(self.get_mut(position), last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u32) -> Entry {
        let key = n.to_be_bytes().as_slice().into();
        Entry { key, value: Value::Text(Box::default()), deadline: NEVER, hash: n, saved: 0 }
    }

    #[test]
    fn it_behaves_like_a_vector_with_swap_remove() {
        let (mut entries, mut model) = (Slab::default(), Vec::new());
        for n in 0..12_000u32 {
            assert_eq!(entries.push(entry(n)), model.len());
            model.push(n);
            if n % 3 == 0 {
                let position = n as usize * 7_919 % model.len();
                assert_eq!(entries.swap_remove(position).hash, model.swap_remove(position));
            }
        }
        assert_eq!(entries.len(), model.len());
        assert!((0..model.len()).all(|position| entries.get(position).hash == model[position]));
        while let Some(n) = model.pop() {
            assert_eq!(entries.swap_remove(entries.len() - 1).hash, n);
        }
        assert_eq!(entries.len(), 0);
        assert!(entries.chunks.len() <= 2);
    }
}
