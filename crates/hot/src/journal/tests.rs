//! Incident reports: what was on the disk, what happened, what the next start found.

mod crash;
mod damage;
mod faults;
mod format;
mod live;
mod rewrite;

use super::fault_disk::FaultDisk;
use super::*;
use crate::command::Expiry;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// A transaction.
type Transaction = Vec<(RawKey, Write)>;
/// A keyspace that knows SET, DEL and INCRBY: enough to tell states apart.
type State = BTreeMap<RawKey, Bytes>;

fn options(files: &FaultDisk, durability: Durability) -> JournalOptions {
    JournalOptions { files: Arc::new(files.clone()), durability, ..JournalOptions::new("/data") }
}

/// A journal whose writer the test turns by hand, with the writes that were loaded.
fn open(files: &FaultDisk, durability: Durability) -> Result<(Journal, Writer, Recovery, Transaction)> {
    open_with(options(files, durability))
}

fn open_with(options: JournalOptions) -> Result<(Journal, Writer, Recovery, Transaction)> {
    let mut loaded = Transaction::new();
    let (journal, recovery, writer) = Journal::open_without_thread(options, &mut |key, write| {
        loaded.push((key, write));
        Ok(())
    })?;
    Ok((journal, writer, recovery, loaded))
}

/// What the next start finds.
fn reload(files: &FaultDisk) -> Result<(Recovery, Transaction)> {
    open(files, Durability::Always).map(|(_, _, recovery, loaded)| (recovery, loaded))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn set(key: &str, value: &str) -> (RawKey, Write) {
    (bytes(key), Write::Set(bytes(value), Expiry::Never))
}

/// The `n`-th of a row of transactions whose states all differ. Every third has several commands.
fn transaction(n: u64) -> Transaction {
    let mut transaction = vec![(bytes("count"), Write::IncrBy(1))];
    if n.is_multiple_of(3) {
        transaction
            .push(set(&format!("key{}", n % 5), &format!("value {n} {}", "x".repeat(n as usize % 40))));
        transaction.push((bytes(&format!("key{}", n % 7)), Write::Del));
    }
    transaction
}

fn transactions(count: u64) -> Vec<Transaction> {
    (1..=count).map(transaction).collect()
}

fn apply(state: &mut State, writes: &[(RawKey, Write)]) {
    for (key, write) in writes {
        match write {
            Write::Set(value, _) => {
                state.insert(key.clone(), value.clone());
            }
            Write::Del => {
                state.remove(key);
            }
            Write::IncrBy(by) => {
                let old: i64 = state.get(key).map_or(0, |v| std::str::from_utf8(v).unwrap().parse().unwrap());
                state.insert(key.clone(), bytes(&(old + by).to_string()));
            }
            other => panic!("the model does not know {other:?}"),
        }
    }
}

/// The state after the first `count` transactions of a row.
fn state_after(count: u64) -> State {
    let mut state = State::new();
    transactions(count).iter().for_each(|transaction| apply(&mut state, transaction));
    state
}

fn state_of(loaded: &Transaction) -> State {
    let mut state = State::new();
    apply(&mut state, loaded);
    state
}

/// How many transactions of the row have been loaded. Panics if it is not a prefix of the row.
fn prefix_length(loaded: &Transaction) -> u64 {
    let state = state_of(loaded);
    let count = state.get(&bytes("count")).map_or(0, |v| std::str::from_utf8(v).unwrap().parse().unwrap());
    assert_eq!(state, state_after(count), "a state that never was");
    count
}

const NOW: Duration = Duration::ZERO;
const INCREMENT: &str = "/data/appendonlydir/appendonly.aof.1.incr.aof";
const MANIFEST: &str = "/data/appendonlydir/appendonly.aof.manifest";
