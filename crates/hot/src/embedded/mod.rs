//! The embedded engine: hot state in this process, with the data types of Redis.
//!
//! Responsible for: the five data types, deadlines, transactions under shard locks, scans,
//! publish/subscribe, the memory limit, and the writes that go to the journal.
//! Not responsible for: the journal's files (`journal`), typed keys (`store`), any protocol.
//!
//! Reading order: `slab` and `shard` (where data lies), `value` and `sorted_blocks` (what it is), `read` and
//! `apply` (what commands mean), `locks` and `transact` (how a transaction runs), `checked` (closures under
//! test), `expire` and `rewrite` (background work), `copies` and `dump` (all keys at one moment).

mod apply;
mod background;
mod checked;
mod clock;
mod conditions;
mod copies;
mod dump;
mod durability;
mod expire;
mod glob;
mod locks;
mod log;
mod memory;
mod options;
mod pubsub;
mod read;
mod rewrite;
mod scan_keys;
mod scan_members;
mod shard;
mod slab;
mod sorted_blocks;
mod transact;
mod value;
mod visit;

#[cfg(test)]
mod tests;

pub use clock::{Clock, ManualClock};
pub use options::Options;

use self::background::Background;
use self::clock::Ticker;
use self::durability::Persistence;
use self::locks::{ALL, Locked, text_of};
use self::memory::Memory;
use self::pubsub::PubSub;
use self::read::reply_to;
use self::shard::{KeyHash, Shard};
use self::slab::NEVER;
use crate::command::{RawKey, Read, Reply};
use crate::engine::{
    Cursor, DumpSteps, Engine, FieldPage, KeyFilter, KeyList, LocalOutcome, Lsn, MemberCursor, MemberPage,
    Page, Pending, Stats, TransactionRequest, VisitText,
};
use crate::error::{Error, Result};
use crate::journal::{Journal, Recovery};
use crate::limits::SHARDS;
use crate::pubsub::Subscription;
use crate::tx::{Transaction, check_outside};
use bytes::Bytes;
use emberkeep_schema::KeyLayout;
use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use parking_lot::Mutex;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Hot state in this process.
#[doc = include_str!("../../docs/embedded.md")]
pub struct Embedded {
    inner: Arc<Inner>,
    background: Option<Background>,
}

/// On its own cache lines: every transaction changes it, and every reader needs the fields beside it.
#[repr(align(128))]
struct CacheAligned<T>(T);

/// What the engine and its background thread share.
pub(crate) struct Inner {
    shards: Box<[Mutex<Shard>]>,
    hasher: SeedableRandomState,
    ticker: Ticker,
    pubsub: Arc<PubSub>,
    /// `None` without a folder, and during the load.
    persistence: OnceLock<Persistence>,
    memory: Memory,
    layout: KeyLayout,
    random: CacheAligned<AtomicU64>,
    conflicts: AtomicU64,
    committed_without_locks: AtomicU64,
    closed: AtomicBool,
    /// Whether closures are checked for purity; see [`Options::check_closures`].
    checks_closures: bool,
    /// Held by the journal's rewrite or the dump that runs: they share the numbers of the shards.
    copying: Arc<tokio::sync::Mutex<()>>,
    /// The shard that the next sweep begins with.
    sweep_next: AtomicUsize,
}

impl Embedded {
    /// An engine without a folder: its data ends with the process.
    pub fn in_memory() -> Embedded {
        Embedded::open(Options::default()).expect("without a folder there is nothing that could fail")
    }

    /// Options of a new engine.
    pub fn builder() -> Options {
        Options::default()
    }

    /// Opens an engine. With a folder, loads it first.
    pub fn open(options: Options) -> Result<Embedded> {
        let inner = Arc::new(Inner::new(&options));
        if let Some(persistence) = Persistence::open(&options, &inner)? {
            inner.persistence.get_or_init(|| persistence);
            inner.memory.adjust(inner.stats().memory_bytes as i64);
        }
        let background = options.background.then(|| Background::start(inner.clone()));
        Ok(Embedded { inner, background })
    }

