//! A transaction on the caller's stack: run the body under the locks it needs, check, commit.
//!
//! The commit, all under the locks:
//!
//! 1. expand log entries to plain writes;
//! 2. lock the shards of all written keys;
//! 3. check preconditions and reserve memory;
//! 4. turn deadlines with a condition into what they do;
//! 5. append the writes to the journal;
//! 6. apply them;
//! 7. deliver the messages.
//!
//! Nothing before 5 has an effect, nothing after it can fail.

use super::Inner;
use super::apply::{Garbage, apply};
use super::if_none;
use super::locks::{ALL, Locked, Lookup};
use super::log;
use super::memory::growth;
use super::shard::KeyHash;
use super::value::Value;
use crate::command::{self, Effects, Expiry, KeyState, RawKey, Read, Reply, Write, parse_integer};
use crate::engine::{LocalOutcome, Lsn};
use crate::error::{Error, Result, show};
use crate::limits::{BODY_WARN, EMBEDDED_ATTEMPTS_MAX};
use crate::tx::{RawTx, ReadSource, Transaction, run_once};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Buffers of a transaction, which the thread keeps for the next one.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) effects: Effects,
    hashes: Vec<KeyHash>,
    garbage: Garbage,
}

thread_local! {
    /// Empty while a transaction of this thread runs.
    static SCRATCH: Cell<Option<Box<Scratch>>> = Cell::new(Some(Box::default()));
}

/// The thread's buffers on loan. They return when this is dropped, after the locks.
struct Loan(Option<Box<Scratch>>);

impl Loan {
    fn take() -> Result<Loan> {
        let scratch = SCRATCH.take();
        if scratch.is_none() {
            // The outer transaction holds locks on this same stack: waiting for them would never end.
            return Err(Error::invalid(
                "transaction",
                "a body started another transaction; a body may only use its own `Tx`",
            ));
        }
        Ok(Loan(scratch))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(mut scratch) = self.0.take() {
            scratch.effects.clear();
            scratch.garbage.clear();
            SCRATCH.set(Some(scratch));
        }
    }
}

/// Runs a transaction to its commit, or to the error that it ends with.
pub(super) fn transact(
    inner: &Inner,
    partition: &[u8],
    transaction: &mut dyn Transaction,
    seed: u64,
) -> LocalOutcome {
    match inner.check_open().and_then(|()| Loan::take()) {
        Ok(loan) => run(inner, partition, transaction, seed, loan),
        Err(error) => LocalOutcome { result: Err(error), lsn: Lsn(0) },
    }
}

fn run(
    inner: &Inner,
    partition: &[u8],
    transaction: &mut dyn Transaction,
    seed: u64,
    mut loan: Loan,
) -> LocalOutcome {
    let scratch = loan.0.as_deref_mut().expect("taken above");
    let mut wanted = 0;
    for attempts in 1.. {
        let mut locked = Locked::take(inner, wanted);
        match attempt(&mut locked, partition, transaction, seed, scratch) {
            Err(Error::Suspended) => {
                scratch.effects.clear();
                wanted = if attempts < EMBEDDED_ATTEMPTS_MAX { wanted | locked.wanted() } else { ALL };
                inner.conflicts.fetch_add(1, Ordering::Relaxed);
            }
            Ok(lsn) => return LocalOutcome { result: Ok(()), lsn },
            // An error may depend on reads that are not durable yet, so its caller waits too.
            Err(error) => {
                return LocalOutcome { result: Err(transaction.explain(error)), lsn: inner.read_lsn() };
            }
        }
    }
    unreachable!("with all shards held no attempt is suspended")
}

fn attempt(
    locked: &mut Locked<'_>,
    partition: &[u8],
    transaction: &mut dyn Transaction,
    seed: u64,
    scratch: &mut Scratch,
) -> Result<Lsn> {
    let started = Instant::now();
    let commits = run_once(transaction, RawTx::new(locked, &mut scratch.effects, seed));
    if locked.suspended() {
        return Err(Error::Suspended);
    }
    let took = started.elapsed();
    if took > BODY_WARN {
        tracing::warn!(partition = %show(partition), ?took, "the body of a transaction ran long under its locks");
    }
    if commits? && !scratch.effects.is_empty() {
        return commit(locked, partition, scratch);
    }
    Ok(locked.engine.read_lsn())
}

