//! A member of a set or sorted set, which an external client may have written.

use bytes::Bytes;

/// A member of a set: of the family's type, or bytes that are not.
///
/// One member that an external client put there must not make a whole set unreadable; `Tx::srem_raw` removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member<V> {
    /// What the family declares.
    Known(V),
    /// Something else, as it is stored.
    External(Bytes),
}

impl<V> Member<V> {
    /// The value, if it is one of the family's.
    pub fn known(self) -> Option<V> {
        match self {
            Member::Known(value) => Some(value),
            Member::External(_) => None,
        }
    }
}
