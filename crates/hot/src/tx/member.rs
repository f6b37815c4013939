//! A member of a set or sorted set, which an external client may have written.

use bytes::Bytes;

/// A member of a set: a value of the family's type, or other bytes.
///
/// One member of an external client must not make a whole set unreadable; `Tx::srem_raw` removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member<V> {
    /// A value of the family's type.
    Known(V),
    /// Other bytes, as stored.
    External(Bytes),
}

impl<V> Member<V> {
    /// The value, if it is of the family's type.
    pub fn known(self) -> Option<V> {
        match self {
            Member::Known(value) => Some(value),
            Member::External(_) => None,
        }
    }
}
