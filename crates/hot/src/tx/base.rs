//! Where a transaction's reads come from: the state below the transaction's own writes.

use crate::command::{RawKey, Read, Reply};
use crate::error::{Error, Result};

/// The state a body reads before its own writes are laid over it.
///
/// `Err(Suspended)` means "not known yet": the engine fetches the read and runs the body again.
pub trait Base {
    /// Answers one read. Refusals (`WrongType`, `TooMany`) are replies, not errors.
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply>;

    /// The string at `key`, borrowed: the fast path of [`Base::read`] with [`Read::Get`]. A refusal is an error.
    fn text(&mut self, key: &RawKey) -> Result<Option<&[u8]>>;

    /// The engine's time in milliseconds since 1970, one value for the whole run of the body.
    fn now(&mut self) -> i64;

    /// Whether a read that is not known costs a round trip: then more of them may be asked for at once.
    fn is_far(&self) -> bool {
        false
    }
}

/// Reads that must be a number.
pub(crate) fn int(base: &mut dyn Base, key: &RawKey, read: Read) -> Result<i64> {
    match base.read(key, &read)?.checked(key, &read)? {
        Reply::Int(n) => Ok(n),
        other => Err(mismatch(&read, &other)),
    }
}

/// An engine answered with a shape that the read does not have.
pub(crate) fn mismatch(read: &Read, reply: &Reply) -> Error {
    Error::Unavailable {
        backend: "the engine".into(),
        reason: format!("{} was answered by {reply:?}", read.name()),
        advice: "this is a defect of the engine or the server, report it",
    }
}
