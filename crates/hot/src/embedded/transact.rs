//! A transaction on the caller's stack: run the body under the locks it needs, check, commit.
//!
//! The commit, all under the locks:
//!
//! 1. lock the shards of all written keys;
//! 2. lock those of logs, last of all, and expand log entries to plain writes;
//! 3. check preconditions and reserve memory;
//! 4. turn writes with a condition into what they do;
//! 5. append the writes to the journal;
//! 6. apply those of logs and give back their locks: all writers of a log wait for them. A reader of an entry
//!    still waits for the state that it describes;
//! 7. apply the others;
//! 8. deliver the messages.
//!
//! Nothing before 5 has an effect, nothing after it can fail.

use super::Inner;
use super::apply::{Garbage, apply};
use super::checked::CheckedRuns;
use super::conditions;
use super::locks::{ALL, Locked, Lookup};
use super::log;
use super::memory::growth;
use super::shard::KeyHash;
use super::value::Value;
use crate::command::{self, Effects, Expiry, KeyState, RawKey, Read, Reply, Write, parse_integer};
use crate::engine::{LocalOutcome, Lsn};
use crate::error::{Error, Result, show};
use crate::limits::{BODY_WARN, EMBEDDED_ATTEMPTS_MAX};
use crate::tx::{Event, RawTx, ReadSource, Transaction, run_once};
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
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// The thread's buffers on loan. They return when this is dropped, after the locks.
struct Loan(Option<Box<Scratch>>);

impl Loan {
    fn take() -> Loan {
        Loan(SCRATCH.take())
    }

    fn scratch(&mut self) -> &mut Scratch {
        self.0.get_or_insert_default()
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
    let started = Instant::now();
    match inner.check_callable() {
        Ok(()) => Call { inner, partition, transaction, seed, started, ended: started }.run(),
        Err(error) => LocalOutcome { result: Err(error), lsn: Lsn(0), started, ended: started },
    }
}

/// A transaction on its way to its commit.
struct Call<'a> {
    inner: &'a Inner,
    partition: &'a [u8],
    transaction: &'a mut dyn Transaction,
    seed: u64,
    started: Instant,
    /// When the body ended its last run.
    ended: Instant,
}

impl Call<'_> {
    fn run(mut self) -> LocalOutcome {
        let mut loan = Loan::take();
        let scratch = loan.scratch();
        let mut checked = self.inner.checks_closures.then(CheckedRuns::default);
        let mut wanted = 0;
        for attempts in 1.. {
            let mut locked = Locked::take(self.inner, wanted);
            if attempts > 1 {
                self.ended = Instant::now();
            }
            match self.attempt(&mut locked, scratch, checked.as_mut()) {
                Err(Error::Suspended) => {
                    scratch.effects.clear();
                    wanted = if attempts < EMBEDDED_ATTEMPTS_MAX { wanted | locked.wanted() } else { ALL };
                    if locked.suspended() {
                        self.inner.conflicts.fetch_add(1, Ordering::Relaxed);
                        self.transaction.observe(Event::Conflict);
                    }
                }
                Ok(lsn) => return self.outcome(Ok(()), lsn),
                // An error may depend on reads that are not durable yet, so its caller waits too.
                Err(error) => {
                    let error = self.transaction.explain(error);
                    let lsn = self.inner.read_lsn();
                    return self.outcome(Err(error), lsn);
                }
            }
        }
        unreachable!("with all shards held no attempt is suspended")
    }

    fn outcome(&self, result: Result<()>, lsn: Lsn) -> LocalOutcome {
        LocalOutcome { result, lsn, started: self.started, ended: self.ended }
    }

    fn attempt(
        &mut self,
        locked: &mut Locked<'_>,
        scratch: &mut Scratch,
        checked: Option<&mut CheckedRuns>,
    ) -> Result<Lsn> {
        let effects = &mut scratch.effects;
        let commits = match checked {
            None => {
                let commits = run_once(self.transaction, RawTx::new(locked, effects, self.seed));
                if locked.suspended() { Err(Error::Suspended) } else { commits }
            }
            Some(runs) => runs.run(locked, self.transaction, effects, self.seed),
        };
        if matches!(commits, Err(Error::Suspended)) {
            return Err(Error::Suspended);
        }
        let began = std::mem::replace(&mut self.ended, Instant::now());
        if self.ended > began + BODY_WARN {
            let (partition, name, took) = (show(self.partition), self.transaction.name(), self.ended - began);
            tracing::warn!(%partition, name, ?took, "the body of a transaction ran long under its locks");
        }
        if commits? && !scratch.effects.is_empty() {
            let Committed { lsn, not_greater } = commit(locked, scratch)?;
            if not_greater > 0 {
                self.transaction.observe(Event::NotGreater(not_greater));
            }
            return Ok(lsn);
        }
        Ok(locked.engine.read_lsn())
    }
}

