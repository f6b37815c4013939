//! Values and partitions as bytes and text, for the primitives that store or compare them.

use emberkeep_hot::{Error, Result};
use emberkeep_schema::{Codec, Part};

/// A value as its codec encodes it. `what` names the value in the error.
pub(crate) fn encoded<C: Codec>(what: &'static str, value: &C::Value) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match C::encode(value, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Error::Invalid { what, problem: error.to_string() }),
    }
}

/// A part of a key as it is written in the key.
pub(crate) fn part_bytes(part: &impl Part) -> Vec<u8> {
    let mut bytes = Vec::new();
    part.write(&mut bytes);
    bytes
}
