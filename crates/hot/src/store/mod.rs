//! The store that a game uses: an engine, the layout of its keys, and scopes of one partition each.

mod dump;
mod follow;
mod hash_pages;
mod log;
mod partition_scan;
mod put_if_greater;
mod raw;
mod reads;
mod set_pages;
mod transact;
mod visit;

pub use crate::tx::log::{LogEntry, LogPage, LogPosition, numbered};
pub use crate::tx::member::Member;
pub use crate::tx::operation::OperationStats;
pub use dump::{Dump, PartitionKeys};
pub use follow::{Follower, LogItem};
pub use hash_pages::HashPage;
pub use partition_scan::PartitionPage;
pub use set_pages::SetPage;

use crate::command::{RawKey, Read};
use crate::engine::{Cursor, Engine, Stats};
use crate::error::{Error, Result};
use crate::limits::TRANSACTION_DEADLINE_DEFAULT;
use crate::pubsub::Subscription;
use crate::tx::Rights;
use crate::tx::encode::{built_name, rendered};
use crate::tx::operation::{Operation, all_stats};
use bytes::Bytes;
use emberkeep_schema::{
    Automatic, Channel, Codec, Family, Given, Grant, Key, KeyLayout, Partition, Piece, Service, Set, Text,
    Topology,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Hot state on some engine. Cheap to clone.
#[doc = include_str!("../../docs/store.md")]
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    layout: &'static KeyLayout,
    /// What it acts as; `None` = it may write everything.
    service: Option<&'static Service>,
}

impl Store {
    /// A store on an engine.
    pub fn new(engine: Arc<dyn Engine>) -> Store {
        let layout = shared_layout(engine.key_layout());
        Store { engine, layout, service: None }
    }

    /// The same store. Its scopes act as this service, see [`Scope::acting_as`]. What a program does around the store,
    /// by [`Store::engine`], is not checked.
    pub fn acting_as(mut self, service: &'static Service) -> Store {
        self.service = Some(service);
        self
    }

    /// The service that the store acts as; `None` = it may write everything.
    pub fn service(&self) -> Option<&'static Service> {
        self.service
    }

    /// The scope of one partition. Every transaction runs in one.
    pub fn scope<P: Partition>(&self, partition: P) -> Scope<P> {
        let text = built_name(|out| partition.write(out));
        let caller = Caller {
            store: self.clone(),
            text,
            deadline: TRANSACTION_DEADLINE_DEFAULT,
            prefetched: Vec::new(),
            operation: None,
            grant: None,
            group: None,
        };
        Scope { partition, caller }
    }

    /// How keys are rendered on the engine.
    pub fn key_layout(&self) -> &KeyLayout {
        self.layout
    }

    /// The engine's name, without credentials.
    pub fn name(&self) -> String {
        self.engine.name()
    }

    /// The engine's time, in milliseconds since 1970.
    pub async fn now(&self) -> Result<i64> {
        self.engine.now().await
    }

    /// Checks that the engine accepts transactions now; the error says why not.
    pub async fn ready(&self) -> Result<()> {
        self.engine.ready().await
    }

    /// Why the engine accepts no transactions until it is opened again. `None` if it accepts them, or may
    /// recover by itself, as after a full disk.
    pub fn stopped(&self) -> Option<Error> {
        self.engine.stopped()
    }

    /// Counters of the engine since it was opened. The only error is that of a call inside a transaction.
    pub fn stats(&self) -> Result<Stats> {
        self.engine.stats()
    }

    /// Counters of the transactions that [`Scope::named`] gave a name, sorted by name. They count all stores
    /// of this process.
    pub fn named_stats(&self) -> Vec<OperationStats> {
        all_stats()
    }

    /// The engine, for raw reads, scans and subscriptions.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Subscribes to channels and channel patterns, by raw name.
    pub async fn subscribe(&self, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Result<Subscription> {
        self.engine.subscribe(channels, patterns).await
    }

    /// Subscribes to a family's channels in all partitions. [`Family::parse`] gives the partition of a
    /// message.
    pub async fn subscribe_all<F, C>(&self) -> Result<Subscription>
    where
        F: Family<Kind = Channel<C>>,
        C: Codec,
    {
        self.engine.subscribe(vec![], vec![glob_of::<F>(self.layout, None).into()]).await
    }

    /// One page of a family's keys over all partitions. After a server restarts or slots of a Cluster move,
    /// the cursor is refused (`Error::Invalid`): start again without one.
    pub async fn scan<F: Family>(&self, from: Option<Cursor>, count: usize) -> Result<ScanPage<F>> {
        let pattern = glob_of::<F>(self.layout, None);
        let page = self.engine.scan(from, &pattern, count).await?;
        let keys = page.keys.iter().filter_map(|raw| F::parse(self.layout, raw)).collect();
        Ok(ScanPage { keys, next: page.next })
    }

    /// Closes the engine: waits for running transactions and makes them durable.
    pub async fn close(&self) -> Result<()> {
        self.engine.close().await
    }
}

