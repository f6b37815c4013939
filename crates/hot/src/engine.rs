//! The interface that every engine implements. Users call it through `Store`.

pub use crate::cursor::{Cursor, MemberCursor};

use crate::command::{KeyDump, Kind, RawKey, Read, Reply};
use crate::error::{Error, Result};
use crate::pubsub::Subscription;
use crate::tx::Transaction;
use bytes::Bytes;
use emberkeep_schema::KeyLayout;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A boxed future of an engine.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A transaction with everything that an engine needs to run it.
pub struct TransactionRequest {
    /// The partition's text: the hash tag of its keys on a Cluster, and part of the names of its log and
    /// receipts.
    pub partition: Bytes,
    /// Reads that the body will probably make. A remote engine fetches them together.
    pub prefetched: Vec<(RawKey, Read)>,
    /// The closure, with its name and its result; it comes back with the answer.
    pub transaction: Box<dyn Transaction>,
    /// Time until the caller gets `Conflict`.
    pub deadline: Duration,
    /// Start of the transaction's random stream.
    pub seed: u64,
}

/// A page of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Keys of this page, possibly none although more follow; a key may appear twice.
    pub keys: Vec<RawKey>,
    /// Cursor of the next page; `None` at the end. After a server restarts or slots of a Cluster move, the
    /// engine refuses it.
    pub next: Option<Cursor>,
}

/// A page of a set's members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPage {
    /// Members of this page, possibly none although more follow; a member may appear twice.
    pub members: Vec<Bytes>,
    /// Cursor of the next page; `None` at the end. If the server restarted or another one has the set, the
    /// scan starts again.
    pub next: Option<MemberCursor>,
}

/// A page of a hash's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPage {
    /// Fields of this page with their values, possibly none although more follow; a field may appear twice.
    pub fields: Vec<(Bytes, Bytes)>,
    /// Cursor of the next page; `None` at the end. If the server restarted or another one has the hash, the
    /// scan starts again.
    pub next: Option<MemberCursor>,
}

/// Counters of an engine since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that were committed.
    pub committed: u64,
    /// Runs of a body that were repeated, because validation or a lock failed.
    pub conflicts: u64,
    /// Commits that carried more than one transaction.
    pub combined_commits: u64,
    /// Transactions in those commits.
    pub combined_transactions: u64,
    /// Calls to the backend for commits (embedded: commits).
    pub commit_calls: u64,
    /// Calls to the backend for reads of transactions.
    pub read_calls: u64,
    /// Commits that waited for the fairness lease of another process.
    pub lease_waits: u64,
    /// Lost replies whose outcome was found by a commit receipt.
    pub receipts_asked: u64,
    /// Keys that expired (embedded).
    pub expired: u64,
    /// Keys, including those that expired and are not removed yet (embedded).
    pub keys: u64,
    /// Bytes of keys and values, as counted against the memory limit (embedded).
    pub memory_bytes: u64,
    /// Bytes of the journal since its last sync (embedded).
    pub journal_pending_bytes: u64,
}

/// Keys of one call, in one piece of memory.
#[derive(Debug, Clone, Default)]
pub struct KeyList {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList {
    /// Adds the key that `write` appends to the bytes.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.text);
        self.ends.push(self.text.len());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key at a place below [`KeyList::len`].
    pub fn at(&self, place: usize) -> &[u8] {
        let from = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[from..self.ends[place]]
    }

    /// All of them in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|place| self.at(place))
    }
}

/// Takes the string at the key of a place in a list; `None` = the key is absent.
pub type VisitText<'a> = &'a mut dyn FnMut(usize, Result<Option<&[u8]>>);

/// Chooses keys of a dump by their raw name: `None` = not this one, otherwise the type that it should have. It runs
/// under locks and uses nothing of the engine.
pub type KeyFilter = Arc<dyn Fn(&[u8]) -> Option<Kind> + Send + Sync>;

/// A dump under way. Dropped before its end it costs nothing more.
pub trait DumpSteps: Send {
    /// The moment that the dump shows, in milliseconds since 1970.
    fn at(&self) -> i64;

    /// The next keys, possibly none although more follow; `None` at the end. Each key comes once. Locks are held for
    /// less than a millisecond, unless a single key is large.
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<KeyDump>>>>;
}

