//! A closure as a [`Transaction`]: it runs the body and stores the result.

use super::families::Families;
use super::{RawTx, Transaction, Tx};
use crate::error::{Error, Result};
use emberkeep_schema::{KeyLayout, Partition};
use std::any::Any;
use std::sync::Arc;

/// A body, the partition it runs in, and the result of its last run.
pub(crate) struct ClosureTransaction<P, F, T, E> {
    body: F,
    layout: Arc<KeyLayout>,
    partition: P,
    families: Families,
    result: Option<Result<T, E>>,
}

impl<P, F, T, E: From<Error>> ClosureTransaction<P, F, T, E> {
    pub(crate) fn new(body: F, layout: Arc<KeyLayout>, partition: P) -> Self {
        ClosureTransaction { body, layout, partition, families: Families::default(), result: None }
    }

    pub(crate) fn into_result(self) -> Result<T, E> {
        self.result.unwrap_or_else(|| Err(Error::Closed.into()))
    }
}

impl<P, F, T, E> Transaction for ClosureTransaction<P, F, T, E>
where
    P: Partition,
    F: FnMut(&mut Tx<'_, P>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    fn run(&mut self, raw: RawTx<'_>) -> bool {
        self.families.clear();
        let (layout, partition, families) = (&*self.layout, &self.partition, &mut self.families);
        let result = (self.body)(&mut Tx { raw: raw.shortened(), layout, partition, families });
        let commit = result.is_ok();
        self.result = Some(result);
        commit
    }

    fn fail(&mut self, error: Error) -> Result<()> {
        self.result = Some(Err(error.into()));
        Ok(())
    }

    fn explain(&self, error: Error) -> Error {
        self.families.explain(&self.layout, error)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