/// A page of a family's keys.
pub struct ScanPage<F: Family> {
    /// Partition (`None` if the key's pattern does not contain it) and key. A key may appear on two pages.
    pub keys: Vec<(Option<F::Partition>, Key<F>)>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// The process's one copy of a layout. Every transaction needs it, on any thread: a reference count would move
/// its cache line between all cores. It stays until the process ends; layouts are few, one for each prefix.
fn shared_layout(layout: &KeyLayout) -> &'static KeyLayout {
    static LAYOUTS: Mutex<Vec<&'static KeyLayout>> = Mutex::new(Vec::new());
    let mut layouts = LAYOUTS.lock();
    match layouts.iter().find(|one| **one == layout) {
        Some(one) => one,
        None => {
            let new = Box::leak(Box::new(layout.clone()));
            layouts.push(new);
            new
        }
    }
}

/// The glob pattern of all keys of a family, in one partition or in all.
fn glob_of<F: Family>(layout: &KeyLayout, partition: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    // As `Declaration::glob` has it: Redis lets a user subscribe to exactly the patterns of its ACL.
    let partition = partition.or(F::DECLARATION.partition_fixed.map(str::as_bytes));
    let push_partition = |out: &mut Vec<u8>| match partition {
        Some(text) => push_escaped(out, text),
        None => out.push(b'*'),
    };
    push_escaped(&mut out, layout.prefix().as_bytes());
    if layout.topology() == Topology::Cluster {
        out.push(b'{');
        push_partition(&mut out);
        out.push(b'}');
    }
    for piece in F::DECLARATION.pieces {
        match piece {
            Piece::Literal(text) => push_escaped(&mut out, text.as_bytes()),
            Piece::Partition => push_partition(&mut out),
            Piece::Part(_) => out.push(b'*'),
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

/// One partition of a store. Transactions run in it.
#[derive(Clone)]
pub struct Scope<P> {
    partition: P,
    caller: Caller,
}

/// What a scope of any partition has.
#[derive(Clone)]
struct Caller {
    store: Store,
    /// The partition as text.
    text: Bytes,
    deadline: Duration,
    prefetched: Vec<(RawKey, Read)>,
    operation: Option<&'static Operation>,
    grant: Option<&'static Grant>,
    /// What its transactions share commits by; `None` = the partition.
    group: Option<&'static str>,
}

impl Caller {
    /// What its transactions may write; `None` = everything.
    fn rights(&self) -> Option<Rights> {
        self.store.service.map(|service| Rights::new(service, self.grant))
    }
}

impl<P: Partition> Scope<P> {
    /// The store that this is a scope of.
    pub fn store(&self) -> &Store {
        &self.caller.store
    }

    /// The partition in which transactions of this scope run.
    pub fn partition(&self) -> &P {
        &self.partition
    }

    /// The same scope with another time until `Conflict`, at most
    /// [`TRANSACTION_DEADLINE_MAX`](crate::limits::TRANSACTION_DEADLINE_MAX).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.caller.deadline = deadline;
        self
    }

    /// The same scope. Its transactions have this name: in errors such as [`Error::Conflict`], in warnings of
    /// slow closures, in the `tracing` span of each run, and in counters ([`Store::named_stats`]).
    ///
    /// Names are few and constant, such as `"bid"`; the first
    /// [`OPERATION_NAMES_MAX`](crate::limits::OPERATION_NAMES_MAX) are counted each on its own.
    pub fn named(mut self, name: &'static str) -> Self {
        self.caller.operation = Some(Operation::named(name));
        self
    }

    /// The same scope, acting as a service: its transactions write only families that the service owns, and those
    /// that a grant gives it ([`Scope::for_operation`]). Any other write is [`Error::Forbidden`] when the body makes
    /// it, before anything is sent. Without a service everything may be written, as in a game that is one program.
    ///
    /// Reads are not refused: who reads what is documented by `readers:`, and enforced by Redis where each service
    /// has a user of its own (`emberkeep schema acl`).
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_schema::{Hash, Id, Number, Set, Text, Utf8, family, partition, service};
    /// # partition! { /// The one galaxy.
    /// #     pub struct Galaxy = "galaxy"; }
    /// # family! { /// A ship.
    /// #     pub SHIP = "ship:{id}" {
    /// #         kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (id: u32), ttl: persistent, owner: "physics" } }
    /// # family! { /// The ships of a player.
    /// #     pub FLEET = "player:{player}:ships" {
    /// #         kind: Set<Id<u32>>, partition: Galaxy, parts: (player: u32), ttl: persistent, owner: "players" } }
    /// service! {
    ///     /// Moves the ships.
    ///     pub PHYSICS = "physics" {
    ///         /// Adds a ship, also to the fleet of its player.
    ///         SPAWN = "spawn": [FLEET],
    ///     }
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
    /// let physics = store.scope(Galaxy).acting_as(&PHYSICS);
    /// let spawn = |tx: &mut emberkeep_hot::Tx<'_, Galaxy>| {
    ///     tx.hset(&SHIP.key(7), &"name".to_owned(), &"Roci".to_owned())?;
    ///     tx.sadd(&FLEET.key(1), &7)
    /// };
    /// let refused = physics.transact(spawn).await;
    /// assert!(matches!(refused, Err(Error::Forbidden { family: "FLEET", owner: "players", .. })));
    /// physics.for_operation(&SPAWN).transact(spawn).await
    /// # }
    /// ```
    pub fn acting_as(mut self, service: &'static Service) -> Self {
        self.caller.store.service = Some(service);
        self
    }

    /// The same scope, for one compound operation: its transactions may also write what the grant names. A scope has
    /// one grant at a time. A grant of another service than the scope acts as changes nothing, so that a
    /// function that several services call can name the grants of all of them.
    pub fn for_operation(mut self, grant: &'static Grant) -> Self {
        if self.caller.store.service.is_none_or(|service| service.name == grant.service) {
            self.caller.grant = Some(grant);
        }
        self
    }

    /// Whether the transactions of this scope may write whole keys of the key's family, see
    /// [`ReadTx::may_write`](crate::ReadTx::may_write).
    pub fn may_write<F: Family<Partition = P>>(&self, _key: &Key<F>) -> bool {
        self.caller.rights().is_none_or(|rights| rights.covers(F::DECLARATION))
    }

    /// The same scope. On one server, where partitions have no place of their own, its transactions share commits with those
    /// of every scope of this group, whatever their partition; on a Cluster nothing changes. For many small partitions
    /// with a transaction each, such as rate limits of players: without it no two of them ever share a call. They wait for
    /// each other as those of one partition do, so large or slow transactions do not belong into a group.
    pub fn sharing_commits(mut self, group: &'static str) -> Self {
        self.caller.group = Some(group).filter(|_| self.caller.store.layout.topology() == Topology::Single);
        self
    }

    /// The same scope. Its transactions prefetch this read: a remote engine fetches all of them together. A
    /// wrong prefetch costs time, never correctness.
    pub fn prefetch<F: Family<Partition = P>>(mut self, key: &Key<F>, read: Read) -> Self {
        self.caller.prefetched.push((self.raw(key), read));
        self
    }

    /// The same scope. Its transactions prefetch the value of this key, see [`Scope::prefetch`].
    pub fn prefetch_get<F, C>(self, key: &Key<F>) -> Self
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        self.prefetch(key, Read::Get)
    }

    /// The same scope. Its transactions prefetch whether this key exists, see [`Scope::prefetch`].
    pub fn prefetch_exists<F: Family<Partition = P>>(self, key: &Key<F>) -> Self {
        self.prefetch(key, Read::Exists)
    }

    /// The same scope. Its transactions prefetch all members of this set, see [`Scope::prefetch`].
    pub fn prefetch_members<F, M>(self, key: &Key<F>) -> Self
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        self.prefetch(key, Read::SMembers)
    }

    fn raw<F: Family<Partition = P>>(&self, key: &Key<F>) -> RawKey {
        rendered(self.caller.store.layout, &self.partition, key)
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

    /// Sets a value with a TTL, in a transaction of its own.
    pub async fn put_for<F, C>(&self, key: &Key<F>, value: C::Value, life: Duration) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>, Ttl = Given>,
        C: Codec,
    {
        let key = key.clone();
        self.transact(move |tx| tx.put_for(&key, &value, life)).await
    }

    /// Removes a key in a transaction of its own. `true` = it existed; only one of several concurrent
    /// callers gets it.
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

    /// Subscribes to one channel of this partition.
    pub async fn subscribe<F, C>(&self, channel: &Key<F>) -> Result<Subscription>
    where
        F: Family<Partition = P, Kind = Channel<C>>,
        C: Codec,
    {
        self.caller.store.engine.subscribe(vec![self.raw(channel)], vec![]).await
    }
}