/// A backend that stores hot state.
pub trait Engine: Send + Sync + 'static {
    /// The engine's name in messages, without credentials.
    fn name(&self) -> String;

    /// How keys are rendered on it: topology and prefix.
    fn key_layout(&self) -> &KeyLayout;

    /// Runs a transaction on the caller's stack, without allocation. `None` = the engine is remote, use
    /// [`Engine::run`].
    fn run_local(
        &self,
        partition: &[u8],
        transaction: &mut dyn Transaction,
        seed: u64,
    ) -> Option<LocalOutcome> {
        let _ = (partition, transaction, seed);
        None
    }

    /// Reads the string at a key into `out`, if the engine can answer at once. `Some(Ok(false))` = the key
    /// is absent. `None` = use [`Engine::read_many`].
    fn get_local(&self, key: &[u8], out: &mut Vec<u8>) -> Option<Result<bool>> {
        let _ = (key, out);
        None
    }

    /// Lends the strings at many keys, in any order and each at some moment after the call, if the engine can answer at
    /// once: the position is waited for before anything is made of them. `visit` runs under locks and uses nothing of the
    /// engine. `None` = use [`Engine::read_many`].
    fn visit_local(&self, keys: &KeyList, visit: VisitText<'_>) -> Option<Result<Lsn>> {
        let _ = (keys, visit);
        None
    }

    /// Lends one page of the members of a set in the same way. `None` = use [`Engine::scan_members`].
    fn visit_members_local(
        &self,
        key: &RawKey,
        from: Option<MemberCursor>,
        count: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Option<Result<(Option<MemberCursor>, Lsn)>> {
        let _ = (key, from, count, visit);
        None
    }

    /// Waits until the write-ahead log is durable up to this position.
    fn wait_durable(&self, lsn: Lsn) -> Pending<'_, Result<()>> {
        let _ = lsn;
        Box::pin(async { Ok(()) })
    }

    /// Runs a transaction to its end and returns it with its result inside.
    fn run(&self, request: TransactionRequest) -> Pending<'_, Result<Box<dyn Transaction>>>;

    /// Answers plain reads in one round trip, each at some moment after the call. Refusals are replies.
    fn read_many(&self, reads: Vec<(RawKey, Read)>) -> Pending<'_, Result<Vec<Reply>>>;

    /// One page of the keys that match a glob pattern (`*`, `?`, `[a-z]`, `\`); about `count` keys are
    /// examined. Never blocks other callers. All pages together return every key that exists during the
    /// whole scan. After a server restarts or slots move, the cursor is refused (`Error::Invalid`): start
    /// again without one.
    fn scan<'a>(&'a self, from: Option<Cursor>, pattern: &'a [u8], count: usize)
    -> Pending<'a, Result<Page>>;

    /// The same over the keys of one partition, by its text. A Cluster asks only the server of its slot. The
    /// pattern must name the partition: on one server all keys are examined.
    fn scan_partition<'a>(
        &'a self,
        partition: &'a [u8],
        from: Option<Cursor>,
        pattern: &'a [u8],
        count: usize,
    ) -> Pending<'a, Result<Page>> {
        let _ = partition;
        self.scan(from, pattern, count)
    }

    /// Begins a dump of the chosen keys as they are at one moment, while transactions continue. One runs at a time:
    /// this one begins when another, or a rewrite of the journal, has ended. Keys that expire meanwhile may be left
    /// out. `None` = the engine has no such moment, see [`Store::dump`](crate::Store::dump).
    fn dump(&self, chosen: KeyFilter) -> Option<Pending<'_, Result<Box<dyn DumpSteps>>>> {
        let _ = chosen;
        None
    }

    /// One page of about `count` members of a set. Never blocks other callers. All pages together return
    /// every member that is there during the whole scan. A key of another type is the error of
    /// [`wrong_type`](crate::command::wrong_type).
    fn scan_members<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<MemberPage>>;

    /// The same for about `count` fields of a hash.
    fn scan_fields<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<FieldPage>>;

    /// Subscribes to channels and to channel patterns, by raw name.
    fn subscribe(&self, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Pending<'_, Result<Subscription>>;

    /// The engine's time, in milliseconds since 1970.
    fn now(&self) -> Pending<'_, Result<i64>>;

    /// Checks that the engine accepts transactions now; the error says why not.
    fn ready(&self) -> Pending<'_, Result<()>>;

    /// Why the engine accepts no transactions until it is opened again. `None` if it accepts them, or may
    /// recover by itself, as after a full disk.
    fn stopped(&self) -> Option<Error> {
        None
    }

    /// A random number, the seed of a transaction's random stream.
    fn seed(&self) -> u64;

    /// Counters since the start. An error inside a body, as with every call: see
    /// [`check_outside`](crate::tx::check_outside).
    fn stats(&self) -> Result<Stats>;

    /// Closes the engine: waits for running transactions, makes them durable, stops background work.
    fn close(&self) -> Pending<'_, Result<()>>;
}

/// The outcome of a transaction that ran on the caller's stack.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "wait until the LSN is durable before returning the result"]
pub struct LocalOutcome {
    /// `Ok` if it was committed, or had nothing to write. With an error nothing was written.
    pub result: Result<()>,
    /// Pass to [`Engine::wait_durable`] before returning a result or an error to the caller: both may depend
    /// on writes that are not yet on disk.
    pub lsn: Lsn,
    /// When the call began.
    pub started: Instant,
    /// When the body ended its last run.
    pub ended: Instant,
}

/// A position in the write-ahead log (log sequence number). Zero = there is nothing to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lsn(pub u64);
