//! Deadlines that pass between the body and its commit: all writes of a key are applied first, then its
//! deadline counts.
//!
//! Each program is a few transactions on one key, started together, so that an engine may merge them. Lives
//! are shorter than the time that one of the bodies takes. Every transaction returns what it saw; the chain
//! of what they saw and wrote is compared with the model. Between two transactions a key may have ended,
//! within one it may not.

use crate::builders::*;
use crate::context::Context;
use crate::external::StoredValue;
use crate::families::World;
use crate::model::{Model, Op};
use crate::rng::Rng;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Read, Reply, Write};
use emberkeep_hot::{Error, Result, Tx};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const PROGRAMS: u64 = 120;
/// Below what the clock of a transaction may be late by, so that its commit is not refused for that.
const LIFE_MS_MAX: i64 = 40;

/// Programs of one transaction each: nothing is merged.
pub async fn single_commits(context: &Context) {
    for seed in 0..PROGRAMS {
        Program::new(seed, 1).play(context).await;
    }
}

/// Programs of several transactions that may share a commit.
pub async fn merged_commits(context: &Context) {
    for seed in 1_000..1_000 + PROGRAMS {
        Program::new(seed, 2 + (seed % 4) as usize).play(context).await;
    }
}

struct Program {
    seed: u64,
    rng: Rng,
    kind: usize,
    /// The writes of each transaction; deadlines are counted from its own time.
    transactions: Vec<Vec<Write>>,
    /// The transaction whose body lasts longer than the lives.
    slow: usize,
    /// Whether transactions also read the deadline.
    reads_deadline: bool,
}

/// What one transaction saw and did.
struct RunResult {
    /// Place among the runs of all bodies.
    run: u64,
    stored: Option<StoredValue>,
    /// `None` = it did not look.
    deadline: Option<i64>,
    writes: Vec<Write>,
    until: i64,
}

impl Program {
    fn new(seed: u64, transactions: usize) -> Program {
        let mut rng = Rng::new(seed);
        let (kind, slow, reads_deadline) = (rng.below(4), rng.below(transactions), !rng.one_in(3));
        let mut program = Program { seed, rng, kind, transactions: vec![], slow, reads_deadline };
        for _ in 0..transactions {
            let writes = (0..program.rng.between(1, 5)).map(|_| program.write()).collect();
            program.transactions.push(writes);
        }
        program
    }

    fn write(&mut self) -> Write {
        let life = self.rng.between(1, LIFE_MS_MAX);
        let name = bs(&[["a", "b"][self.rng.below(2)]]);
        match (self.rng.below(9), self.kind) {
            (0 | 1, _) => Write::ExpireAt(life),
            (8, _) => Write::ExpireAtIfNone(life),
            (2, _) => self.rng.pick(&[Write::Persist, Write::Del]).clone(),
            (3, 0) => set_at("5", life),
            (4, 0) => self.rng.pick(&[set("6"), set_keep("7")]).clone(),
            (_, 0) => Write::IncrBy(self.rng.between(1, 9)),
            (3, 1) => Write::SRem(name),
            (_, 1) => Write::SAdd(name),
            (3, 2) => Write::HDel(name),
            (_, 2) => Write::HSet(vec![(name[0].clone(), name[0].clone())]),
            (3, _) => Write::LPop(1),
            (_, _) => Write::RPush(name),
        }
    }

    async fn play(self, context: &Context) {
        let key = context.fresh();
        let runs = Arc::new(AtomicU64::new(0));
        let running = self.transactions.iter().enumerate().map(|(number, writes)| {
            let (key, runs, writes) = (key.clone(), runs.clone(), writes.clone());
            let (kind, reads_deadline) = (self.kind, self.reads_deadline);
            let clock = context.manual_clock().cloned();
            let waited = AtomicBool::new(number != self.slow);
            let body = move |tx: &mut Tx<'_, World>| {
                let mut done = run(tx, &key, kind, reads_deadline, &writes)?;
                done.run = runs.fetch_add(1, Ordering::Relaxed);
                if !waited.swap(true, Ordering::Relaxed) {
                    match &clock {
                        Some(clock) => clock.advance(LIFE_MS_MAX as u64 + 1),
                        None => std::thread::sleep(Duration::from_millis(LIFE_MS_MAX as u64 + 1)),
                    }
                }
                Ok::<_, Error>(done)
            };
            tokio::spawn({
                let scope = context.scope();
                async move { scope.transact(body).await }
            })
        });
        let mut all = vec![];
        for task in running.collect::<Vec<_>>() {
            all.push(task.await.expect("no body panics").expect("a plain transaction"));
        }
        all.sort_by_key(|done| done.run);
        let model = self.chain(&all);
        context.past(all.iter().map(|done| done.until).max().unwrap_or(0)).await;
        let expected = model.entry(0).filter(|entry| entry.deadline.is_none());
        let found = context.external().inspect(&key).await;
        let expected = expected.map(|entry| (entry.stored.clone(), None));
        assert_eq!(found, expected, "seed {}: {:?}", self.seed, self.transactions);
    }

    /// The model after all of them.
    fn chain(&self, all: &[RunResult]) -> Model {
        let mut model = Model::default();
        for done in all {
            let before = model.entry(0).cloned();
            if done.stored.is_none() && before.as_ref().is_some_and(|entry| entry.deadline.is_some()) {
                model = Model::default();
            }
            let stored = model.entry(0).map(|entry| entry.stored.clone());
            assert_eq!(done.stored, stored, "seed {}: {:?}", self.seed, self.transactions);
            if let Some(deadline) = done.deadline {
                let expected = model.entry(0).map_or(-2, |entry| entry.deadline.unwrap_or(-1));
                assert_eq!(deadline, expected, "seed {}: {:?}", self.seed, self.transactions);
            }
            let ops: Vec<Op> = done.writes.iter().map(|write| Op::Write(0, write.clone())).collect();
            model.transaction(&ops).expect("all of one type");
        }
        model
    }
}

/// The body of the transaction.
fn run(
    tx: &mut Tx<'_, World>,
    key: &Bytes,
    kind: usize,
    reads_deadline: bool,
    writes: &[Write],
) -> Result<RunResult> {
    let whole = [Read::Get, Read::SMembers, Read::HGetAll, Read::LRange(0, 99)][kind].clone();
    let stored = match tx.raw_read(key, whole)? {
        Reply::Blob(text) => Some(StoredValue::Text(text)),
        Reply::Pairs(pairs) if !pairs.is_empty() => Some(StoredValue::Hash(pairs.into_iter().collect())),
        Reply::List(list) if !list.is_empty() && kind == 1 => {
            Some(StoredValue::Set(list.into_iter().collect()))
        }
        Reply::List(list) if !list.is_empty() => Some(StoredValue::List(list)),
        _ => None,
    };
    let deadline = match reads_deadline.then(|| tx.raw_read(key, Read::ExpireTime)).transpose()? {
        Some(Reply::Int(at)) => Some(at),
        _ => None,
    };
    let now = tx.now();
    let from_now = |write: &Write| match write {
        Write::ExpireAt(life) => Write::ExpireAt(now + life),
        Write::ExpireAtIfNone(life) => Write::ExpireAtIfNone(now + life),
        Write::Set(text, Expiry::At(life)) => Write::Set(text.clone(), Expiry::At(now + life)),
        other => other.clone(),
    };
    let writes: Vec<Write> = writes.iter().map(from_now).collect();
    writes.iter().try_for_each(|write| tx.raw_write(key.clone(), write.clone()))?;
    Ok(RunResult { run: 0, stored, deadline, writes, until: now + LIFE_MS_MAX })
}
