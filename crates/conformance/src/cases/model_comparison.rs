//! Random programs against the model: every answer of every transaction, and the whole keyspace after each
//! program.

use crate::context::Context;
use crate::external::{Change, External};
use crate::families::World;
use crate::model::{Model, Op};
use crate::random_program::{Event, KEYS, LIFE_MS_MAX, program, shorter_at};
use crate::rng::Rng;
use crate::runner::say;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Reply, Write};
use emberkeep_hot::{Error, Scope, Tx};

/// Programs that every run makes, so that a failure can be found again by its seed.
const FIXED_SEEDS: u64 = 100;
/// Events of a program.
const EVENTS: usize = 40;

/// Fixed seeds and a random one.
pub async fn transactions_against_the_model(context: &Context) {
    for seed in seeds("transactions_against_the_model", 0) {
        run(context, seed, Schedule::OneByOne).await;
    }
}

/// The same, with all operations of a program's neighbouring transactions in one body: own writes deep.
pub async fn large_transactions_against_the_model(context: &Context) {
    for seed in seeds("large_transactions_against_the_model", 1_000) {
        run(context, seed, Schedule::Joined).await;
    }
}

/// The same, with neighbouring reads of a body made together.
pub async fn reads_together_against_the_model(context: &Context) {
    for seed in seeds("reads_together_against_the_model", 3_000) {
        run(context, seed, Schedule::Together).await;
    }
}

/// The same, where two processes alternate, so that each read cache is stale.
pub async fn two_processes_against_the_model(context: &Context) {
    for seed in seeds("two_processes_against_the_model", 2_000) {
        run(context, seed, Schedule::InTurns).await;
    }
}

/// The fixed seeds from this one on, and random ones: one, or as many as `EMBERKEEP_PROGRAMS` says.
fn seeds(case: &str, first: u64) -> impl Iterator<Item = u64> {
    let count = std::env::var("EMBERKEEP_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    let random = Rng::random_seed();
    say(&format!("  model_comparison::{case}: {count} random from seed {random}"));
    (first..first + FIXED_SEEDS).chain((0..count).map(move |n| random.wrapping_add(n)))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Schedule {
    OneByOne,
    Joined,
    Together,
    InTurns,
}

async fn run(context: &Context, seed: u64, schedule: Schedule) {
    // Far from now, so that on a real server only the program's own clock ends keys.
    let start = context.far(0).await;
    let mut events = program(seed, EVENTS, start);
    if matches!(schedule, Schedule::Joined | Schedule::Together) {
        events = joined(events);
    }
    if let Some(clock) = context.manual_clock() {
        clock.set(start);
    }
    if play(context, &events, schedule, start).await.is_none() {
        return;
    }
    let (shortest, why) = shortened(context, events, schedule, start).await;
    panic!("seed {seed}, {schedule:?}: {why}\nprogram: {shortest:?}");
}

/// The shortest program, with the shortest transactions, that still fails.
async fn shortened(
    context: &Context,
    mut events: Vec<Event>,
    schedule: Schedule,
    start: i64,
) -> (Vec<Event>, String) {
    let mut why = "it failed once and not again".to_owned();
    let mut at = events.len();
    while at > 0 {
        at -= 1;
        for shorter in shorter_at(&events, at) {
            let (again, later) = restarted(context, start).await;
            if let Some(reason) = play(context, &moved(&shorter, later), schedule, again).await {
                (events, why) = (shorter, reason);
                // The same place again: more of it may go.
                at = (at + 1).min(events.len());
                break;
            }
        }
    }
    (events, why)
}

/// A held clock does not go back: a program that is played again starts later, with later deadlines.
async fn restarted(context: &Context, start: i64) -> (i64, i64) {
    match context.manual_clock() {
        Some(clock) => {
            let again = clock.now().max(start) + 10 * LIFE_MS_MAX;
            clock.set(again);
            (again, again - start)
        }
        None => (start, 0),
    }
}

fn moved(events: &[Event], by: i64) -> Vec<Event> {
    let move_op = |op: &Op| match op {
        Op::Write(key, Write::ExpireAt(at)) => Op::Write(*key, Write::ExpireAt(at + by)),
        Op::Write(key, Write::ExpireAtIfNone(at)) => Op::Write(*key, Write::ExpireAtIfNone(at + by)),
        Op::Write(key, Write::Set(text, Expiry::At(at))) => {
            Op::Write(*key, Write::Set(text.clone(), Expiry::At(at + by)))
        }
        Op::Write(key, Write::SetIfGreater(text, Expiry::At(at))) => {
            Op::Write(*key, Write::SetIfGreater(text.clone(), Expiry::At(at + by)))
        }
        other => other.clone(),
    };
    let move_event = |event: &Event| match event {
        Event::Transaction(ops) => Event::Transaction(ops.iter().map(move_op).collect()),
        Event::Pass(ms) => Event::Pass(*ms),
    };
    events.iter().map(move_event).collect()
}

fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(Event::Transaction(before)), Event::Transaction(ops)) if before.len() < 30 => {
                before.extend(ops)
            }
            (_, event) => joined.push(event),
        }
    }
    joined
}

