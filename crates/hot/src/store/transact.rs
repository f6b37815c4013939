//! Starting a transaction: on the caller's stack if the engine is in this process, otherwise by its task.
//!
//! A program has a copy of [`TransactionFuture`] for each of its closures. So that holds only what depends on the
//! closure's types, and [`Call`] does the rest, which is compiled once.

use super::{Caller, Scope};
use crate::engine::{LocalOutcome, Lsn, Pending, TransactionRequest};
use crate::error::{Error, Result};
use crate::limits::YIELD_EVERY;
use crate::tx::operation::Operation;
use crate::tx::{ClosureTransaction, ReadTx, Run, Transaction, Tx};
use emberkeep_schema::Partition;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

impl<P: Partition> Scope<P> {
    /// Runs an atomic, serializable transaction.
    ///
    /// The closure is a pure function of what it reads, its captures, `tx.now()` and `tx.random()`. It may run
    /// several times; only the effects of the last run are committed. An error of the closure discards them;
    /// see [`Tx::attempt`] for a refusal that keeps some.
    ///
    /// The closure uses nothing of the store but its `tx`: a call of the store inside it is
    /// [`Error::InsideTransaction`].
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before the commit was sent, nothing is written, then or later. Once the
    /// commit was sent it cannot be taken back: it is executed or not, and only the state can tell. On the
    /// embedded engine the first poll commits; a later drop only stops waiting for the disk.
    #[doc = include_str!("../../docs/transact.md")]
    pub fn transact<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        F: FnMut(&mut Tx<'_, P>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let call = Call::new(&self.caller);
        let transaction = Some(ClosureTransaction::new(body, self.partition.clone(), call.run()));
        TransactionFuture { call, transaction }
    }

    /// [`Scope::transact`] with arguments that the closure is lent in each run. A closure that may run again
    /// cannot give its captures away; with this it needs no clones of them.
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_schema::{Name, Text, Utf8, family, partition};
    /// # partition! { /// A realm.
    /// #     pub struct Realm(Name) as "realm"; }
    /// # family! { /// A motto.
    /// #     pub MOTTO = "motto:{realm}:{player}" {
    /// #         kind: Text<Utf8>, partition: Realm, parts: (player: u32), ttl: persistent, owner: "docs" } }
    /// # async fn example(store: Store, player: u32, motto: &str) -> Result<(), Error> {
    /// # let scope = store.scope(Realm(Name::new("north").expect("a word")));
    /// scope
    ///     .transact_with((player, motto.to_owned()), |tx, (player, motto)| tx.put(&MOTTO.key(player), motto))
    ///     .await
    /// # }
    /// ```
    pub fn transact_with<A, T, E, F>(&self, args: A, mut body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        A: Send + 'static,
        F: FnMut(&mut Tx<'_, P>, &A) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.transact(move |tx| body(tx, &args))
    }

    /// Reads in one transaction: everything that the closure reads is of one moment. Its `tx` cannot write.
    /// Nothing is written to a journal, and on Redis nothing but the reads is sent.
    pub fn read<T, E, F>(&self, mut body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        F: FnMut(&mut ReadTx<'_, P>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.transact(move |tx| body(tx))
    }
}

/// The future of a transaction.
struct TransactionFuture<'s, P, F, T, E> {
    call: Call<'s>,
    /// `None` while a remote engine has it.
    transaction: Option<ClosureTransaction<P, F, T, E>>,
}

/// Nothing in it is pinned.
impl<P, F, T, E> Unpin for TransactionFuture<'_, P, F, T, E> {}

impl<P, F, T, E> Future for TransactionFuture<'_, P, F, T, E>
where
    P: Partition,
    F: FnMut(&mut Tx<'_, P>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let TransactionFuture { call, transaction } = self.get_mut();
        if call.is_new() {
            let local = transaction.as_mut().expect("a new call has its transaction");
            match call.run_local(local) {
                LocalRun::Finished(Ok(())) => return Poll::Ready(local.take_result()),
                LocalRun::Finished(Err(error)) => return Poll::Ready(Err(error.into())),
                LocalRun::Waits => {}
                LocalRun::Remote => {
                    let transaction = transaction.take().expect("it did not run");
                    call.send(Box::new(transaction));
                }
            }
        }
        let mut remote = match ready!(call.poll(cx)) {
            Ok(remote) => remote.map(Transaction::into_any),
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        let finished = match &mut remote {
            Some(remote) => remote.downcast_mut(),
            None => transaction.as_mut(),
        };
        Poll::Ready(finished.expect("an engine gives back the transaction it was given").take_result())
    }
}

/// Runs a transaction that is not a closure, and returns it after its commit.
pub(super) async fn run_transaction<X: Transaction + 'static>(
    caller: &Caller,
    mut transaction: X,
) -> Result<X> {
    let mut call = Call::new(caller);
    match call.run_local(&mut transaction) {
        LocalRun::Finished(result) => result.map(|()| transaction),
        LocalRun::Waits => poll_fn(|cx| call.poll(cx)).await.map(|_| transaction),
        LocalRun::Remote => {
            call.send(Box::new(transaction));
            let remote = poll_fn(|cx| call.poll(cx)).await?.map(|remote| remote.into_any().downcast());
            let own = remote.and_then(|remote: Result<Box<X>, _>| remote.ok());
            Ok(*own.expect("an engine gives back the transaction it was given"))
        }
    }
}

