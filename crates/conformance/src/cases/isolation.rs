//! A transaction sees a state that existed: two numbers whose sum never changes are never seen with another
//! sum, not by reads, not in errors, not in panics, in whatever way the amounts are moved.

use crate::builders::*;
use crate::context::Context;
use crate::external::External;
use crate::families::World;
use crate::rng::Rng;
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::{Error, Result, Scope, Tx};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::task::JoinHandle;

/// What both numbers add up to.
const TOTAL: i64 = 1_000;
/// Looks of each reader.
const LOOKS: usize = 150;

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Blob(text) => String::from_utf8_lossy(text).parse().expect("the case keeps numbers there"),
        _ => 0,
    }
}

fn sum_of(tx: &mut Tx<'_, World>, keys: &[Bytes; 2]) -> Result<i64> {
    let first = number(&tx.raw_read(&keys[0], Read::Get)?);
    Ok(first + number(&tx.raw_read(&keys[1], Read::Get)?))
}

/// Moves amounts by our own transactions until the stop signal.
fn mover(scope: Scope<World>, keys: [Bytes; 2], stop: Arc<AtomicBool>, seed: u64) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut rng = Rng::new(seed);
        while !stop.load(Ordering::Relaxed) {
            let (keys, amount) = (keys.clone(), rng.between(-9, 9));
            let moved = scope.transact(move |tx| {
                let stored =
                    [number(&tx.raw_read(&keys[0], Read::Get)?), number(&tx.raw_read(&keys[1], Read::Get)?)];
                tx.raw_write(keys[0].clone(), set(&(stored[0] - amount).to_string()))?;
                tx.raw_write(keys[1].clone(), set(&(stored[1] + amount).to_string()))
            });
            moved.await.expect("movers settle");
            tokio::task::yield_now().await;
        }
    })
}

/// Moves amounts by plain transactions until it is stopped.
fn external_mover(
    mut external: Box<dyn External>,
    keys: [Bytes; 2],
    stop: Arc<AtomicBool>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut rng = Rng::new(99);
        while !stop.load(Ordering::Relaxed) {
            external.transfer(&keys[0], &keys[1], rng.between(-9, 9)).await;
            // Not a hot loop: our own transactions must settle between two changes.
            tokio::time::sleep(std::time::Duration::from_micros(300)).await;
        }
    })
}

/// Runs `look` beside two processes and an external client that move amounts.
async fn beside_movers<F: Future<Output = ()>>(context: &Context, look: impl FnOnce([Bytes; 2]) -> F) {
    let keys = [context.fresh(), context.fresh()];
    context
        .write(vec![(keys[0].clone(), set(&TOTAL.to_string())), (keys[1].clone(), set("0"))])
        .await
        .expect("a transaction");
    let stop = Arc::new(AtomicBool::new(false));
    let movers = [
        mover(context.scope(), keys.clone(), stop.clone(), 1),
        mover(context.other_scope(), keys.clone(), stop.clone(), 2),
        external_mover(context.external(), keys.clone(), stop.clone()),
    ];
    look(keys.clone()).await;
    stop.store(true, Ordering::Relaxed);
    for task in movers {
        task.await.expect("no mover panics");
    }
    let last = context.transaction(move |tx| sum_of(tx, &keys)).await;
    assert_eq!(last, Ok(TOTAL));
}

/// Transactions that only read.
pub async fn read_only_transactions(context: &Context) {
    beside_movers(context, |keys| async move {
        for _ in 0..LOOKS {
            let keys = keys.clone();
            assert_eq!(context.transaction(move |tx| sum_of(tx, &keys)).await, Ok(TOTAL));
        }
    })
    .await;
}

/// Both numbers asked for together.
pub async fn reads_made_together(context: &Context) {
    beside_movers(context, |keys| async move {
        for _ in 0..LOOKS {
            let reads = keys.clone().map(|key| (key, Read::Get));
            let body = move |tx: &mut Tx<'_, World>| {
                tx.raw_read_many(&reads)?.into_iter().map(|reply| Ok(number(&reply?))).sum::<Result<i64>>()
            };
            assert_eq!(context.transaction(body).await, Ok(TOTAL));
        }
    })
    .await;
}

