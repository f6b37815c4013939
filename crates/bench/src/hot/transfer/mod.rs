//! Transfers between wallets: 100,000 accounts, some far more popular than others, by one thread and by two, beside SQLite.
//!
//! The gold of all wallets is the same before and after.

mod sqlite;
mod zipf;

use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::Bench;
use anyhow::{Result, ensure};
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::journal::Durability;
use emberkeep::hot::{Error, Scope, Store};
use emberkeep::schema::{Json, Log, Name, Newest, Text, family, partition, record};
use sqlite::Sqlite;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zipf::pairs;

const ACCOUNTS: u32 = 100_000;
const GOLD_EACH: i64 = 10_000;
/// Transfers between two looks at the clock.
const LOOK_EVERY: usize = 64;

partition! {
    /// A bank. All wallets of the benchmark belong to one.
    pub struct Bank(Name) as "bank";
}

record! {
    /// The gold of one player.
    #[derive(Clone, Debug)]
    pub struct Wallet {
        /// What its owner can spend.
        pub gold: i64 => "gold",
        /// Gold that is reserved for offers.
        pub held: i64 => "held",
        /// How many transfers changed it.
        pub transfers: u64 => "transfers",
    }
}

record! {
    /// A transfer that happened.
    #[derive(Clone, Debug)]
    pub struct Transferred {
        /// The account that paid.
        pub from: u32 => "from",
        /// The account that was paid.
        pub to: u32 => "to",
        /// How much gold is moved.
        pub gold: i64 => "gold",
    }
}

family! {
    /// A wallet by its account.
    pub WALLET = "wallet:{bank}:{account}" {
        kind: Text<Json<Wallet>>, partition: Bank, parts: (account: u32), ttl: persistent, owner: "bench"
    }
}

family! {
    /// What happened, newest last.
    pub TRANSFERS = "log:{bank}:transfers" {
        kind: Log<Json<Transferred>, Newest<10_000>>, partition: Bank, parts: (), ttl: persistent, owner: "bench"
    }
}

/// Whether a transfer appends an event.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Events {
    No,
    Yes,
}

/// A store with full wallets.
struct Accounts {
    store: Store,
    events: Events,
}

impl Accounts {
    fn new(engine: Embedded, events: Events) -> Result<Accounts> {
        let accounts = Accounts { store: Store::new(Arc::new(engine)), events };
        runtime()?.block_on(async {
            let scope = accounts.scope();
            for account in 0..ACCOUNTS {
                let wallet = Wallet::new(GOLD_EACH, 0, 0);
                scope.put(&WALLET.key(account), wallet).await?;
            }
            anyhow::Ok(())
        })?;
        Ok(accounts)
    }

    fn scope(&self) -> Scope<Bank> {
        self.store.scope(Bank(Name::new("bench").expect("a good name")))
    }

    /// Transfers per second by so many threads together.
    fn rate(&self, threads: usize, time: Duration) -> Result<f64> {
        let before = self.total()?;
        let rate = by_threads(threads, time, |thread, done| {
            let (scope, runtime, events) = (self.scope(), runtime()?, self.events);
            runtime.block_on(async {
                for batch in pairs(thread).chunks(LOOK_EVERY).cycle() {
                    for (from, to) in batch {
                        transfer(&scope, *from, *to, events).await?;
                    }
                    if done(batch.len() as u64) {
                        break;
                    }
                }
                anyhow::Ok(())
            })
        })?;
        ensure!(self.total()? == before, "gold was lost or made");
        Ok(rate)
    }

    fn total(&self) -> Result<i64> {
        runtime()?.block_on(async {
            let (scope, mut sum) = (self.scope(), 0);
            for account in 0..ACCOUNTS {
                sum += scope.get(&WALLET.key(account)).await?.map_or(0, |wallet| wallet.gold);
            }
            Ok(sum)
        })
    }
}

/// One gold from one wallet to another.
async fn transfer(scope: &Scope<Bank>, from: u32, to: u32, events: Events) -> Result<bool, Error> {
    scope
        .transact(move |tx| {
            let (Some(mut payer), Some(mut payee)) = (tx.get(&WALLET.key(from))?, tx.get(&WALLET.key(to))?)
            else {
                return Ok(false);
            };
            if payer.gold < 1 {
                return Ok(false);
            }
            (payer.gold, payee.gold) = (payer.gold - 1, payee.gold + 1);
            (payer.transfers, payee.transfers) = (payer.transfers + 1, payee.transfers + 1);
            tx.put(&WALLET.key(from), &payer)?;
            tx.put(&WALLET.key(to), &payee)?;
            if events == Events::Yes {
                let event = Transferred::new(from, to, 1);
                tx.append(&TRANSFERS.key(), &event)?;
            }
            Ok(true)
        })
        .await
}

/// Runs `work` on so many threads. It reports what it did, and learns when to end. Returns how much was done per second.
pub(super) fn by_threads(
    threads: usize,
    time: Duration,
    work: impl Fn(usize, &dyn Fn(u64) -> bool) -> Result<()> + Sync,
) -> Result<f64> {
    let (count, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    let done = |more: u64| {
        count.fetch_add(more, Ordering::Relaxed);
        let over = started.elapsed() >= time;
        is_over.fetch_or(over, Ordering::Relaxed) || over
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let (work, done) = (&work, &done);
                    move || work(thread, done)
                })
            })
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a thread of the benchmark does not panic"))
    })?;
    Ok(count.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

/// On the embedded engine, without a folder.
pub(crate) fn in_memory(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    beside_sqlite(bench, name, Events::No, |_| Ok(Embedded::in_memory()))
}

/// With a journal that is synced every second.
pub(crate) fn with_journal(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    beside_sqlite(bench, name, Events::No, |folder| {
        Ok(Embedded::builder().data(folder).durability(Durability::EverySec).open()?)
    })
}

/// In memory, with one event appended by each transfer; then two threads beside one.
pub(crate) fn with_event(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let mut rows = beside_sqlite(bench, name, Events::Yes, |_| Ok(Embedded::in_memory()))?;
    let accounts = Accounts::new(Embedded::in_memory(), Events::Yes)?;
    let (two, one) = bench.take_turns(
        name,
        "transfers/s",
        || accounts.rate(2, bench.sample),
        || accounts.rate(1, bench.sample),
    )?;
    let row = Row::new(&format!("{name}-scaling"), "transfers/s", &two, &one, Goal::RatioAtLeast(1.3));
    rows.push(row.beside("one thread; ours are two"));
    Ok(rows)
}

fn beside_sqlite(
    bench: &mut Bench,
    name: &'static str,
    events: Events,
    engine: impl Fn(&Path) -> Result<Embedded>,
) -> Result<Vec<Row>> {
    let folder = bench.folder(name);
    std::fs::create_dir_all(&folder)?;
    let (ours, sqlite) =
        (Accounts::new(engine(&folder.join("data"))?, events)?, Sqlite::new(&folder, events)?);
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let (our_samples, peer_samples): (Samples, Samples) = bench.take_turns(
            name,
            "transfers/s",
            || ours.rate(threads, bench.sample),
            || sqlite.rate(threads, bench.sample),
        )?;
        let row =
            Row::new(&format!("{name}-{threads}"), "transfers/s", &our_samples, &peer_samples, Goal::None);
        rows.push(row.beside(format!("SQLite in WAL mode, synchronous = NORMAL; threads: {threads}")));
    }
    drop((ours, sqlite));
    let _ = std::fs::remove_dir_all(&folder);
    Ok(rows)
}