/// A call of an engine and how far it is.
struct Call<'s> {
    caller: &'s Caller,
    /// Only of a call with a name.
    started: Option<Instant>,
    state: State<'s>,
}

enum State<'s> {
    New,
    /// It ran on this stack, and waits for the disk or for other tasks.
    Waiting(Pending<'s, Result<()>>),
    /// A remote engine has it.
    Sent(Pending<'s, Result<Box<dyn Transaction>>>),
    Over,
}

/// What became of a transaction on the caller's stack.
enum LocalRun {
    /// It ran to its end, and the result is ready.
    Finished(Result<()>),
    /// It ran, and waits: see [`State::Waiting`].
    Waits,
    /// The engine is remote.
    Remote,
}

impl<'s> Call<'s> {
    fn new(caller: &'s Caller) -> Call<'s> {
        Call { caller, started: None, state: State::New }
    }

    fn run(&self) -> Run {
        Run::new(self.caller.store.layout, self.caller.operation, self.caller.rights())
    }

    fn is_new(&self) -> bool {
        matches!(self.state, State::New)
    }

    /// Runs the transaction on this stack, if the engine is in this process.
    fn run_local(&mut self, transaction: &mut dyn Transaction) -> LocalRun {
        let caller: &'s Caller = self.caller;
        let engine = &caller.store.engine;
        let Some(outcome) = engine.run_local(&caller.text, transaction, engine.seed()) else {
            return LocalRun::Remote;
        };
        let LocalOutcome { result, lsn, started, ended } = outcome;
        let waiting: Pending<'s, Result<()>> = match lsn {
            // A call inside a closure cannot wait for other tasks.
            Lsn(0) if matches!(result, Err(Error::InsideTransaction)) || !must_yield(ended) => {
                self.state = State::Over;
                let took = || ended.saturating_duration_since(started);
                return LocalRun::Finished(count(caller.operation, result, took));
            }
            Lsn(0) => Box::pin(async move {
                tokio::task::yield_now().await;
                result
            }),
            lsn => {
                let durable = engine.wait_durable(lsn);
                Box::pin(async move { durable.await.and(result) })
            }
        };
        self.started = Some(started);
        self.state = State::Waiting(waiting);
        LocalRun::Waits
    }

    /// Gives the transaction to the engine.
    fn send(&mut self, transaction: Box<dyn Transaction>) {
        let caller: &'s Caller = self.caller;
        let engine = &caller.store.engine;
        self.started = caller.operation.map(|_| Instant::now());
        self.state = State::Sent(engine.run(TransactionRequest {
            partition: caller.group.map_or_else(|| caller.text.clone(), |group| group.into()),
            prefetched: caller.prefetched.clone(),
            transaction,
            deadline: caller.deadline,
            seed: engine.seed(),
        }));
    }

    /// `None` = the transaction ran on this stack.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Box<dyn Transaction>>>> {
        let result = match &mut self.state {
            State::Waiting(waiting) => ready!(waiting.as_mut().poll(cx)).map(|()| None),
            State::Sent(sent) => ready!(sent.as_mut().poll(cx)).map(Some),
            State::New | State::Over => unreachable!("a call is started before it is polled, and ends once"),
        };
        self.state = State::Over;
        let took = || self.started.map_or(Duration::ZERO, |started| started.elapsed());
        Poll::Ready(count(self.caller.operation, result, took))
    }
}

/// Counts a call that ended, if it has a name, and adds the name to its error.
fn count<T>(
    operation: Option<&'static Operation>,
    result: Result<T>,
    took: impl FnOnce() -> Duration,
) -> Result<T> {
    let Some(operation) = operation else { return result };
    let took = took();
    operation.count_call(took);
    tracing::trace!(name = operation.name, ?took, failed = result.is_err(), "transaction ended");
    result.map_err(|error| error.in_transaction(Some(operation.name)))
}

/// Whether this thread has run transactions for long enough: without a pause, a loop of transactions that
/// never wait would starve the other tasks of its thread.
fn must_yield(now: Instant) -> bool {
    thread_local! {
        /// When the thread yields next.
        static NEXT: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    match NEXT.get() {
        Some(next) if now < next => false,
        next => {
            NEXT.set(now.checked_add(YIELD_EVERY));
            next.is_some()
        }
    }
}
