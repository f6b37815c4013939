//! The driver of a due queue: runs a handler for each entry when it is due.
//!
//! Budget of a turn: [`DUE_PER_TURN`] entries in one transaction. If that fails, the same entries are handled
//! one by one, so that one bad entry does not stop the others. Between turns the driver sleeps until the next
//! deadline, and at most for the poll interval. Dropping the future stops it between two transactions, or
//! during one that then commits or does not, as a whole.

use super::wake::{self, Registration};
use super::{DueQueue, FirstEntries, first_ranks};
use crate::encode::encoded;
use crate::limits::{
    DUE_BACKOFF_MAX, DUE_BACKOFF_MIN, DUE_FAILING_MAX, DUE_PER_TURN, DUE_POLL_EVERY, DUE_RECHECK_AFTER,
};
use emberkeep_hot::command::Read;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Automatic, Codec, Family, Key, Partition, SortedSet};
use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A driver that is set up; [`until`](Driver::until) or [`forever`](Driver::forever) runs it.
#[must_use = "it does nothing until `until` or `forever` is awaited"]
pub struct Driver<P: Partition, F: Family, H, V, E> {
    queue: DueQueue<F>,
    scope: Scope<P>,
    handler: Arc<H>,
    poll_every: Duration,
    on_error: Hook<V, E>,
    /// Failures in a row of entries, by their bytes; those of the driver itself have none.
    failures: HashMap<Option<Vec<u8>>, u32>,
    served: ServeReport,
}

/// Called with an error, and the entry if one is at fault.
type Hook<V, E> = Box<dyn Fn(Option<&V>, &E) + Send + Sync>;

/// What a driver did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServeReport {
    /// Entries whose handler ran and committed.
    pub handled: usize,
    /// Failed attempts, each of which was logged or passed to [`Driver::on_error`].
    pub failed: usize,
}

/// What a turn found.
struct Turn {
    handled: usize,
    /// The next deadline; `None` if the queue is empty.
    next: Option<i64>,
    /// The engine's time in the same transaction, in milliseconds since 1970.
    now: i64,
}

/// How a driver rests after a turn.
struct Rest {
    /// A deadline before this one ends the rest.
    until_ms: i64,
    /// The longest rest; zero = the next turn begins at once.
    pause: Duration,
    /// The queue could not be read.
    failed: bool,
}

/// The earlier one of two deadlines.
fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// The hook of a driver without one: a warning for each error.
fn log_of<F: Family, V, E: Display>(_: &Key<F>) -> Hook<V, E> {
    let queue = F::DECLARATION.name;
    Box::new(move |entry, error| match entry {
        Some(_) => {
            tracing::warn!(queue, %error, "the handler of a due entry failed; it is tried again later")
        }
        None => tracing::warn!(queue, %error, "a due queue could not be served; it is tried again"),
    })
}