fn commit(locked: &mut Locked<'_>, partition: &[u8], scratch: &mut Scratch) -> Result<Lsn> {
    let Scratch { effects, hashes, garbage } = scratch;
    if !effects.log.is_empty() {
        log::expand(locked, partition, effects)?;
    }
    lock_writes(locked, &effects.writes, hashes)?;
    let expired = check(locked, &effects.writes, hashes)?;
    if !expired.is_empty() {
        delete_first(&expired, effects, hashes);
    }
    let engine = locked.engine;
    // Without a limit the growth is not computed: it would look up every key once more.
    let reserved = if engine.memory.is_limited() { growth(locked, &effects.writes, hashes)? } else { 0 };
    if_none::resolve(locked, effects, hashes)?;
    engine.memory.reserve(reserved)?;
    // From here on the transaction is committed: a crash after this line loads it from the journal.
    let lsn = engine.append(effects).inspect_err(|_| engine.memory.adjust(-(reserved as i64)))?;
    apply_all(locked, &effects.writes, hashes, garbage, reserved)?;
    engine.deliver(effects);
    // Counted in a shard that is locked anyway: a shared counter would move its cache line between all cores.
    match locked.shards().next() {
        Some(shard) => shard.committed += 1,
        None => drop(engine.committed_without_locks.fetch_add(1, Ordering::Relaxed)),
    }
    Ok(lsn)
}

fn lock_writes(locked: &mut Locked<'_>, writes: &[(RawKey, Write)], hashes: &mut Vec<KeyHash>) -> Result<()> {
    hashes.clear();
    for (key, _) in writes {
        let hashed = locked.engine.hash(key);
        locked.shard(hashed)?;
        hashes.push(hashed);
    }
    Ok(())
}

/// Checks the preconditions of a list whose shards are all locked. Returns the numbers of the writes whose
/// key has expired but is still stored.
fn check(
    locked: &mut Locked<'_>,
    writes: &[(RawKey, Write)],
    hashes: &[KeyHash],
) -> Result<SmallVec<[usize; 2]>> {
    let mut expired = SmallVec::new();
    command::check(writes, |number| {
        let (key, write) = &writes[number];
        // These replace the value with its deadline, so neither its type nor its expiry matters.
        if matches!(write, Write::Set(_, Expiry::Never | Expiry::At(_)) | Write::Del) {
            return Ok(KeyState::Absent);
        }
        let (shard, found) = locked.find(hashes[number], key)?;
        Ok(match found {
            Lookup::Absent => KeyState::Absent,
            Lookup::Expired => {
                expired.push(number);
                KeyState::Absent
            }
            Lookup::Live(position) => match (&shard.at(position).value, write) {
                (Value::Text(text), Write::IncrBy(_)) => KeyState::Text(parse_integer(text)),
                (value, _) => KeyState::Kind(value.kind()),
            },
        })
    })?;
    command::check_fields(writes, |key, field| {
        let read = Read::HGet(field.clone());
        Ok(match locked.read(key, &read)?.checked(key, &read)? {
            Reply::Blob(text) => Some(text),
            _ => None,
        })
    })?;
    Ok(expired)
}

/// Inserts a DEL of every expired key before the transaction's own writes. The load of a journal has no
/// clock: without the DEL it would apply the writes to the expired value.
fn delete_first(expired: &[usize], effects: &mut Effects, hashes: &mut Vec<KeyHash>) {
    let keys: Vec<RawKey> = expired.iter().map(|number| effects.writes[*number].0.clone()).collect();
    let hashed: Vec<KeyHash> = expired.iter().map(|number| hashes[*number]).collect();
    effects.writes.splice(0..0, keys.into_iter().map(|key| (key, Write::Del)));
    hashes.splice(0..0, hashed);
}

fn apply_all(
    locked: &mut Locked<'_>,
    writes: &[(RawKey, Write)],
    hashes: &[KeyHash],
    garbage: &mut Garbage,
    reserved: usize,
) -> Result<()> {
    let engine = locked.engine;
    let bytes = |locked: &mut Locked<'_>| locked.shards().map(|shard| shard.bytes() as i64).sum::<i64>();
    let before = if engine.memory.is_limited() { bytes(locked) } else { 0 };
    for ((key, write), hashed) in writes.iter().zip(hashes) {
        let shard = locked.shard(*hashed)?;
        if let Err(refused) = apply(shard, *hashed, key, write, garbage) {
            // The check before makes this impossible. Should it happen, it must not be silent.
            let reason = format!("{} is a {}, {refused:?}", show(key), refused.found);
            return Err(Error::PartialCommit {
                reason,
                keys: writes.iter().map(|(key, _)| show(key)).collect(),
            });
        }
    }
    if engine.memory.is_limited() {
        engine.memory.adjust(bytes(locked) - before - reserved as i64);
    }
    Ok(())
}
