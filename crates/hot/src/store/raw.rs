//! Transactions over raw keys, for tools that work on keys that they did not declare.

use super::transact::run_transaction;
use super::{Caller, Store};
use crate::error::{Error, Result};
use crate::limits::TRANSACTION_DEADLINE_DEFAULT;
use crate::tx::{RawTx, Transaction};
use bytes::Bytes;
use std::any::Any;

impl Store {
    /// Runs a transaction over raw keys of one partition, by its text. On a Cluster all its keys are behind
    /// `{partition}`. No TTL policy is applied, and a store that acts as a service is refused. The closure is pure as
    /// that of [`Scope::transact`](crate::Scope::transact).
    pub async fn transact_raw<T, F>(&self, partition: &Bytes, body: F) -> Result<T>
    where
        F: FnMut(&mut RawTx<'_>) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        if let Some(service) = self.service {
            let problem = format!("the store acts as {service}, and a raw key may belong to any service");
            return Err(Error::invalid("raw transaction", problem));
        }
        read_raw(self, partition, body).await
    }
}

/// The same for a body that only reads, which every service may.
pub(super) async fn read_raw<T, F>(store: &Store, partition: &Bytes, body: F) -> Result<T>
where
    F: FnMut(&mut RawTx<'_>) -> Result<T> + Send + 'static,
    T: Send + 'static,
{
    let caller = Caller {
        store: store.clone(),
        text: partition.clone(),
        deadline: TRANSACTION_DEADLINE_DEFAULT,
        prefetched: Vec::new(),
        operation: None,
        grant: None,
        group: None,
    };
    run_transaction(&caller, RawTransaction { body, result: None })
        .await?
        .result
        .unwrap_or(Err(Error::Closed))
}

/// A body over raw keys, and the result of its last run.
struct RawTransaction<F, T> {
    body: F,
    result: Option<Result<T>>,
}

impl<F, T> Transaction for RawTransaction<F, T>
where
    F: FnMut(&mut RawTx<'_>) -> Result<T> + Send + 'static,
    T: Send + 'static,
{
    fn run(&mut self, mut tx: RawTx<'_>) -> bool {
        let result = (self.body)(&mut tx);
        let commits = result.is_ok();
        self.result = Some(result);
        commits
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
