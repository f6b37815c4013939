//! How fast the journal appends and loads: `cargo run --release -p emberkeep-bench --example journal_rates -- <folder> [sets] [bytes]`.
//!
//! Leaves the folder, so that `redis-server --dir <folder> --appendonly yes` can load the same files beside
//! it.

use bytes::Bytes;
use emberkeep::hot::command::{Expiry, Write};
use emberkeep::hot::journal::{Durability, Journal, JournalOptions};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder to write to");
    let mut number =
        |default: usize| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (sets, bytes) = (number(1_000_000), number(220));
    for durability in [Durability::No, Durability::EverySec] {
        let path = format!("{folder}/{durability:?}");
        append(&path, durability, sets, bytes);
        load(&path);
    }
    settle(&format!("{folder}/Always"), 64, bytes);
}

fn open(path: &str, durability: Durability) -> Journal {
    let options = JournalOptions { durability, ..JournalOptions::new(path) };
    Journal::open(options, &mut |_, _| Ok(())).expect("a usable folder").0
}

fn append(path: &str, durability: Durability, sets: usize, bytes: usize) {
    let journal = open(path, durability);
    let value = Bytes::from(vec![b'x'; bytes]);
    let transactions: Vec<_> = (0..sets)
        .map(|n| {
            [(
                Bytes::from(format!("session:{n:012}")),
                Write::Set(value.clone(), Expiry::At(4_000_000_000_000)),
            )]
        })
        .collect();
    let (started, cpu_started) = (Instant::now(), cpu());
    let mut batches: Vec<u128> = Vec::new();
    for batch in transactions.chunks(1000) {
        let before = Instant::now();
        for transaction in batch {
            journal.append(transaction, vec![]).expect("a working disk");
        }
        batches.push(before.elapsed().as_nanos() / batch.len() as u128);
    }
    let own = cpu().saturating_sub(cpu_started);
    journal.close().expect("a working disk");
    batches.sort();
    let (best, median, worst) = (batches[0], batches[batches.len() / 2], batches[batches.len() - 1]);
    println!(
        "{durability:?}: append {} ns of processor; by thousands: best {best}, median {median}, worst {worst} ns each; on disk after {:?}",
        own.as_nanos() as usize / sets,
        started.elapsed()
    );
}

/// Processor time of this thread; on a busy machine the only honest clock. Zero where it is not known.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn load(path: &str) {
    let (started, cpu_started) = (Instant::now(), cpu());
    let mut state = std::collections::HashMap::with_hasher(foldhash::fast::FixedState::default());
    let options = JournalOptions::new(path);
    let loaded = Journal::open(options, &mut |key, write| {
        state.insert(key, write);
        Ok(())
    });
    let (_, recovery) = loaded.expect("what was just written");
    let (took, own) = (started.elapsed(), cpu().saturating_sub(cpu_started));
    let rate = |time: Duration| recovery.commands as f64 / time.as_secs_f64() / 1e6;
    let (of_wall, of_cpu) = (rate(took), rate(own));
    println!("loaded {} in {took:?}: {of_wall:.2} M/s; {of_cpu:.2} M/s of processor", recovery.commands);
}

/// Commits per second when `tasks` wait for each of theirs.
fn settle(path: &str, tasks: usize, bytes: usize) {
    let journal = std::sync::Arc::new(open(path, Durability::Always));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let started = Instant::now();
    let each = 500;
    runtime.block_on(async {
        let value = Bytes::from(vec![b'x'; bytes]);
        let tasks: Vec<_> = (0..tasks)
            .map(|task| {
                let (journal, value) = (journal.clone(), value.clone());
                tokio::spawn(async move {
                    for _ in 0..each {
                        let transaction =
                            [(Bytes::from(format!("key{task}")), Write::Set(value.clone(), Expiry::Never))];
                        let sequence = journal.append(&transaction, vec![]).expect("a working disk");
                        journal.wait_durable(sequence).await.expect("a working disk");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    let rate = (tasks * each) as f64 / started.elapsed().as_secs_f64();
    println!("Always: {rate:.0} commits/s from {tasks} tasks");
}
