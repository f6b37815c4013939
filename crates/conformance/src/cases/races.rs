//! One winner: 64 tasks race for each of thousands of prizes, and each prize goes to exactly one of them.

use crate::builders::*;
use crate::context::Context;
use crate::families::World;
use crate::runner::say;
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::{Result, Scope, Tx};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Barrier;

/// How many tasks race for one thing.
const TASKS: usize = 64;
/// Contests of a race.
const CONTESTS: usize = 10_000;
/// Contests between two moments at which all tasks wait for each other.
const HEAT: usize = 32;

type Attempt = fn(&mut Tx<'_, World>, &Bytes, usize) -> Result<bool>;

/// All tasks try every contest; how many won each.
async fn race(context: &Context, name: &str, prizes: &[Bytes], attempt: Attempt) -> Vec<usize> {
    let started = Instant::now();
    let prizes: Arc<[Bytes]> = prizes.into();
    let barrier = Arc::new(Barrier::new(TASKS));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let scope = if task % 2 == 0 { context.scope() } else { context.other_scope() };
            tokio::spawn(contestant(scope, task, prizes.clone(), barrier.clone(), attempt))
        })
        .collect();
    let mut winners = vec![0; prizes.len()];
    for task in tasks {
        for won in task.await.expect("no contestant panics") {
            winners[won] += 1;
        }
    }
    let (transactions, took) = (TASKS * prizes.len(), started.elapsed());
    say(&format!(
        "  {name}: {} contests of {TASKS}, {transactions} transactions in {took:.1?}",
        prizes.len()
    ));
    winners
}

/// Tries every contest; which it won.
async fn contestant(
    scope: Scope<World>,
    task: usize,
    prizes: Arc<[Bytes]>,
    barrier: Arc<Barrier>,
    attempt: Attempt,
) -> Vec<usize> {
    let mut won = Vec::new();
    for (contest, prize) in prizes.iter().enumerate() {
        if contest % HEAT == 0 {
            barrier.wait().await;
        }
        let prize = prize.clone();
        let scope = scope.clone().deadline(std::time::Duration::from_secs(30));
        if scope.transact(move |tx| attempt(tx, &prize, task)).await.expect("contestants settle") {
            won.push(contest);
        }
        tokio::task::yield_now().await;
    }
    won
}

fn prizes(context: &Context) -> Vec<Bytes> {
    (0..CONTESTS).map(|_| context.fresh()).collect()
}

/// Who finds the key absent takes it.
pub async fn claims(context: &Context) {
    let prizes = prizes(context);
    let winners = race(context, "claims", &prizes, |tx, prize, task| {
        if tx.raw_read(prize, Read::Exists)? == int(1) {
            return Ok(false);
        }
        tx.raw_write(prize.clone(), set(&task.to_string()))?;
        Ok(true)
    });
    assert!(winners.await.iter().all(|won| *won == 1));
}

/// All callers hit; the one that brings the hit points to exactly 0 has the kill. Each has one hit more than needed.
pub async fn last_hits(context: &Context) {
    let prizes = prizes(context);
    for piece in prizes.chunks(500) {
        let full = set(&(TASKS as i64 / 2).to_string());
        context
            .write(piece.iter().map(|key| (key.clone(), full.clone())).collect())
            .await
            .expect("a transaction");
    }
    let winners = race(context, "last hits", &prizes, |tx, prize, _| {
        let Reply::Blob(text) = tx.raw_read(prize, Read::Get)? else { return Ok(false) };
        let hp: i64 = String::from_utf8_lossy(&text).parse().expect("hit points");
        if hp == 0 {
            return Ok(false);
        }
        tx.raw_write(prize.clone(), Write::IncrBy(-1))?;
        Ok(hp == 1)
    });
    assert!(winners.await.iter().all(|won| *won == 1));
    for prize in prizes.iter().step_by(97) {
        assert_eq!(context.read(prize, Read::Get).await, blob("0"));
    }
}

/// One element in each list; who pops it has it.
pub async fn pops(context: &Context) {
    let prizes = prizes(context);
    for piece in prizes.chunks(500) {
        let one = rpush(&["prize"]);
        context
            .write(piece.iter().map(|key| (key.clone(), one.clone())).collect())
            .await
            .expect("a transaction");
    }
    let winners = race(context, "pops", &prizes, |tx, prize, _| {
        let Reply::List(head) = tx.raw_read(prize, Read::LRange(0, 0))? else { return Ok(false) };
        if head.is_empty() {
            return Ok(false);
        }
        tx.raw_write(prize.clone(), Write::LPop(1))?;
        Ok(true)
    });
    assert!(winners.await.iter().all(|won| *won == 1));
    for prize in prizes.iter().step_by(97) {
        assert_eq!(context.read(prize, Read::Exists).await, int(0));
    }
}