/// Plays a program on fresh keys; what differs from the model, if anything does.
async fn play(context: &Context, events: &[Event], schedule: Schedule, start: i64) -> Option<String> {
    let keys: Vec<Bytes> = (0..KEYS).map(|_| context.fresh()).collect();
    let scopes = [context.scope(), context.other_scope()];
    let (mut model, mut now, mut external) = (Model::default(), start, context.external());
    for (number, event) in events.iter().enumerate() {
        match event {
            Event::Pass(ms) => {
                now += ms;
                let ended = model.pass(now);
                pass(context, &keys, &ended, now, &mut *external).await;
            }
            Event::Transaction(ops) => {
                let ops = living(ops, now);
                let scope = &scopes[if schedule == Schedule::InTurns { number % 2 } else { 0 }];
                let difference = compare(scope, &keys, &ops, &mut model, schedule).await;
                if let Some(difference) = difference {
                    return Some(format!("event {number}: {difference}"));
                }
            }
        }
    }
    whole(&keys, &model, &mut *external).await
}

/// Without the deadlines that a shortened program would set in the past.
fn living(ops: &[Op], now: i64) -> Vec<Op> {
    let dead = |op: &&Op| matches!(op, Op::Write(_, write) if write.deadline().is_some_and(|at| at <= now));
    ops.iter().filter(|op| !dead(op)).cloned().collect()
}

/// A held clock moves; on a real server an external client ends the keys whose time has come.
async fn pass(context: &Context, keys: &[Bytes], ended: &[usize], now: i64, external: &mut dyn External) {
    if let Some(clock) = context.manual_clock() {
        return clock.set(now);
    }
    for key in ended {
        external.change(&keys[*key], Change::Write(Write::ExpireAt(1))).await;
    }
}

/// Runs a transaction on the engine and on the model.
async fn compare(
    scope: &Scope<World>,
    keys: &[Bytes],
    ops: &[Op],
    model: &mut Model,
    schedule: Schedule,
) -> Option<String> {
    let expected = model.transaction(ops);
    let (keys, asked) = (keys.to_vec(), ops.to_vec());
    let body = if schedule == Schedule::Together { make_together } else { make };
    let found = scope.transact(move |tx| body(tx, &keys, &asked)).await;
    match (expected, found) {
        (Ok(expected), Ok(found)) if expected == found => None,
        (Err(_), Err(error)) if is_refusal(&error) => None,
        (expected, found) => Some(format!("{ops:?}\n  model:  {expected:?}\n  engine: {found:?}")),
    }
}

/// A type or a value that does not allow a write, or no element at a position.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::WrongType { .. } | Error::Corrupt { .. } | Error::Overflow { .. })
        || matches!(error, Error::Invalid { what: "index", .. })
}

/// The body: makes the operations, keeps what reads answer. `None` = of another type.
pub(super) fn make(tx: &mut Tx<'_, World>, keys: &[Bytes], ops: &[Op]) -> Result<Vec<Option<Reply>>, Error> {
    let mut answers = Vec::new();
    for op in ops {
        match op {
            Op::Write(key, write) => tx.raw_write(keys[*key].clone(), write.clone())?,
            Op::Read(key, read) => answers.push(outcome(tx.raw_read(&keys[*key], read.clone()))?),
        }
    }
    Ok(answers)
}

/// The same body, with each run of neighbouring reads made together.
fn make_together(tx: &mut Tx<'_, World>, keys: &[Bytes], ops: &[Op]) -> Result<Vec<Option<Reply>>, Error> {
    let mut answers = Vec::new();
    for part in ops.chunk_by(|one, next| matches!((one, next), (Op::Read(..), Op::Read(..)))) {
        let read_of = |op: &Op| match op {
            Op::Read(key, read) => Some((keys[*key].clone(), read.clone())),
            Op::Write(..) => None,
        };
        let reads: Vec<_> = part.iter().filter_map(read_of).collect();
        for reply in tx.raw_read_many(&reads)? {
            answers.push(outcome(reply)?);
        }
        if let Op::Write(key, write) = &part[0] {
            tx.raw_write(keys[*key].clone(), write.clone())?;
        }
    }
    Ok(answers)
}

fn outcome(answer: Result<Reply, Error>) -> Result<Option<Reply>, Error> {
    match answer {
        Ok(reply) => Ok(Some(reply)),
        Err(Error::WrongType { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The whole keyspace, as an external client sees it.
pub(super) async fn whole(keys: &[Bytes], model: &Model, external: &mut dyn External) -> Option<String> {
    for (number, key) in keys.iter().enumerate() {
        let expected = model.entry(number).map(|entry| (entry.stored.clone(), entry.deadline));
        let found = external.inspect(key).await;
        if expected != found {
            return Some(format!("key {number} at the end\n  model:  {expected:?}\n  engine: {found:?}"));
        }
    }
    None
}
