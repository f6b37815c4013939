//! Random transactions of two processes beside external clients that change the same keys by plain commands:
//! the merged history is replayed on the model, every result and the whole keyspace compared.

use super::model_comparison::{is_refusal, make, whole};
use crate::context::Context;
use crate::external::{External, StoredValue};
use crate::families::{EVENTS as NOTES, World};
use crate::history::{Action, replay};
use crate::linearizability::Call;
use crate::model::{Op, Refusal};
use crate::random_program::{Event, KEYS, program};
use crate::rng::Rng;
use crate::runner::say;
use bytes::Bytes;
use emberkeep_hot::command::Write;
use emberkeep_hot::{Error, Scope};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Runs of every call, each with seeds of its own.
const RUNS: u64 = 6;
/// Events of each of our four tasks.
const EVENTS: usize = 60;
/// Commands of each of the two external clients.
const COMMANDS: usize = 120;
/// External clients do not write in a hot loop: our transactions must settle between two changes.
const PAUSE: Duration = Duration::from_micros(300);
/// Time of a transaction: the case is about its result, not about its speed.
const DEADLINE: Duration = Duration::from_secs(30);

/// Transactions and plain commands on the same keys at once.
pub async fn transactions_beside_plain_commands(context: &Context) {
    let random = Rng::random_seed();
    say(&format!("  mixed::transactions_beside_plain_commands: random seed {random}"));
    for seed in (0..RUNS).map(|run| run * 100).chain([random]) {
        if let Err(why) = run(context, seed).await {
            panic!("seed {seed}: {why}");
        }
    }
}

async fn run(context: &Context, seed: u64) -> Result<(), String> {
    let (keys, start): (Vec<Bytes>, _) = ((0..KEYS).map(|_| context.fresh()).collect(), context.far(0).await);
    let list = context.raw(&NOTES.key(0));
    let mut tasks = Vec::new();
    for (number, scope) in [context.scope(), context.other_scope()].into_iter().cycle().take(4).enumerate() {
        let seed = seed + number as u64;
        tasks.push(ours(scope.deadline(DEADLINE), keys.clone(), program(seed, EVENTS, start), seed));
    }
    for number in 10..12 {
        let writes = writes_of(program(seed + number, COMMANDS, start), seed + number);
        tasks.push(theirs(context.external(), keys.clone(), writes, list.clone(), seed + number));
    }
    let mut calls = Vec::new();
    for task in tasks {
        calls.extend(task.await.expect("no client panics"));
    }
    let mut external = context.external();
    let order = notes(&mut *external, &list).await;
    let model = replay(&calls, &order)?;
    // The next run begins with an empty list.
    external.change(&list, crate::external::Change::Write(Write::Del)).await;
    whole(&keys, &model, &mut *external).await.map_or(Ok(()), Err)
}

/// The notes, without the numbers and marks that the log puts before them.
async fn notes(external: &mut dyn External, list: &Bytes) -> Vec<String> {
    let Some((StoredValue::List(entries), _)) = external.inspect(list).await else { return vec![] };
    let name = |entry: &Bytes| {
        let text = String::from_utf8_lossy(entry);
        text.splitn(3, ':').nth(2).expect("a number, a mark and a note").to_owned()
    };
    entries.iter().map(name).collect()
}

/// One of our tasks: a transaction after the other, each with a note in a log unless it only
/// reads.
fn ours(
    scope: Scope<World>,
    keys: Vec<Bytes>,
    events: Vec<Event>,
    seed: u64,
) -> JoinHandle<Vec<Call<Action>>> {
    tokio::spawn(async move {
        let (mut calls, mut rng) = (Vec::new(), Rng::new(!seed));
        for (number, event) in events.into_iter().enumerate() {
            let Event::Transaction(ops) = event else { continue };
            let noted = ops.iter().any(|op| matches!(op, Op::Write(..))) || rng.one_in(2);
            let name = format!("ours {seed} {number}");
            let (keys, asked, note) = (keys.clone(), ops.clone(), name.clone());
            let invoked = Instant::now();
            let answer = scope.transact(move |tx| {
                let answers = make(tx, &keys, &asked)?;
                if noted {
                    tx.append(&NOTES.key(0), &note)?;
                }
                Ok::<_, Error>(answers)
            });
            let outcome = match answer.await {
                Ok(answers) => Ok(answers),
                Err(error) if is_refusal(&error) => Err(Refusal),
                Err(other) => panic!("{name}: {other}"),
            };
            calls.push(Call { invoked, returned: Instant::now(), op: Action { name, noted, ops, outcome } });
        }
        calls
    })
}

/// The single writes of a program, and now and then one that ends a key at once.
fn writes_of(events: Vec<Event>, seed: u64) -> Vec<(usize, Write)> {
    let mut rng = Rng::new(!seed);
    let transactions = events.into_iter().filter_map(|event| match event {
        Event::Transaction(ops) => Some(ops),
        Event::Pass(_) => None,
    });
    let mut write = |op| match op {
        Op::Write(key, _) if rng.one_in(10) => Some((key, Write::ExpireAt(1))),
        Op::Write(key, write) => Some((key, write)),
        Op::Read(..) => None,
    };
    transactions.flatten().filter_map(&mut write).take(COMMANDS).collect()
}

/// An external client: one plain command after the other, each with its note.
fn theirs(
    mut external: Box<dyn External>,
    keys: Vec<Bytes>,
    writes: Vec<(usize, Write)>,
    list: Bytes,
    seed: u64,
) -> JoinHandle<Vec<Call<Action>>> {
    tokio::spawn(async move {
        let mut calls = Vec::new();
        for (number, (key, write)) in writes.into_iter().enumerate() {
            let name = format!("theirs {seed} {number}");
            let invoked = Instant::now();
            let note = Bytes::from(format!("1:00000000:{name}"));
            let accepted = external.change_and_log(&keys[key], write.clone(), &list, note).await;
            let returned = Instant::now();
            // A deadline in the past removes the key.
            let write = if write == Write::ExpireAt(1) { Write::Del } else { write };
            let outcome = if accepted { Ok(vec![]) } else { Err(Refusal) };
            let op = Action { name, noted: true, ops: vec![Op::Write(key, write)], outcome };
            calls.push(Call { invoked, returned, op });
            tokio::time::sleep(PAUSE).await;
        }
        calls
    })
}
