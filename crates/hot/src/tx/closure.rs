//! A closure as a [`Transaction`]: it runs the body and stores the result.
//!
//! Every closure of a program makes a copy of this code, so whatever does not depend on the closure is in
//! [`Run`], which is compiled once.

use super::families::Families;
use super::operation::Operation;
use super::{Event, RawTx, ReadTx, Rights, Transaction, Tx};
use crate::error::{Error, Result};
use emberkeep_schema::{KeyLayout, Partition};
use std::any::Any;

/// A body, the partition it runs in, and the result of its last run.
pub(crate) struct ClosureTransaction<P, F, T, E> {
    body: F,
    partition: P,
    run: Run,
    result: Option<Result<T, E>>,
}

/// What the transaction of every closure has.
pub(crate) struct Run {
    layout: &'static KeyLayout,
    families: Families,
    operation: Option<&'static Operation>,
    rights: Option<Rights>,
}

impl Run {
    pub(crate) fn new(
        layout: &'static KeyLayout,
        operation: Option<&'static Operation>,
        rights: Option<Rights>,
    ) -> Run {
        Run { layout, families: Families::default(), operation, rights }
    }

    pub(crate) fn begin(&mut self) {
        self.families.clear();
        if let Some(operation) = self.operation {
            operation.count_run();
        }
    }

    pub(crate) fn name(&self) -> Option<&'static str> {
        self.operation.map(|operation| operation.name)
    }

    pub(crate) fn observe(&self, event: Event) {
        match (self.operation, event) {
            (Some(operation), Event::Conflict) => operation.count_conflict(),
            (Some(operation), Event::RoundTrip) => operation.count_round_trip(),
            (_, Event::NotGreater(_)) | (None, _) => {}
        }
    }
}

impl<P, F, T, E: From<Error>> ClosureTransaction<P, F, T, E> {
    pub(crate) fn new(body: F, partition: P, run: Run) -> Self {
        ClosureTransaction { body, partition, run, result: None }
    }

    /// The result of the last run, once.
    pub(crate) fn take_result(&mut self) -> Result<T, E> {
        self.result.take().unwrap_or_else(|| Err(Error::Closed.into()))
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
        self.run.begin();
        let Run { layout, families, rights, .. } = &mut self.run;
        let (raw, partition, rights) = (raw.shortened(), &self.partition, *rights);
        let read = ReadTx { raw, layout, partition, families, rights };
        let result = (self.body)(&mut Tx { read });
        let commit = result.is_ok();
        self.result = Some(result);
        commit
    }

    fn fail(&mut self, error: Error) -> Result<()> {
        self.result = Some(Err(error.in_transaction(self.run.name()).into()));
        Ok(())
    }

    fn explain(&self, error: Error) -> Error {
        self.run.families.explain(self.run.layout, error)
    }

    fn name(&self) -> Option<&'static str> {
        self.run.name()
    }

    fn observe(&mut self, event: Event) {
        self.run.observe(event);
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
