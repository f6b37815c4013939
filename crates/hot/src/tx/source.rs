//! Where the reads of a transaction come from: the state below its own writes.

use crate::command::{RawKey, Read, Reply};
use crate::error::{Error, Result};
use bytes::Bytes;

/// The state that a body reads, without its own writes.
///
/// `Err(Suspended)` means that the value is not available yet: the engine fetches it and runs the body again.
pub trait ReadSource {
    /// Answers one read. Refusals (`WrongType`, `TooMany`) are replies, not errors.
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply>;

    /// The string at `key`; a refusal is an error. A source that can lend the bytes does; otherwise they are
    /// kept alive in `scratch`.
    fn text<'s>(&'s mut self, key: &RawKey, scratch: &'s mut Option<Bytes>) -> Result<Option<&'s [u8]>> {
        *scratch = match self.read(key, &Read::Get)?.checked(key, &Read::Get)? {
            Reply::Blob(blob) => Some(blob),
            _ => None,
        };
        Ok(scratch.as_deref())
    }

    /// The engine's time in milliseconds since 1970, one value for the whole run of the body.
    fn now(&mut self) -> i64;

    /// Whether a missing read costs a round trip. Then prefetching pays.
    fn is_remote(&self) -> bool {
        false
    }
}

/// Reads that must be a number.
pub(crate) fn int(source: &mut dyn ReadSource, key: &RawKey, read: Read) -> Result<i64> {
    match source.read(key, &read)?.checked(key, &read)? {
        Reply::Int(n) => Ok(n),
        other => Err(mismatch(&read, &other)),
    }
}

/// An engine answered with a reply of a type that the read does not have.
pub(crate) fn mismatch(read: &Read, reply: &Reply) -> Error {
    Error::Unavailable {
        backend: "the engine".into(),
        reason: format!("{} was answered by {reply:?}", read.name()),
        advice: "this is a defect of the engine or the server, report it",
    }
}
