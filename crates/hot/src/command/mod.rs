//! Reads, replies and writes as data: the commands of Redis, with absolute deadlines.
//!
//! The embedded engine applies them, its journal stores them, the commit script of the Redis engine executes
//! them. All keys are raw: prefix, partition tag and documented name in one string.

mod dump;
mod effects;
mod field_numbers;
mod integer;
mod precondition;
mod read;
mod reply;
mod score;
mod write;

pub use crate::kind::{Kind, KindFound};
pub use dump::{Content, KeyDump};
pub use effects::{Effects, LogAppend, LogExpiry, Overflow};
pub(crate) use field_numbers::check_fields;
#[doc(hidden)]
pub use integer::not_an_integer_field;
pub use integer::number_after_comma;
pub(crate) use integer::{is_greater, not_an_integer, parse_integer, sum_of};
pub(crate) use precondition::{KeyState, check};
pub use precondition::{Precondition, Preconditions};
pub use read::{LexBound, Read, ScoreBound, ZSlice};
pub(crate) use reply::too_large;
pub use reply::{Reply, wrong_type};
pub use score::Score;
pub use write::{Expiry, Write};

use crate::error::{Error, Result};
use crate::limits::KEY_BYTES_MAX;
use bytes::Bytes;

/// A key as the engine stores it.
pub type RawKey = Bytes;

/// Refuses keys over the limit.
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Error::invalid("key", format!("{} bytes, expected 1..={KEY_BYTES_MAX}", key.len())));
    }
    Ok(())
}