    /// What the start found in the folder; `None` without one.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.inner.persistence.get().map(|persistence| &persistence.recovery)
    }

    /// Removes expired keys for at most this long and returns how many. The background thread does the same.
    #[cfg(test)]
    fn sweep_once(&self, budget: std::time::Duration) -> usize {
        expire::cycle(&self.inner, budget).removed
    }

    /// Replaces the journal by the current state. The background thread does so when the journal has grown.
    pub fn rewrite_journal(&self) -> Result<()> {
        rewrite::rewrite(&self.inner)
    }

    fn shut(&self) -> Result<()> {
        self.inner.closed.store(true, Ordering::SeqCst);
        if let Some(background) = &self.background {
            background.stop();
        }
        // A running transaction has a lock; after this line none runs.
        drop(Locked::take(&self.inner, ALL));
        let closed = self.inner.journal().map_or(Ok(()), |journal| journal.close());
        self.inner.pubsub.close();
        closed
    }

    /// Number of keys, including expired ones that are not removed yet. Waits for every shard, so it must not be
    /// called inside a transaction.
    pub fn len(&self) -> usize {
        self.inner.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    fn new(options: &Options) -> Inner {
        let seed = options.seed.unwrap_or_else(|| SeedableRandomState::random().hash_one(0));
        Inner {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: match options.seed {
                Some(seed) => SeedableRandomState::with_seed(seed, SharedSeed::global_fixed()),
                None => SeedableRandomState::random(),
            },
            ticker: Ticker::new(options.clock.clone()),
            pubsub: Arc::default(),
            persistence: OnceLock::new(),
            memory: Memory::new(options.memory_bytes_max),
            layout: options.layout.clone(),
            random: CacheAligned(AtomicU64::new(seed)),
            conflicts: AtomicU64::new(0),
            committed_without_locks: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            checks_closures: options.check_closures,
            copying: Arc::default(),
            sweep_next: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> KeyHash {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        KeyHash::new(hasher.finish(), self.layout.is_log(key))
    }

    /// Refuses a call inside a body, whose locks it would wait for, and any call of a closed engine.
    #[inline]
    fn check_callable(&self) -> Result<()> {
        check_outside()?;
        if self.closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    fn read(&self, key: &[u8], read: &Read) -> Reply {
        let hashed = self.hash(key);
        let shard = self.shards[hashed.shard()].lock();
        reply_to(shard.living(hashed, key, || self.ticker.now()), read)
    }

    #[inline]
    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let hashed = self.hash(key);
        let shard = self.shards[hashed.shard()].lock();
        let Some(entry) = shard.entry(hashed, key) else { return Ok(false) };
        // Copied before the clock is read: reading a clock waits for every earlier load. Without it in
        // between, the processor fetches key and value from memory at the same time.
        let copied = text_of(key, &entry.value).map(|text| out.extend_from_slice(text));
        if entry.deadline != NEVER && entry.is_expired(self.ticker.now()) {
            out.clear();
            return Ok(false);
        }
        copied.map(|()| true)
    }

    fn stats(&self) -> Stats {
        let committed = self.committed_without_locks.load(Ordering::Relaxed);
        let conflicts = self.conflicts.load(Ordering::Relaxed);
        let mut stats = Stats { committed, conflicts, ..Stats::default() };
        for shard in &self.shards {
            let shard = shard.lock();
            stats.committed += shard.committed;
            stats.expired += shard.expired;
            stats.keys += shard.len() as u64;
            stats.memory_bytes += shard.bytes() as u64;
        }
        stats.commit_calls = stats.committed;
        stats.journal_pending_bytes = self.journal().map_or(0, |journal| journal.pending_bytes());
        stats
    }
}

impl Engine for Embedded {
    fn name(&self) -> String {
        "the embedded engine".into()
    }

    fn key_layout(&self) -> &KeyLayout {
        &self.inner.layout
    }

    fn run_local(
        &self,
        partition: &[u8],
        transaction: &mut dyn Transaction,
        seed: u64,
    ) -> Option<LocalOutcome> {
        Some(transact::transact(&self.inner, partition, transaction, seed))
    }

    fn get_local(&self, key: &[u8], out: &mut Vec<u8>) -> Option<Result<bool>> {
        let answer = self.inner.check_callable().and_then(|()| self.inner.get(key, out));
        // The value may not be durable yet; then the caller has to wait, which is not possible here.
        (self.inner.read_lsn() == Lsn(0)).then_some(answer)
    }

    fn visit_local(&self, keys: &KeyList, visit: VisitText<'_>) -> Option<Result<Lsn>> {
        Some(self.inner.check_callable().map(|()| {
            visit::texts(&self.inner, keys, visit);
            self.inner.read_lsn()
        }))
    }

    fn visit_members_local(
        &self,
        key: &RawKey,
        from: Option<MemberCursor>,
        count: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Option<Result<(Option<MemberCursor>, Lsn)>> {
        let page = || scan_members::visit(&self.inner, key, from, count, visit);
        Some(self.inner.check_callable().and_then(|()| Ok((page()?, self.inner.read_lsn()))))
    }

    fn wait_durable(&self, lsn: Lsn) -> Pending<'_, Result<()>> {
        self.inner.wait_durable(lsn)
    }

    fn run(&self, mut request: TransactionRequest) -> Pending<'_, Result<Box<dyn Transaction>>> {
        Box::pin(async move {
            let TransactionRequest { partition, transaction, seed, .. } = &mut request;
            let outcome = transact::transact(&self.inner, partition, &mut **transaction, *seed);
            self.inner.wait_durable(outcome.lsn).await?;
            outcome.result.map(|()| request.transaction)
        })
    }

    fn read_many(&self, reads: Vec<(RawKey, Read)>) -> Pending<'_, Result<Vec<Reply>>> {
        Box::pin(async move {
            self.inner.check_callable()?;
            let replies = reads.iter().map(|(key, read)| self.inner.read(key, read)).collect();
            self.inner.wait_durable(self.inner.read_lsn()).await?;
            Ok(replies)
        })
    }

    fn scan<'a>(
        &'a self,
        from: Option<Cursor>,
        pattern: &'a [u8],
        count: usize,
    ) -> Pending<'a, Result<Page>> {
        Box::pin(async move {
            self.inner.check_callable()?;
            let page = scan_keys::page(&self.inner, from, pattern, count);
            self.inner.wait_durable(self.inner.read_lsn()).await?;
            Ok(page)
        })
    }

    fn dump(&self, chosen: KeyFilter) -> Option<Pending<'_, Result<Box<dyn DumpSteps>>>> {
        Some(Box::pin(dump::begin(&self.inner, chosen)))
    }

    fn scan_members<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<MemberPage>> {
        Box::pin(async move {
            self.inner.check_callable()?;
            let page = scan_members::members(&self.inner, key, from, count);
            self.inner.wait_durable(self.inner.read_lsn()).await?;
            page
        })
    }

    fn scan_fields<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<FieldPage>> {
        Box::pin(async move {
            self.inner.check_callable()?;
            let page = scan_members::fields(&self.inner, key, from, count);
            self.inner.wait_durable(self.inner.read_lsn()).await?;
            page
        })
    }

    fn subscribe(&self, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Pending<'_, Result<Subscription>> {
        Box::pin(async move {
            self.inner.check_callable()?;
            Ok(self.inner.pubsub.subscribe(channels, patterns))
        })
    }

    fn now(&self) -> Pending<'_, Result<i64>> {
        Box::pin(async move {
            check_outside()?;
            Ok(self.inner.ticker.now())
        })
    }

    fn ready(&self) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            self.inner.check_callable()?;
            self.inner.journal().map_or(Ok(()), Journal::running)
        })
    }

    fn stopped(&self) -> Option<Error> {
        self.inner.journal().and_then(Journal::stopped).filter(|error| *error != Error::Closed)
    }

    fn seed(&self) -> u64 {
        self.inner.random.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed)
    }

    fn stats(&self) -> Result<Stats> {
        check_outside()?;
        Ok(self.inner.stats())
    }

    fn close(&self) -> Pending<'_, Result<()>> {
        // Blocks for one sync: there may be no runtime to wait with.
        Box::pin(async move {
            check_outside()?;
            self.shut()
        })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Err(error) = self.shut() {
            tracing::error!(%error, "the engine was dropped after its journal had stopped");
        }
    }
}
