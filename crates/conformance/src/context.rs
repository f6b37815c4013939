//! The context of a case: a store on an engine, external clients of the same data, and a new partition.

use crate::external::{Change, External};
use crate::families::World;
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::embedded::ManualClock;
use emberkeep_hot::{Error, Result, Scope, Store, Tx};
use emberkeep_schema::{Family, Key, Name};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// An hour: far enough that no deadline of a case comes while the case runs.
const FAR_MS: i64 = 3_600_000;
/// Longest wait for the clock of a real server to pass a deadline.
const CLOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// Makes one more external client.
pub type ExternalMaker = Arc<dyn Fn() -> Box<dyn External> + Send + Sync>;

/// The clock of an engine.
#[derive(Clone)]
pub enum Time {
    /// A clock that the case sets.
    Manual(ManualClock),
    /// The clock of the server.
    Server,
}

/// One engine under test.
#[derive(Clone)]
pub struct Backend {
    /// What the runner calls it.
    pub name: &'static str,
    /// The store under test.
    pub store: Store,
    /// A second store on the same data: another process, where the engine allows one.
    pub other: Store,
    /// Makes clients that use the same store by plain commands.
    pub external: ExternalMaker,
    /// The clock of an engine.
    pub time: Time,
}

/// What one case is given.
pub struct Context {
    backend: Backend,
    partition: Name,
    keys: AtomicU32,
}

impl Context {
    /// A context whose keys no other case uses.
    pub fn new(backend: &Backend, partition: &str) -> Context {
        let partition = Name::new(partition).expect("the runner gives a plain name");
        Context { backend: backend.clone(), partition, keys: AtomicU32::new(0) }
    }

    /// The store under test.
    pub fn store(&self) -> &Store {
        &self.backend.store
    }

    /// The text of the partition in which the case runs.
    pub fn partition(&self) -> &str {
        self.partition.as_str()
    }

    /// The clock, where the suite holds it.
    pub fn manual_clock(&self) -> Option<&ManualClock> {
        match &self.backend.time {
            Time::Manual(clock) => Some(clock),
            Time::Server => None,
        }
    }

    /// One more external client.
    pub fn external(&self) -> Box<dyn External> {
        (self.backend.external)()
    }

    /// A scope of the partition in which the case runs.
    pub fn scope(&self) -> Scope<World> {
        self.backend.store.scope(World(self.partition.clone()))
    }

    /// The case's partition, as another process sees it.
    pub fn other_scope(&self) -> Scope<World> {
        self.backend.other.scope(World(self.partition.clone()))
    }

    /// A second partition of the case's own.
    pub fn scope_beside(&self, name: &str) -> Scope<World> {
        let partition = Name::new(format!("{}.{name}", self.partition)).expect("a plain name");
        self.backend.store.scope(World(partition))
    }

    /// A raw key of the case, in the partition's slot.
    pub fn key(&self, name: &str) -> Bytes {
        let prefix = self.backend.store.key_layout().prefix();
        Bytes::from(format!("{prefix}{{{}}}raw:{name}", self.partition))
    }

    /// A raw key that was never used.
    pub fn fresh(&self) -> Bytes {
        let number = self.keys.fetch_add(1, Ordering::Relaxed);
        self.key(&format!("fresh:{number}"))
    }

    /// A typed key of the case as the engine stores it.
    pub fn raw<F: Family<Partition = World>>(&self, key: &Key<F>) -> Bytes {
        Bytes::from(key.to_text(self.store().key_layout(), self.scope().partition()))
    }

    /// Has an external client write under a typed key; answers the raw key.
    pub async fn plant<F: Family<Partition = World>>(&self, key: &Key<F>, write: Write) -> Bytes {
        let raw = self.raw(key);
        assert!(self.external().change(&raw, Change::Write(write)).await, "the server accepts it");
        raw
    }

    /// A deadline that does not come while the case runs.
    pub async fn far(&self, ms: i64) -> i64 {
        self.now().await + FAR_MS + ms
    }

    /// The time of the engine in milliseconds since 1970.
    pub async fn now(&self) -> i64 {
        self.store().now().await.expect("the engine knows its time")
    }

    /// Returns once the engine's clock is past `at`: a held clock is set, a server's own is polled.
    pub async fn past(&self, at: i64) {
        if let Some(clock) = self.manual_clock() {
            return clock.set(at + 1);
        }
        let (mut external, started) = (self.external(), Instant::now());
        while external.now().await <= at {
            assert!(started.elapsed() < CLOCK_WAIT_MAX, "the server's clock does not come to {at}");
            tokio::task::yield_now().await;
        }
    }

    /// Runs a transaction in the partition of the case.
    pub async fn transaction<T: Send + 'static>(
        &self,
        body: impl FnMut(&mut Tx<'_, World>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.scope().transact(body).await
    }

    /// Makes writes in one transaction.
    pub async fn write(&self, writes: Vec<(Bytes, Write)>) -> Result<()> {
        self.transaction(move |tx| {
            writes.iter().try_for_each(|(key, write)| tx.raw_write(key.clone(), write.clone()))
        })
        .await
    }

    /// Makes one write that must succeed.
    pub async fn put(&self, key: &Bytes, write: Write) {
        let shown = format!("{write:?}");
        self.write(vec![(key.clone(), write)]).await.unwrap_or_else(|e| panic!("{shown}: {e}"));
    }

    /// Reads outside a transaction.
    pub async fn read(&self, key: &Bytes, read: Read) -> Reply {
        let reads = vec![(key.clone(), read)];
        let replies = self.store().engine().read_many(reads).await.expect("plain reads are answered");
        replies.into_iter().next().expect("one reply for one read")
    }

    /// Reads in a transaction of its own.
    pub async fn read_in_transaction(&self, key: &Bytes, read: Read) -> Result<Reply, Error> {
        let key = key.clone();
        self.transaction(move |tx| tx.raw_read(&key, read.clone())).await
    }
}
