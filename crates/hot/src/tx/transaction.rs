//! What an engine runs: a transaction as an object, and the one place where bodies run. There a panic becomes
//! an error, and calls of the store from inside a body are found.

use super::RawTx;
use crate::error::{Error, Result};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A unit of work that an engine runs, possibly several times, and commits at most once.
///
/// Engines run it by [`run_once`].
pub trait Transaction: Send {
    /// Runs the body once. `true` asks for the commit of its effects. On `false` (an error of the body) the
    /// engine discards them, but validates the reads all the same.
    fn run(&mut self, tx: RawTx<'_>) -> bool;

    /// Takes the error of a run that panicked as the result of the transaction. By default the error goes
    /// back to the engine, which ends the transaction with it.
    fn fail(&mut self, error: Error) -> Result<()> {
        Err(error)
    }

    /// Adds to an error of the commit what only the transaction's owner knows, such as the family of a raw
    /// key.
    fn explain(&self, error: Error) -> Error {
        error
    }

    /// The name that its caller gave it, for messages.
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// Takes note of something that the engine did for it, for counters.
    fn observe(&mut self, event: Event) {
        let _ = event;
    }

    /// The transaction as a value that can be downcast to the type with the result.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// Something that an engine does for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its run is repeated, because validation or a lock failed.
    Conflict,
    /// A call to the backend that it takes part in.
    RoundTrip,
    /// So many of its [`SetIfGreater`](crate::command::Write::SetIfGreater) were not greater than what was stored. At most
    /// once, after the commit.
    NotGreater(usize),
}

thread_local! {
    /// Whether this thread runs a body.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as one that runs a body, until it is dropped.
struct InsideBody;

impl InsideBody {
    fn enter() -> InsideBody {
        INSIDE.set(true);
        InsideBody
    }
}

impl Drop for InsideBody {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Refuses a call from inside a body. Every call of an engine begins with it, so that such a call is the same
/// error everywhere: in process it would wait for locks of its own thread, and on Redis for its own task.
#[inline]
pub fn check_outside() -> Result<()> {
    if INSIDE.get() { Err(Error::InsideTransaction) } else { Ok(()) }
}

/// Runs a body once and catches its panic. `true` asks for the commit.
pub fn run_once(transaction: &mut dyn Transaction, tx: RawTx<'_>) -> Result<bool> {
    let _inside = InsideBody::enter();
    // One span for each run, so that what the body logs has the transaction's name.
    let _span = transaction.name().map(|name| tracing::debug_span!("transaction", name).entered());
    // A panic may leave the captures of a body half changed. The next run sees them as they are: bodies are
    // pure.
    match catch_unwind(AssertUnwindSafe(|| transaction.run(tx))) {
        Ok(commit) => Ok(commit),
        Err(panic) => {
            let error = Error::Panicked { message: text_of(&*panic) };
            // The caller's code again: the conversion of the error, and the drop of what was thrown.
            let failed = catch_unwind(AssertUnwindSafe(|| {
                drop(panic);
                transaction.fail(error.clone())
            }));
            failed.unwrap_or(Err(error)).map(|()| false)
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
