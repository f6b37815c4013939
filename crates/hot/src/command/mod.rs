//! The one vocabulary: reads, replies and writes in the words of Redis, with absolute deadlines.
//!
//! The embedded engine applies these, its journal stores them, the commit script replays them. All keys here
//! are raw: prefix, partition tag and documented name already put together.

mod effects;
mod integer;
mod read;
mod reply;
mod requirement;
mod score;
mod write;

pub use crate::kind::{Kind, KindFound};
pub use effects::{Effects, LogAppend, Overflow};
pub(crate) use integer::{not_an_integer, parse_integer};
pub use read::{LexBound, Read, ScoreBound, ZSlice};
pub(crate) use reply::too_large;
pub use reply::{Reply, wrong_type};
pub use requirement::{Requirement, Requirements};
pub use score::Score;
pub use write::{Expiry, Write};

use crate::error::{Error, Result};
use crate::limits::KEY_BYTES_MAX;
use bytes::Bytes;

/// A rendered key.
pub type RawKey = Bytes;

/// Refuses keys over the limit.
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Error::invalid("key", format!("{} bytes, expected 1..={KEY_BYTES_MAX}", key.len())));
    }
    Ok(())
}