impl<P, F, C> DueQueue<F>
where
    P: Partition,
    F: Family<Partition = P, Kind = SortedSet<C>>,
    F::Ttl: Automatic,
    C: Codec,
    C::Value: Clone,
{
    /// A driver of this queue. For each entry that is due it runs `handler` in the transaction that removes
    /// the entry, with the deadline in milliseconds since 1970: exactly once in all processes, if it
    /// succeeds.
    ///
    /// An error of the handler is logged by `tracing::warn!` with the name of the queue's family, or passed to
    /// [`on_error`](Driver::on_error); it is counted in [`ServeReport::failed`]. The entry gets a later deadline
    /// and is tried again, with growing pauses. The handler may set the entry or others anew.
    ///
    /// How late a handler can run: a deadline that the driver knows is met as exactly as a timer of tokio. One
    /// that this process sets before all others is noticed at most 64 ms after its commit, if that comes
    /// within 85 ms of the call of [`set`](DueQueue::set). A later one, and one of another process, is noticed
    /// within [`poll_every`](Driver::poll_every).
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_primitives::DueQueue;
    /// # use emberkeep_schema::{Id, Number, SortedSet, Text, family, partition};
    /// # partition! { /// One galaxy.
    /// #     pub struct Galaxy = "galaxy"; }
    /// # family! { /// When bombs go off.
    /// #     pub BOMBS = "ember:bombs" {
    /// #         kind: SortedSet<Id<u32>>, partition: Galaxy, parts: (), ttl: persistent, owner: "bombs" } }
    /// # family! { /// Bombs that went off.
    /// #     pub BANGS = "ember:bangs" {
    /// #         kind: Text<Number<i64>>, partition: Galaxy, parts: (), ttl: persistent, owner: "bombs" } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let scope = Store::new(std::sync::Arc::new(Embedded::in_memory())).scope(Galaxy);
    /// # let bombs = DueQueue::new(BOMBS.key());
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let driver = bombs
    ///     .serve(&scope, |tx, _bomb, _at_ms| tx.incr_by(&BANGS.key(), 1))
    ///     .on_error(|bomb, error: &Error| eprintln!("bomb {bomb:?}: {error}"))
    ///     .until(async { drop(stopped.await) });
    /// let driver = tokio::spawn(driver);
    /// scope.transact(move |tx| { let at = tx.now() + 20; bombs.set(tx, &7, at) }).await?;
    /// while scope.get(&BANGS.key()).await? != Some(1) {
    ///     tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    /// }
    /// drop(stop);
    /// assert_eq!(driver.await.expect("no panic").handled, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve<H, E>(&self, scope: &Scope<P>, handler: H) -> Driver<P, F, H, C::Value, E>
    where
        H: Fn(&mut Tx<'_, P>, &C::Value, i64) -> Result<(), E> + Send + Sync + 'static,
        E: From<Error> + Display + Send + 'static,
    {
        Driver {
            queue: self.clone(),
            scope: scope.clone().prefetch(&self.key, Read::ZRange(first_ranks(DUE_PER_TURN + 1), false)),
            handler: Arc::new(handler),
            poll_every: DUE_POLL_EVERY,
            on_error: log_of(&self.key),
            failures: HashMap::new(),
            served: ServeReport::default(),
        }
    }
}

impl<P, F, H, C, E> Driver<P, F, H, C::Value, E>
where
    P: Partition,
    F: Family<Partition = P, Kind = SortedSet<C>>,
    F::Ttl: Automatic,
    C: Codec,
    C::Value: Clone,
    H: Fn(&mut Tx<'_, P>, &C::Value, i64) -> Result<(), E> + Send + Sync + 'static,
    E: From<Error> + Send + 'static,
{
    /// How long a deadline that another process set may go unnoticed, at least 1 ms; [`DUE_POLL_EVERY`] by
    /// default.
    pub fn poll_every(mut self, poll_every: Duration) -> Self {
        self.poll_every = poll_every.max(Duration::from_millis(1));
        self
    }

    /// Called with each error instead of the warning in the log, and with the entry whose handler failed.
    /// `None` = the queue could not be read.
    pub fn on_error(mut self, hook: impl Fn(Option<&C::Value>, &E) + Send + Sync + 'static) -> Self {
        self.on_error = Box::new(hook);
        self
    }

    /// Runs until the future is dropped.
    pub async fn forever(self) {
        self.until(std::future::pending()).await;
    }

    /// Runs until `shutdown` is ready, finishes the turn that it is in, and reports what it did.
    pub async fn until(mut self, shutdown: impl Future<Output = ()> + Send) -> ServeReport {
        let registration = Registration::new(self.queue.name(&self.scope));
        let mut shutdown = std::pin::pin!(shutdown);
        // The transaction that set an earlier deadline may not have committed yet: read again, soon and then later.
        let mut rechecks = [].iter();
        loop {
            registration.reads();
            let Rest { until_ms, mut pause, failed } = self.turn().await;
            if let Some(recheck) = rechecks.next().filter(|_| !failed) {
                pause = pause.min(*recheck);
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return self.served,
                // No deadline ends the pause after a failure: the store has to recover first.
                () = registration.earlier(until_ms), if !failed => rechecks = DUE_RECHECK_AFTER.iter(),
                () = tokio::time::sleep(pause), if !pause.is_zero() => {}
                () = tokio::task::yield_now(), if pause.is_zero() => {}
            }
        }
    }

    /// Handles a part of what is due: in one transaction or, if that fails, entry by entry.
    async fn turn(&mut self) -> Rest {
        let turn = match self.pop().await {
            Ok(turn) => turn,
            Err(error) => match self.one_by_one(error).await {
                Ok(turn) => turn,
                Err(error) => {
                    let pause = self.report(None, None, &error);
                    return Rest { until_ms: i64::MIN, pause, failed: true };
                }
            },
        };
        self.failures.remove(&None);
        self.served.handled += turn.handled;
        let left = turn.next.map(|next| Duration::from_millis(next.saturating_sub(turn.now).max(0) as u64));
        let pause = left.map_or(self.poll_every, |left| left.min(self.poll_every));
        Rest { until_ms: turn.next.unwrap_or(i64::MAX), pause, failed: false }
    }

    /// Pops what is due and runs the handlers, all in one transaction.
    async fn pop(&self) -> Result<Turn, E> {
        let (queue, handler, name) = (self.queue.clone(), self.handler.clone(), self.queue.name(&self.scope));
        let transaction = self.scope.transact(move |tx| {
            // One more than is handled: it says when the next one is due.
            let FirstEntries { mut due, mut next } = queue.first(tx, DUE_PER_TURN + 1)?;
            if due.len() > DUE_PER_TURN {
                next = due.pop().map(|(_, at)| at);
            }
            for (what, at) in &due {
                tx.zrem(&queue.key, what)?;
                let (result, set) = wake::handling(&name, || handler(tx, what, *at));
                result?;
                next = earlier(next, set);
            }
            Ok::<_, E>(Turn { handled: due.len(), next, now: tx.now() })
        });
        transaction.await
    }

    /// Handles what is due in a transaction each, after all together failed. An entry that fails again is
    /// reported and postponed. An error says that the store failed.
    async fn one_by_one(&mut self, together: E) -> Result<Turn, E> {
        let queue = self.queue.clone();
        let due = self.scope.transact(move |tx| queue.due(tx, DUE_PER_TURN)).await?;
        if due.is_empty() {
            return Err(together);
        }
        let mut handled = 0;
        for (what, at) in due {
            let (queue, handler, entry) = (self.queue.clone(), self.handler.clone(), what.clone());
            let single = self.scope.transact(move |tx| {
                // Another process may have handled it.
                if queue.get(tx, &entry)? != Some(at) {
                    return Ok(false);
                }
                tx.zrem(&queue.key, &entry)?;
                handler(tx, &entry, at)?;
                Ok::<_, E>(true)
            });
            match single.await {
                Ok(popped) => {
                    handled += usize::from(popped);
                    self.failures.remove(&Some(encoded::<C>("entry", &what)?));
                }
                Err(error) => self.postpone(what, at, error).await?,
            }
        }
        let queue = self.queue.clone();
        let (next, now) = self.scope.transact(move |tx| Ok::<_, E>((queue.next(tx)?, tx.now()))).await?;
        Ok(Turn { handled, next, now })
    }

    /// Reports an entry that failed and gives it a later deadline, unless it was changed meanwhile.
    async fn postpone(&mut self, what: C::Value, at: i64, error: E) -> Result<(), E> {
        let pause = self.report(Some(encoded::<C>("entry", &what)?), Some(&what), &error);
        let queue = self.queue.clone();
        let later = self.scope.transact(move |tx| {
            if queue.get(tx, &what)? == Some(at) {
                let again = tx.now() + pause.as_millis() as i64;
                queue.put(tx, &what, again)?;
            }
            Ok::<_, E>(())
        });
        later.await
    }

    /// Reports a failure and returns the pause before the next attempt.
    fn report(&mut self, entry: Option<Vec<u8>>, what: Option<&C::Value>, error: &E) -> Duration {
        self.served.failed += 1;
        (self.on_error)(what, error);
        if self.failures.len() >= DUE_FAILING_MAX {
            self.failures.clear();
        }
        let failures = self.failures.entry(entry).or_default();
        *failures += 1;
        DUE_BACKOFF_MIN.saturating_mul(1 << (*failures - 1).min(16)).min(DUE_BACKOFF_MAX)
    }
}