/// An error that a body computes from its reads.
pub async fn errors_made_of_reads(context: &Context) {
    beside_movers(context, |keys| async move {
        for _ in 0..LOOKS {
            let keys = keys.clone();
            let result: Result<()> = context
                .transaction(move |tx| {
                    let sum = sum_of(tx, &keys)?;
                    tx.raw_write(keys[0].clone(), set("never"))?;
                    Err(Error::Folder { path: sum.to_string(), problem: "a body's own error".into() })
                })
                .await;
            let expected = Error::Folder { path: TOTAL.to_string(), problem: "a body's own error".into() };
            assert_eq!(result, Err(expected));
        }
    })
    .await;
}

/// A panic that a body makes of its reads: one over a state that never existed is never reported.
pub async fn panics_made_of_reads(context: &Context) {
    beside_movers(context, |keys| async move {
        let torn = Arc::new(AtomicU32::new(0));
        for _ in 0..LOOKS {
            let (keys, torn) = (keys.clone(), torn.clone());
            let result: Result<i64> = context
                .transaction(move |tx| {
                    let sum = sum_of(tx, &keys)?;
                    if sum != TOTAL {
                        // Allowed inside a run that will be discarded, never outside.
                        torn.fetch_add(1, Ordering::Relaxed);
                        std::panic::resume_unwind(Box::new(format!("torn: {sum}")));
                    }
                    Ok(sum)
                })
                .await;
            assert_eq!(result, Ok(TOTAL));
        }
    })
    .await;
}

/// A write derived from both reads is right for the state it was committed on.
pub async fn writes_made_of_reads(context: &Context) {
    beside_movers(context, |keys| async move {
        let shadow = context.fresh();
        for _ in 0..LOOKS {
            let (keys, to) = (keys.clone(), shadow.clone());
            let body = move |tx: &mut Tx<'_, World>| {
                let sum = sum_of(tx, &keys)?;
                tx.raw_write(to.clone(), Write::RPush(vec![b(&sum.to_string())]))
            };
            assert_eq!(context.transaction(body).await, Ok(()));
        }
        let Reply::List(sums) = context.read(&shadow, Read::LRange(0, -1)).await else { panic!("a list") };
        assert_eq!(sums.len(), LOOKS);
        assert!(sums.iter().all(|sum| *sum == TOTAL.to_string()), "{sums:?}");
    })
    .await;
}

/// Absence is seen like a value: a transaction that found two keys absent does not commit if one has come
/// meanwhile.
pub async fn absence_is_validated(context: &Context) {
    for _ in 0..50 {
        let (left, right, chosen) = (context.fresh(), context.fresh(), context.fresh());
        let claim = |mine: &Bytes, name: &'static str, scope: Scope<World>| {
            let (left, right, mine, chosen) = (left.clone(), right.clone(), mine.clone(), chosen.clone());
            async move {
                let body = move |tx: &mut Tx<'_, World>| {
                    let taken = [tx.raw_read(&left, Read::Exists)?, tx.raw_read(&right, Read::Exists)?];
                    if taken.contains(&int(1)) {
                        return Ok(false);
                    }
                    tx.raw_write(mine.clone(), set(name))?;
                    tx.raw_write(chosen.clone(), rpush(&[name]))?;
                    Ok::<_, Error>(true)
                };
                scope.transact(body).await
            }
        };
        let (one, other) = tokio::join!(
            tokio::spawn(claim(&left, "left", context.scope())),
            tokio::spawn(claim(&right, "right", context.other_scope()))
        );
        let won = [one.expect("no panic"), other.expect("no panic")];
        assert_eq!(won.iter().filter(|won| **won == Ok(true)).count(), 1, "{won:?}");
        assert_eq!(context.read(&chosen, Read::LLen).await, int(1));
    }
}
