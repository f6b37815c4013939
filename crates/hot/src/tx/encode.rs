//! Keys and values as bytes, built in buffers that the thread keeps: only the result is allocated.

use crate::command::RawKey;
use crate::error::{Error, Result};
use crate::limits::SCRATCH_BYTES_MAX;
use bytes::Bytes;
use emberkeep_schema::{Codec, Family, Key, KeyLayout, ValueError};
use std::cell::Cell;
use std::convert::Infallible;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static ANSWER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends two empty buffers of the thread: one for a key, one for its value.
#[inline]
pub(crate) fn with_buffers<R>(work: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> R) -> R {
    // Taken, not borrowed: a user's codec may call this function again.
    let (mut first, mut second) = (SCRATCH.take(), ANSWER.take());
    first.clear();
    second.clear();
    let result = work(&mut first, &mut second);
    if first.capacity() <= SCRATCH_BYTES_MAX {
        SCRATCH.set(first);
    }
    if second.capacity() <= SCRATCH_BYTES_MAX {
        ANSWER.set(second);
    }
    result
}

/// Builds bytes in a buffer of the thread and copies them once, so that the result has no spare capacity.
///
/// Generic, although every family and codec makes a copy of it: each get and put comes here, and an indirect
/// call cost 5 % of a transaction.
#[inline]
fn built<E>(fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Bytes, E> {
    let mut scratch = SCRATCH.take();
    scratch.clear();
    let filled = fill(&mut scratch).map(|()| Bytes::copy_from_slice(&scratch));
    if scratch.capacity() <= SCRATCH_BYTES_MAX {
        SCRATCH.set(scratch);
    }
    filled
}

/// The bytes of a name, which cannot fail.
#[inline]
pub(crate) fn built_name(fill: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let built = built(|out| {
        fill(out);
        Ok::<_, Infallible>(())
    });
    match built {
        Ok(bytes) => bytes,
    }
}

/// The bytes of a key on an engine.
pub(crate) fn rendered<F: Family>(layout: &KeyLayout, partition: &F::Partition, key: &Key<F>) -> RawKey {
    built_name(|out| key.render(layout, partition, out))
}

/// The bytes of a value. The error names the family.
pub(crate) fn encoded<F: Family, C: Codec>(value: &C::Value) -> Result<Bytes> {
    built(|out| C::encode(value, out)).map_err(|error| refused(&error, F::DECLARATION.name))
}

#[cold]
fn refused(error: &ValueError, family: &str) -> Error {
    Error::Invalid { what: "value", problem: format!("{error} (family {family})") }
}
