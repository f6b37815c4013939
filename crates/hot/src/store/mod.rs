//! The store: what a game holds. An engine, the layout of its keys, and scopes of one partition.

mod decode;
mod families;
mod log;
mod member;
mod reads;
mod transaction;
mod typed;

pub use log::{LogEntry, LogPage, log_keys, stored_entry};
pub use member::{Member, SetPage};
pub use typed::Tx;

use crate::command::{RawKey, Read};
use crate::engine::{Cursor, Ended, Engine, Order, Stats, Ticket};
use crate::error::{Error, Result};
use crate::limits::TRANSACTION_DEADLINE_DEFAULT;
use crate::pubsub::Subscription;
use bytes::Bytes;
use emberkeep_schema::{
    Automatic, Channel, Codec, Family, Given, Key, KeyLayout, Partition, Piece, Set, Text,
};
use families::Families;
use std::sync::Arc;
use std::time::Duration;
use transaction::ClosureTransaction;
use typed::rendered;

/// Hot state on some engine. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    layout: Arc<KeyLayout>,
}

impl Store {
    /// A store on an engine.
    pub fn new(engine: Arc<dyn Engine>) -> Store {
        let layout = Arc::new(engine.key_layout().clone());
        Store { engine, layout }
    }

    /// The part of the store in which one partition lives. Every transaction runs in one.
    pub fn scope<P: Partition>(&self, partition: P) -> Scope<P> {
        let text = typed::in_scratch::<Error>(|out| {
            partition.write(out);
            Ok(())
        });
        let text = text.expect("a partition's text is always written");
        Scope {
            store: self.clone(),
            partition,
            text,
            deadline: TRANSACTION_DEADLINE_DEFAULT,
            prefetched: Vec::new(),
        }
    }

    /// How keys are written on this store's engine.
    pub fn key_layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// The engine's name, without credentials.
    pub fn name(&self) -> String {
        self.engine.name()
    }

    /// The engine's time, in milliseconds since 1970.
    pub async fn now(&self) -> Result<i64> {
        self.engine.now().await
    }

    /// Whether the engine takes transactions now; the error says what keeps it from that.
    pub async fn ready(&self) -> Result<()> {
        self.engine.ready().await
    }

    /// Why the engine takes no transactions until it is opened again; `None` if it does, or may by itself, as on a full disk.
    pub fn stopped(&self) -> Option<Error> {
        self.engine.stopped()
    }

    /// What the engine counted since it was opened.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The engine itself: raw reads, scans, subscriptions.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Messages of channels and channel patterns, by their raw names.
    pub async fn subscribe(&self, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Result<Subscription> {
        self.engine.subscribe(channels, patterns).await
    }

    /// Messages of a family's channels in all partitions. [`Family::parse`] tells which one a message is of.
    pub async fn subscribe_all<F, C>(&self) -> Result<Subscription>
    where
        F: Family<Kind = Channel<C>>,
        C: Codec,
    {
        self.engine.subscribe(vec![], vec![glob_of::<F>(&self.layout).into()]).await
    }

    /// One page of a family's keys over all partitions, with the partition where the key tells it. A cursor is refused
    /// (`Error::Invalid`) where a server restarted or slots of a Cluster moved since: begin anew, without one.
    pub async fn scan<F: Family>(&self, from: Option<Cursor>, count: usize) -> Result<ScanPage<F>> {
        let pattern = glob_of::<F>(&self.layout);
        let page = self.engine.scan(from, &pattern, count).await?;
        let keys = page.keys.iter().filter_map(|raw| F::parse(&self.layout, raw)).collect();
        Ok(ScanPage { keys, next: page.next })
    }

    /// Ends the engine: in-flight work finishes and is made durable.
    pub async fn close(&self) -> Result<()> {
        self.engine.close().await
    }
}

/// A page of a family's keys.
pub struct ScanPage<F: Family> {
    /// Partition, where the key tells it, and key. A key may appear on two pages.
    pub keys: Vec<(Option<F::Partition>, Key<F>)>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// The glob pattern of all keys of a family.
fn glob_of<F: Family>(layout: &KeyLayout) -> Vec<u8> {
    let mut out = Vec::new();
    push_escaped(&mut out, layout.prefix().as_bytes());
    if layout.topology() == emberkeep_schema::Topology::Cluster {
        out.extend_from_slice(b"{*}");
    }
    for piece in F::DECLARATION.pieces {
        match piece {
            Piece::Literal(text) => push_escaped(&mut out, text.as_bytes()),
            Piece::Partition | Piece::Part(_) => out.push(b'*'),
        }
    }
    out
}

fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}

/// One partition of a store: where transactions run.
#[derive(Clone)]
pub struct Scope<P> {
    store: Store,
    partition: P,
    text: Bytes,
    deadline: Duration,
    prefetched: Vec<(RawKey, Read)>,
}

impl<P: Partition> Scope<P> {
    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The partition.
    pub fn partition(&self) -> &P {
        &self.partition
    }

