//! Amounts move between kinds of keys by our transactions while external clients add known amounts by plain
//! commands: at the end the total is exact.

use crate::builders::*;
use crate::context::Context;
use crate::external::{Change, External, StoredValue};
use crate::families::World;
use crate::rng::Rng;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Read, Reply, Score, Write};
use emberkeep_hot::{Result, Scope, Tx};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Transactions of each of our tasks.
const MOVES: usize = 120;
/// Changes of the external client.
const CHANGES: usize = 400;

/// Where amounts lie: a string, a field, a score.
#[derive(Debug, Clone)]
enum Account {
    Text(Bytes),
    Field(Bytes, Bytes),
    Score(Bytes, Bytes),
}

fn parsed(reply: &Reply) -> i64 {
    match reply {
        Reply::Blob(text) => String::from_utf8_lossy(text).parse().expect("an amount"),
        Reply::Score(score) => score.get() as i64,
        _ => 0,
    }
}

impl Account {
    fn amount(&self, tx: &mut Tx<'_, World>) -> Result<i64> {
        let reply = match self {
            Account::Text(key) => tx.raw_read(key, Read::Get)?,
            Account::Field(key, field) => tx.raw_read(key, Read::HGet(field.clone()))?,
            Account::Score(key, member) => tx.raw_read(key, Read::ZScore(member.clone()))?,
        };
        Ok(parsed(&reply))
    }

    fn put(&self, tx: &mut Tx<'_, World>, amount: i64) -> Result<()> {
        let text = b(&amount.to_string());
        match self {
            Account::Text(key) => tx.raw_write(key.clone(), Write::Set(text, Expiry::Keep)),
            Account::Field(key, field) => tx.raw_write(key.clone(), Write::HSet(vec![(field.clone(), text)])),
            Account::Score(key, member) => {
                tx.raw_write(key.clone(), Write::ZAdd(vec![(member.clone(), Score::from_i64(amount))]))
            }
        }
    }

    /// An external client adds to it.
    async fn add(&self, external: &mut dyn External, by: i64) {
        let (key, change) = match self {
            Account::Text(key) => (key, Change::Write(Write::IncrBy(by))),
            Account::Field(key, field) => (key, Change::HIncrBy(field.clone(), by)),
            Account::Score(key, member) => (key, Change::ZIncrBy(member.clone(), by)),
        };
        assert!(external.change(key, change).await);
    }
}

fn accounts(context: &Context) -> Vec<Account> {
    let (hash, ranked) = (context.fresh(), context.fresh());
    vec![
        Account::Text(context.fresh()),
        Account::Text(context.fresh()),
        Account::Field(hash.clone(), b("a")),
        Account::Field(hash, b("b")),
        Account::Score(ranked.clone(), b("a")),
        Account::Score(ranked, b("b")),
    ]
}

async fn move_amounts(scope: Scope<World>, accounts: Vec<Account>, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..MOVES {
        let (from, to) = (rng.pick(&accounts).clone(), rng.pick(&accounts).clone());
        let by = rng.between(-20, 20);
        let body = move |tx: &mut Tx<'_, World>| {
            let left = from.amount(tx)? - by;
            from.put(tx, left)?;
            // Read after the write above: it may be the same account.
            let right = to.amount(tx)? + by;
            to.put(tx, right)
        };
        scope.transact(body).await.expect("movers settle");
        tokio::task::yield_now().await;
    }
}

/// Strings, fields and scores, moved by two processes and changed by INCRBY, HINCRBY and ZINCRBY meanwhile.
pub async fn totals_are_exact(context: &Context) {
    let accounts = accounts(context);
    let mut movers = Vec::new();
    for seed in 0..4 {
        let scope = if seed % 2 == 0 { context.scope() } else { context.other_scope() };
        movers.push(tokio::spawn(move_amounts(scope, accounts.clone(), seed)));
    }
    let (mut external, mut rng, mut added) = (context.external(), Rng::new(77), 0);
    for _ in 0..CHANGES {
        let by = rng.between(-50, 100);
        rng.pick(&accounts).clone().add(&mut *external, by).await;
        added += by;
        breathe().await;
    }
    for mover in movers {
        mover.await.expect("no mover panics");
    }
    let total =
        context.transaction(move |tx| accounts.iter().map(|account| account.amount(tx)).sum::<Result<i64>>());
    assert_eq!(total.await, Ok(added));
}

