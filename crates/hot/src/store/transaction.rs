//! A closure as a [`Transaction`]: runs the body, keeps its result, turns a panic into an error.

use super::families::Families;
use super::typed::Tx;
use crate::error::{Error, Result};
use crate::tx::{RawTx, Transaction};
use emberkeep_schema::{KeyLayout, Partition};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A body with where it runs and what it returned last.
pub(super) struct ClosureTransaction<P, F, T, E> {
    pub(super) body: F,
    pub(super) layout: Arc<KeyLayout>,
    pub(super) partition: P,
    pub(super) families: Families,
    pub(super) result: Option<Result<T, E>>,
}

impl<P, F, T, E> Transaction for ClosureTransaction<P, F, T, E>
where
    P: Partition,
    F: FnMut(&mut Tx<'_, P>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    fn run(&mut self, raw: &mut RawTx<'_>) -> bool {
        self.families.clear();
        let mut tx = Tx::new(raw, &self.layout, &self.partition, &mut self.families);
        // The body may leave its captures half-changed by a panic; a later run sees them as they are, which is
        // the contract of a pure body.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.body)(&mut tx)));
        let result =
            outcome.unwrap_or_else(|panic| Err(Error::Panicked { message: text_of(&*panic) }.into()));
        let commit = result.is_ok();
        self.result = Some(result);
        commit
    }

    fn explain(&self, error: Error) -> Error {
        self.families.explain(&self.layout, error)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
