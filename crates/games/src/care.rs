//! Transactions that a corrupt key must not stop.
//!
//! A write to a key that holds another type is refused when the transaction commits, so a string that an external client put
//! into the place of an index would keep every monster of a tenant alive. To look at each key before it is written
//! would cost reads, and conflicts with whoever else writes it. So keys are trusted first; when a commit is refused, the
//! transaction runs once more and looks.

use crate::world::Tenant;
use emberkeep_hot::{Error, Result, Scope, Tx};

/// How a transaction treats keys that it only takes something out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// They are what they should be: written without a look.
    Trusted,
    /// One of them is not: each is looked at, and a corrupt one is left as it is. Nothing of ours is in it.
    Checked,
}

impl Keys {
    /// Whether a key can be written; `look` is any read of it that its type would refuse.
    pub(crate) fn allow<T>(self, look: impl FnOnce() -> Result<T>) -> Result<bool> {
        match self {
            Keys::Trusted => Ok(true),
            Keys::Checked => Ok(!is_wrong_type(look())?),
        }
    }
}

/// Whether a read was refused because its key holds another type.
pub(crate) fn is_wrong_type<T>(read: Result<T>) -> Result<bool> {
    match read {
        Ok(_) => Ok(false),
        Err(Error::WrongType { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// An error that may be the store's.
pub(crate) trait OfStore: From<Error> + Send + 'static {
    /// The store's own error, if it is one.
    fn of_store(&self) -> Option<&Error>;
}

impl OfStore for Error {
    fn of_store(&self) -> Option<&Error> {
        Some(self)
    }
}

/// Runs a transaction on trusted keys and, if one of them was not what it should be, once more on checked ones.
pub(crate) async fn run<T, E, S>(scope: &Scope<Tenant>, transaction: S) -> Result<T, E>
where
    S: FnMut(&mut Tx<'_, Tenant>, Keys) -> Result<T, E> + Clone + Send + 'static,
    T: Send + 'static,
    E: OfStore,
{
    let mut trusting = transaction.clone();
    match scope.transact(move |tx| trusting(tx, Keys::Trusted)).await {
        Err(error) if matches!(error.of_store(), Some(Error::WrongType { .. })) => {
            let mut checking = transaction;
            scope.transact(move |tx| checking(tx, Keys::Checked)).await
        }
        done => done,
    }
}