/// Between two external changes: our transactions must settle somewhere.
async fn breathe() {
    tokio::time::sleep(std::time::Duration::from_micros(200)).await;
}

/// An external client drops coins into pots of every kind, our transactions empty them: every coin is banked
/// exactly once.
pub async fn every_coin_is_banked_once(context: &Context) {
    let pots = [context.fresh(), context.fresh(), context.fresh(), context.fresh()];
    let bank = context.fresh();
    let stop = Arc::new(AtomicBool::new(false));
    let mut bankers = Vec::new();
    for scope in [context.scope(), context.other_scope()] {
        bankers.push(tokio::spawn(bank_coins(scope, pots.clone(), bank.clone(), stop.clone())));
    }
    let (mut external, mut dropped) = (context.external(), 0);
    for n in 0..CHANGES as i64 {
        dropped += drop_coins(&mut *external, &pots, n).await;
        breathe().await;
    }
    stop.store(true, Ordering::Relaxed);
    for banker in bankers {
        banker.await.expect("no banker panics");
    }
    context
        .transaction({
            let (pots, bank) = (pots.clone(), bank.clone());
            move |tx| empty_pots(tx, &pots, &bank)
        })
        .await
        .expect("the last round");
    let stored = external.inspect(&bank).await;
    assert_eq!(stored, Some((StoredValue::Text(b(&dropped.to_string())), None)));
}

/// One coin into one pot: SET NX of an amount, a set member, a list element, a hash field. How much it was.
async fn drop_coins(external: &mut dyn External, pots: &[Bytes; 4], n: i64) -> i64 {
    let coin = b(&n.to_string());
    match n % 4 {
        0 => external.put_if_absent(&pots[0], b("5")).await as i64 * 5,
        1 => external.change(&pots[1], Change::Write(Write::SAdd(vec![coin]))).await as i64,
        2 => external.change(&pots[2], Change::Write(Write::RPush(vec![coin]))).await as i64,
        _ => external.change(&pots[3], Change::Write(Write::HSet(vec![(coin, b("3"))]))).await as i64 * 3,
    }
}

async fn bank_coins(scope: Scope<World>, pots: [Bytes; 4], bank: Bytes, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let (pots, bank) = (pots.clone(), bank.clone());
        scope.transact(move |tx| empty_pots(tx, &pots, &bank)).await.expect("bankers settle");
        breathe().await;
    }
}

/// Takes what lies in the pots, each in its own way, and adds it to the bank.
fn empty_pots(tx: &mut Tx<'_, World>, pots: &[Bytes; 4], bank: &Bytes) -> Result<()> {
    let mut found = parsed(&tx.raw_read(&pots[0], Read::Get)?);
    tx.raw_write(pots[0].clone(), Write::Del)?;
    if let Reply::List(coins) = tx.raw_read(&pots[1], Read::SMembers)?
        && !coins.is_empty()
    {
        found += coins.len() as i64;
        tx.raw_write(pots[1].clone(), Write::SRem(coins))?;
    }
    if let Reply::List(coins) = tx.raw_read(&pots[2], Read::LRange(0, 4))?
        && !coins.is_empty()
    {
        found += coins.len() as i64;
        tx.raw_write(pots[2].clone(), Write::LPop(coins.len()))?;
    }
    if let Reply::Pairs(coins) = tx.raw_read(&pots[3], Read::HGetAll)? {
        found += coins.iter().map(|(_, amount)| parsed(&Reply::Blob(amount.clone()))).sum::<i64>();
        tx.raw_write(pots[3].clone(), Write::Del)?;
    }
    if found > 0 { tx.raw_write(bank.clone(), Write::IncrBy(found)) } else { Ok(()) }
}
