//! The contract that every engine fulfils. `Store` is its typed face.

pub use crate::cursor::{Cursor, MemberCursor};

use crate::command::{RawKey, Read, Reply};
use crate::error::{Error, Result};
use crate::pubsub::Subscription;
use crate::tx::Transaction;
use bytes::Bytes;
use emberkeep_schema::KeyLayout;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A future of an engine.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A transaction on its way to an engine.
pub struct Order {
    /// The partition's text: what stands in the braces on a Cluster, and names log and receipts.
    pub partition: Bytes,
    /// Reads that the body will probably make; they go out together.
    pub prefetched: Vec<(RawKey, Read)>,
    /// The body.
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
    /// Where to go on; `None` at the end. Stays valid until a server restarts or slots of a Cluster move; then the next
    /// page is refused.
    pub next: Option<Cursor>,
}

/// A page of a set's members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPage {
    /// Members of this page, possibly none although more follow; a member may appear twice.
    pub members: Vec<Bytes>,
    /// Where to go on; `None` at the end. Where another server has the set by now, or it restarted, the walk begins anew.
    pub next: Option<MemberCursor>,
}

/// What an engine counted since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that were committed.
    pub committed: u64,
    /// Runs of a body that proved stale or met a held lock, and were repeated.
    pub conflicts: u64,
    /// Commits that carried more than one transaction.
    pub combined_commits: u64,
    /// Transactions in those commits.
    pub combined_transactions: u64,
    /// Calls to the backend for commits (embedded: commits).
    pub commit_calls: u64,
    /// Calls to the backend for reads of transactions.
    pub read_calls: u64,
    /// Times a commit had to wait for another process' turn.
    pub lease_waits: u64,
    /// Lost replies whose outcome was found by a receipt.
    pub receipts_asked: u64,
    /// Keys removed because their deadline passed (embedded).
    pub expired: u64,
    /// Living keys (embedded; includes those that ended and were not swept yet).
    pub keys: u64,
    /// Bytes in use by keys and values, as accounted against the memory limit (embedded).
    pub memory_bytes: u64,
    /// Bytes of the journal since its last sync (embedded).
    pub journal_pending_bytes: u64,
}

/// One place where hot state lives.
pub trait Engine: Send + Sync + 'static {
    /// How the engine is called in messages, without credentials.
    fn name(&self) -> String;

    /// How keys are written on it: layout and prefix.
    fn key_layout(&self) -> &KeyLayout;

    /// Runs a transaction on the caller's stack if the engine can, without boxing anything. `None` = use
    /// [`Engine::run`].
    fn run_local(&self, partition: &[u8], transaction: &mut dyn Transaction, seed: u64) -> Option<Ended> {
        let _ = (partition, transaction, seed);
        None
    }

    /// The string at a key, at once, if the engine can; `out` becomes the string. `Some(Ok(false))` = there is none.
    /// `None` = use [`Engine::read_many`].
    fn get_local(&self, key: &[u8], out: &mut Vec<u8>) -> Option<Result<bool>> {
        let _ = (key, out);
        None
    }

    /// Waits until what the ticket stands for is as durable as the engine promises.
    fn settle(&self, ticket: Ticket) -> Pending<'_, Result<()>> {
        let _ = ticket;
        Box::pin(async { Ok(()) })
    }

    /// Runs a transaction to its end, and gives it back with its result inside.
    fn run(&self, order: Order) -> Pending<'_, Result<Box<dyn Transaction>>>;

    /// Answers plain reads, each true at a moment after the call, in one round trip. Refusals are replies.
    fn read_many(&self, reads: Vec<(RawKey, Read)>) -> Pending<'_, Result<Vec<Reply>>>;

    /// One page of the keys that match a glob pattern (`*`, `?`, `[a-z]`, `\`), about `count` looked at. Never
    /// blocks others; over all pages, every key is returned that lives throughout. Where that cannot be promised any more,
    /// because a server restarted or slots moved, the cursor is refused (`Error::Invalid`): begin anew, without one.
    fn scan<'a>(&'a self, from: Option<Cursor>, pattern: &'a [u8], count: usize)
    -> Pending<'a, Result<Page>>;

    /// One page of the members of a set, about `count` of them. Never blocks others; over all pages, every member is
    /// returned that is there throughout. A key of another type is the error of [`wrong_type`](crate::command::wrong_type).
    fn scan_members<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<MemberPage>>;

    /// Messages of channels and of channel patterns from now on.
    fn subscribe(&self, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Pending<'_, Result<Subscription>>;

    /// The engine's time, in milliseconds since 1970.
    fn now(&self) -> Pending<'_, Result<i64>>;

    /// Whether the engine takes transactions now; the error says what keeps it from that.
    fn ready(&self) -> Pending<'_, Result<()>>;

    /// Why the engine takes no transactions until it is opened again; `None` if it does, or may by itself, as on a full disk.
    fn stopped(&self) -> Option<Error> {
        None
    }

    /// A number from the engine's source of randomness.
    fn seed(&self) -> u64;

    /// Counters since the start.
    fn stats(&self) -> Stats;

    /// Ends the engine: waits for what is in flight, makes it durable, stops background work.
    fn close(&self) -> Pending<'_, Result<()>>;
}

/// How a transaction ended that ran on the caller's stack.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "nobody may be told before the ticket is settled"]
pub struct Ended {
    /// Whether it was committed.
    pub result: Result<()>,
    /// What [`Engine::settle`] must be awaited with before anybody is told, also of an error: it may rest on reads of
    /// what is not durable yet.
    pub ticket: Ticket,
}

/// What the end of a transaction still waits for. Zero = nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticket(pub u64);