    /// The same scope, with another time until `Conflict`; more than [`TRANSACTION_DEADLINE_MAX`](crate::limits::TRANSACTION_DEADLINE_MAX)
    /// counts as that.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same scope, whose transactions will probably make this read: prefetched reads go out together on engines that are
    /// far away. A wrong prefetch costs time, never correctness.
    pub fn prefetch<F: Family<Partition = P>>(mut self, key: &Key<F>, read: Read) -> Self {
        self.prefetched.push((self.raw(key), read));
        self
    }

    /// The same scope, whose transactions will probably `get` this key, see [`Scope::prefetch`].
    pub fn prefetch_get<F, C>(self, key: &Key<F>) -> Self
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        self.prefetch(key, Read::Get)
    }

    /// The same scope, whose transactions will probably ask whether this key exists, see [`Scope::prefetch`].
    pub fn prefetch_exists<F: Family<Partition = P>>(self, key: &Key<F>) -> Self {
        self.prefetch(key, Read::Exists)
    }

    /// The same scope, whose transactions will probably read all members of this set, see [`Scope::prefetch`].
    pub fn prefetch_members<F, M>(self, key: &Key<F>) -> Self
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        self.prefetch(key, Read::SMembers)
    }

    fn raw<F: Family<Partition = P>>(&self, key: &Key<F>) -> RawKey {
        rendered(&self.store.layout, &self.partition, key)
    }

    /// Runs an atomic transaction.
    ///
    /// The body is a pure function of what it reads, its captures, `tx.now()` and `tx.random()`; it may run
    /// several times, and only the effects of the last run are kept. An error discards them.
    pub async fn transact<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: FnMut(&mut Tx<'_, P>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (layout, partition) = (self.store.layout.clone(), self.partition.clone());
        let mut transaction =
            ClosureTransaction { body, layout, partition, families: Families::default(), result: None };
        let engine = &*self.store.engine;
        let seed = engine.seed();
        match engine.run_local(&self.text, &mut transaction, seed) {
            Some(Ended { result, ticket }) => {
                match ticket {
                    // An engine in process never waits, so a loop of transactions would never let others run.
                    Ticket(0) => tokio::task::consume_budget().await,
                    ticket => engine.settle(ticket).await?,
                }
                result?;
            }
            None => transaction = self.run_there(transaction, seed).await?,
        }
        transaction.result.unwrap_or_else(|| Err(Error::Closed.into()))
    }

    async fn run_there<T, E, F>(
        &self,
        transaction: ClosureTransaction<P, F, T, E>,
        seed: u64,
    ) -> Result<ClosureTransaction<P, F, T, E>, Error>
    where
        F: FnMut(&mut Tx<'_, P>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let order = Order {
            partition: self.text.clone(),
            prefetched: self.prefetched.clone(),
            transaction: Box::new(transaction),
            deadline: self.deadline,
            seed,
        };
        let transaction = self.store.engine.run(order).await?;
        let transaction = transaction.into_any().downcast::<ClosureTransaction<P, F, T, E>>();
        Ok(*transaction.expect("an engine gives back the transaction it was given"))
    }

    /// Sets a value in a transaction of its own.
    pub async fn put<F, C>(&self, key: &Key<F>, value: C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        F::Ttl: Automatic,
        C: Codec,
    {
        let key = key.clone();
        self.transact(move |tx| tx.put(&key, &value)).await
    }

    /// Sets a value for a given time, in a transaction of its own.
    pub async fn put_for<F, C>(&self, key: &Key<F>, value: C::Value, life: Duration) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>, Ttl = Given>,
        C: Codec,
    {
        let key = key.clone();
        self.transact(move |tx| tx.put_for(&key, &value, life)).await
    }

    /// Removes a key in a transaction of its own; `true` for the one caller whose transaction removed it.
    pub async fn del<F: Family<Partition = P>>(&self, key: &Key<F>) -> Result<bool> {
        let key = key.clone();
        self.transact(move |tx| {
            let existed = tx.exists(&key)?;
            if existed {
                tx.del(&key)?;
            }
            Ok::<_, Error>(existed)
        })
        .await
    }

    /// Messages of one channel of this partition.
    pub async fn subscribe<F, C>(&self, channel: &Key<F>) -> Result<Subscription>
    where
        F: Family<Partition = P, Kind = Channel<C>>,
        C: Codec,
    {
        self.store.engine.subscribe(vec![self.raw(channel)], vec![]).await
    }
}
