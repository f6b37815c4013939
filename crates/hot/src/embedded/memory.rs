//! The memory limit. Bytes are reserved before the first write of a transaction and corrected after the
//! last, so that concurrent transactions on different shards cannot exceed the limit together. Writes that
//! do not grow always work.

use super::locks::{Locked, Lookup};
use super::shard::{ENTRY_OVERHEAD_BYTES, KeyHash};
use crate::command::{RawKey, Write};
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicI64, Ordering};

/// What each member, field or element costs beside its bytes, as an upper bound.
const ELEMENT_OVERHEAD_BYTES: usize = 72;

/// Memory use against a limit. Without a limit it counts nothing; shards have their own counters.
#[derive(Debug, Default)]
pub(super) struct Memory {
    limit: Option<usize>,
    used: AtomicI64,
}

impl Memory {
    pub(super) fn new(limit: Option<usize>) -> Memory {
        Memory { limit, used: AtomicI64::new(0) }
    }

    /// Whether there is a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes `bytes` of what is left, or refuses.
    pub(super) fn reserve(&self, bytes: usize) -> Result<()> {
        let Some(limit) = self.limit else { return Ok(()) };
        let used = self.used.fetch_add(bytes as i64, Ordering::Relaxed);
        if bytes > 0 && used.saturating_add(bytes as i64) > limit as i64 {
            self.adjust(-(bytes as i64));
            return Err(Error::OutOfMemory {
                detail: format!(
                    "{used} bytes in use, the transaction needs up to {bytes} more, the limit is {limit}"
                ),
            });
        }
        Ok(())
    }

    /// Adds to the bytes in use, or subtracts: an estimate is corrected or given back.
    pub(super) fn adjust(&self, bytes: i64) {
        if self.limit.is_some() {
            self.used.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// Upper bound of the bytes by which a list of writes grows the keyspace. Bytes that it frees are not
/// subtracted, except where a string replaces a value: then only the difference counts.
pub(super) fn growth(
    locked: &mut Locked<'_>,
    writes: &[(RawKey, Write)],
    hashes: &[KeyHash],
) -> Result<usize> {
    let mut bytes = 0;
    for ((key, write), hashed) in writes.iter().zip(hashes) {
        let (elements, new_bytes) = match write {
            Write::Set(text, _) | Write::SetIfGreater(text, _) => (0, text.len()),
            Write::IncrBy(_) => (0, 20),
            Write::HIncrBy(..) | Write::ZIncrBy(..) => (1, write.bytes() + 4),
            Write::LSet(..) => (1, write.bytes()),
            Write::HSet(pairs) => (pairs.len(), write.bytes()),
            Write::ZAdd(pairs) => (pairs.len(), write.bytes()),
            Write::SAdd(new) | Write::LPush(new) | Write::RPush(new) => (new.len(), write.bytes()),
            _ => continue,
        };
        let (shard, found) = locked.find(*hashed, key)?;
        bytes += match (found, elements) {
            (Lookup::Live(position), 0) => new_bytes.saturating_sub(shard.at(position).value.bytes()),
            (Lookup::Live(_), elements) => new_bytes + elements * ELEMENT_OVERHEAD_BYTES,
            _ => new_bytes + elements * ELEMENT_OVERHEAD_BYTES + ENTRY_OVERHEAD_BYTES + key.len(),
        };
    }
    Ok(bytes)
}