/// What a commit did.
struct Committed {
    lsn: Lsn,
    /// Conditional strings that were not set.
    not_greater: usize,
}

fn commit(locked: &mut Locked<'_>, scratch: &mut Scratch) -> Result<Committed> {
    let Scratch { effects, hashes, garbage } = scratch;
    lock_writes(locked, &effects.writes, hashes)?;
    if !effects.log.is_empty() {
        log::expand(locked, effects)?;
        hashes.extend(effects.writes[hashes.len()..].iter().map(|(key, _)| locked.engine.hash(key)));
    }
    // Messages are delivered in the order of their log entries. Those that only wake followers need no order.
    let keeps_order = !effects.messages.is_empty();
    if !effects.woken.is_empty() {
        log::wake(locked.engine, effects);
    }
    let expired = check(locked, &effects.writes, hashes)?;
    if !expired.is_empty() {
        delete_first(&expired, effects, hashes);
    }
    let engine = locked.engine;
    // Without a limit the growth is not computed: it would look up every key once more.
    let reserved = if engine.memory.is_limited() { growth(locked, &effects.writes, hashes)? } else { 0 };
    let not_greater = conditions::resolve(locked, effects, hashes)?;
    engine.memory.reserve(reserved)?;
    // From here on the transaction is committed: a crash after this line loads it from the journal.
    let lsn = engine.append(effects).inspect_err(|_| engine.memory.adjust(-(reserved as i64)))?;
    let mut growth = 0;
    if locked.holds_logs() {
        growth += apply_some(locked, &effects.writes, hashes, garbage, KeyHash::is_log)?;
        if !keeps_order {
            locked.release_logs();
        }
    }
    growth += apply_some(locked, &effects.writes, hashes, garbage, |hashed| !hashed.is_log())?;
    if engine.memory.is_limited() {
        engine.memory.adjust(growth - reserved as i64);
    }
    engine.deliver(effects);
    // Counted in a shard that is locked anyway: a shared counter would move its cache line between all cores.
    match locked.shards().next() {
        Some(shard) => shard.committed += 1,
        None => drop(engine.committed_without_locks.fetch_add(1, Ordering::Relaxed)),
    }
    Ok(Committed { lsn, not_greater })
}

fn lock_writes(locked: &mut Locked<'_>, writes: &[(RawKey, Write)], hashes: &mut Vec<KeyHash>) -> Result<()> {
    hashes.clear();
    hashes.extend(writes.iter().map(|(key, _)| locked.engine.hash(key)));
    // After a missed lock the others are tried too, so that the next run takes all of them first.
    let mut taken = Ok(());
    for hashed in hashes.iter() {
        taken = locked.shard(*hashed).map(drop).and(taken);
    }
    taken
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
        let replaces = match write {
            Write::Set(_, expiry) | Write::SetIfGreater(_, expiry) => *expiry != Expiry::Keep,
            write => *write == Write::Del,
        };
        if replaces {
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

/// Applies the writes of some shards. Returns by how many bytes they grew, if memory is limited.
fn apply_some(
    locked: &mut Locked<'_>,
    writes: &[(RawKey, Write)],
    hashes: &[KeyHash],
    garbage: &mut Garbage,
    chosen: impl Fn(KeyHash) -> bool,
) -> Result<i64> {
    let is_limited = locked.engine.memory.is_limited();
    let bytes = |locked: &mut Locked<'_>| locked.shards().map(|shard| shard.bytes() as i64).sum::<i64>();
    let before = if is_limited { bytes(locked) } else { 0 };
    for ((key, write), hashed) in writes.iter().zip(hashes).filter(|(_, hashed)| chosen(**hashed)) {
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
    Ok(if is_limited { bytes(locked) - before } else { 0 })
}
