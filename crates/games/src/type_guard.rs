//! Transactions that still commit when an auxiliary key holds a wrong type.
//!
//! An engine refuses a commit that writes to a key of another type. A string that an external client put in
//! the place of an index would therefore keep every monster of a tenant alive. Checking the type of each key
//! before each write would cost reads, and conflicts with every other writer of the key. So a transaction
//! first runs without checks. Only if its commit is refused with `WrongType` does it run once more, and then
//! it checks.

use crate::world::Tenant;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Codec, Family, Key, Set};

/// Whether a transaction checks the type of a key before it removes something from that key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeGuard {
    /// No checks: the keys are assumed to have the right type.
    Off,
    /// Each key is checked. A key of a wrong type is left alone: it holds nothing of ours.
    On,
}

impl TypeGuard {
    /// Whether a key can be written. `read` is any read that fails if the key has a wrong type.
    pub(crate) fn allows<T>(self, read: impl FnOnce() -> Result<T>) -> Result<bool> {
        match self {
            TypeGuard::Off => Ok(true),
            TypeGuard::On => Ok(!is_wrong_type(read())?),
        }
    }
}

/// Whether a read failed because its key holds another type. Any other error is returned.
pub(crate) fn is_wrong_type<T>(read: Result<T>) -> Result<bool> {
    match read {
        Ok(_) => Ok(false),
        Err(Error::WrongType { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Deletes a key if `read`, a read of it, failed because it holds another type; `true` if it did.
pub(crate) fn delete_if_wrong_type<F: Family<Partition = Tenant>, T>(
    tx: &mut Tx<'_, Tenant>,
    key: &Key<F>,
    read: Result<T>,
) -> Result<bool> {
    let wrong = is_wrong_type(read)?;
    if wrong {
        tx.del(key)?;
    }
    Ok(wrong)
}

/// An error that may wrap an error of the store.
pub(crate) trait AsStoreError: From<Error> + Send + 'static {
    /// The wrapped error; `None` if a rule of the game failed.
    fn as_store_error(&self) -> Option<&Error>;
}

impl AsStoreError for Error {
    fn as_store_error(&self) -> Option<&Error> {
        Some(self)
    }
}

/// Runs a transaction without type checks, and once more with them if the commit was refused with
/// `WrongType`.
pub(crate) async fn run<T, E, S>(scope: &Scope<Tenant>, transaction: S) -> Result<T, E>
where
    S: FnMut(&mut Tx<'_, Tenant>, TypeGuard) -> Result<T, E> + Clone + Send + 'static,
    T: Send + 'static,
    E: AsStoreError,
{
    let mut unguarded = transaction.clone();
    match scope.transact(move |tx| unguarded(tx, TypeGuard::Off)).await {
        Err(error) if matches!(error.as_store_error(), Some(Error::WrongType { .. })) => {
            let mut guarded = transaction;
            scope.transact(move |tx| guarded(tx, TypeGuard::On)).await
        }
        result => result,
    }
}

/// Deletes an index of a wrong type, in a transaction; `true` if it did.
pub(crate) async fn discard_set<F, M>(scope: &Scope<Tenant>, index: &Key<F>) -> Result<bool>
where
    F: Family<Partition = Tenant, Kind = Set<M>>,
    M: Codec,
{
    let transaction = |tx: &mut Tx<'_, Tenant>, index: &Key<F>| {
        let read = tx.scard(index);
        delete_if_wrong_type(tx, index, read)
    };
    scope.transact_with(index.clone(), transaction).await
}
