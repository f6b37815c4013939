//! External clients: programs that use the same keys without Emberkeep, by plain commands.

mod resp;
mod transactions;

pub use resp::RespExternal;
pub use transactions::TransactionsExternal;

use bytes::Bytes;
use emberkeep_hot::command::{Score, Write};
use emberkeep_hot::engine::Pending;
use std::collections::{BTreeMap, BTreeSet};

/// What an external client does to one key.
#[derive(Debug, Clone)]
pub enum Change {
    /// A plain command that is a write of ours as well.
    Write(Write),
    /// Adds to the integer of a hash field: HINCRBY.
    HIncrBy(Bytes, i64),
    /// Adds to the score of a member: ZINCRBY.
    ZIncrBy(Bytes, i64),
    /// ZADD with the score -0.
    ZAddMinusZero(Bytes),
}

/// The value of a key, as an external client reads it.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredValue {
    /// The bytes of a string.
    Text(Bytes),
    /// The fields of a hash with their values.
    Hash(BTreeMap<Bytes, Bytes>),
    /// The members of a set.
    Set(BTreeSet<Bytes>),
    /// The members of a sorted set with their scores.
    SortedSet(BTreeMap<Bytes, Score>),
    /// The elements of a list, from its head.
    List(Vec<Bytes>),
}

/// A plain client on the same data.
pub trait External: Send {
    /// Makes a change; whether the server accepted it.
    fn change<'a>(&'a mut self, key: &'a Bytes, change: Change) -> Pending<'a, bool>;

    /// Makes a write and pushes a note at the tail of a list, in one transaction; whether the write was
    /// accepted. The note of one that was refused may be there or not.
    fn change_and_log<'a>(
        &'a mut self,
        key: &'a Bytes,
        write: Write,
        list: &'a Bytes,
        note: Bytes,
    ) -> Pending<'a, bool>;

    /// SET NX; whether the key was absent.
    fn put_if_absent<'a>(&'a mut self, key: &'a Bytes, value: Bytes) -> Pending<'a, bool>;

    /// Moves an amount between two numbers in one transaction.
    fn transfer<'a>(&'a mut self, from: &'a Bytes, to: &'a Bytes, amount: i64) -> Pending<'a, ()>;

    /// Value and deadline of a key, or `None`.
    fn inspect<'a>(&'a mut self, key: &'a Bytes) -> Pending<'a, Option<(StoredValue, Option<i64>)>>;

    /// Whether a key exists, at a moment between two times of the server.
    fn exists_between<'a>(&'a mut self, key: &'a Bytes) -> Pending<'a, (i64, bool, i64)>;

    /// The server's time in milliseconds.
    fn now(&mut self) -> Pending<'_, i64>;

    /// How many listen to a channel, where the engine can be asked.
    fn listeners<'a>(&'a mut self, channel: &'a Bytes) -> Pending<'a, Option<usize>>;

    /// A blocking change from inside a body, which no lock of the engine may stop: what makes a body stale on
    /// purpose. `false` where the engine's locks make that impossible.
    fn disturb(&mut self, key: &Bytes, write: Write) -> bool;
}
