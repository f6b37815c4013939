//! Linearizability: the calls and results of several tasks of two processes can be put in an order that
//! respects real time.

use crate::builders::*;
use crate::context::Context;
use crate::families::World;
use crate::linearizability::{Call, Spec, is_linearizable};
use crate::rng::Rng;
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::{Result, Scope, Tx};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Instant;

/// Tasks; even ones are of one process, odd ones of the other.
const TASKS: usize = 6;
/// How many calls each client makes.
const CALLS: usize = 40;
/// Histories of each kind.
const ROUNDS: u64 = 5;

/// What a task does in a transaction, chosen at random, and its result.
type Act<O> = fn(&mut Tx<'_, World>, &[Bytes; 2], u64) -> Result<O>;

/// Records what the tasks do on fresh keys and checks it.
async fn check<S>(context: &Context, spec: S, act: Act<S::Op>)
where
    S: Spec + Send + 'static,
    S::Op: Debug + Send + 'static,
{
    for round in 0..ROUNDS {
        let keys = [context.fresh(), context.fresh()];
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let scope = if task % 2 == 0 { context.scope() } else { context.other_scope() };
                tokio::spawn(record(scope, keys.clone(), round * 100 + task as u64, act))
            })
            .collect();
        let mut history = Vec::new();
        for task in tasks {
            history.extend(task.await.expect("no task panics"));
        }
        assert!(is_linearizable(&spec, &history), "round {round} has no order:{}", shown(&mut history));
    }
}

/// Calls by the time they were made, one a line, in microseconds.
fn shown<O: Debug>(history: &mut [Call<O>]) -> String {
    history.sort_by_key(|call| call.invoked);
    let Some(first) = history.first().map(|call| call.invoked) else { return String::new() };
    let since = |at: Instant| at.duration_since(first).as_micros();
    let line =
        |call: &Call<O>| format!("\n{:>8} {:>8}  {:?}", since(call.invoked), since(call.returned), call.op);
    history.iter().map(line).collect()
}

async fn record<O: Debug + Send + 'static>(
    scope: Scope<World>,
    keys: [Bytes; 2],
    seed: u64,
    act: Act<O>,
) -> Vec<Call<O>> {
    let mut rng = Rng::new(seed);
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let (keys, roll) = (keys.clone(), rng.next_u64());
        let invoked = Instant::now();
        let op = scope.transact(move |tx| act(tx, &keys, roll)).await.expect("tasks settle");
        calls.push(Call { invoked, returned: Instant::now(), op });
        tokio::task::yield_now().await;
    }
    calls
}

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Blob(text) => String::from_utf8_lossy(text).parse().expect("a number"),
        _ => 0,
    }
}

/// Reads, writes and compare-and-set of one register.
#[derive(Debug)]
enum OnRegister {
    Read(i64),
    Write(i64),
    Cas(i64, i64, bool),
}

struct Register;

impl Spec for Register {
    type State = i64;
    type Op = OnRegister;

    fn start(&self) -> i64 {
        0
    }

    fn apply(&self, state: &i64, op: &OnRegister) -> Option<i64> {
        match op {
            OnRegister::Read(found) => (found == state).then_some(*state),
            OnRegister::Write(value) => Some(*value),
            OnRegister::Cas(from, to, done) => {
                let possible = (state == from) == *done;
                possible.then_some(if *done { *to } else { *state })
            }
        }
    }
}

/// A register with blind writes, reads and compare-and-set.
pub async fn registers(context: &Context) {
    check(context, Register, |tx, [key, _], roll| {
        let value = (roll >> 8) as i64 % 4;
        match roll % 3 {
            0 => Ok(OnRegister::Read(number(&tx.raw_read(key, Read::Get)?))),
            1 => {
                tx.raw_write(key.clone(), set(&value.to_string()))?;
                Ok(OnRegister::Write(value))
            }
            _ => {
                let wanted = (roll >> 16) as i64 % 4;
                let done = number(&tx.raw_read(key, Read::Get)?) == wanted;
                if done {
                    tx.raw_write(key.clone(), set(&value.to_string()))?;
                }
                Ok(OnRegister::Cas(wanted, value, done))
            }
        }
    })
    .await;
}

/// A counter: blind increments, reads, and increments that tell the sum.
#[derive(Debug)]
enum OnCounter {
    Read(i64),
    Add(i64),
    AddAndTell(i64, i64),
}

struct Counter;

impl Spec for Counter {
    type State = i64;
    type Op = OnCounter;

    fn start(&self) -> i64 {
        0
    }

    fn apply(&self, state: &i64, op: &OnCounter) -> Option<i64> {
        match op {
            OnCounter::Read(found) => (found == state).then_some(*state),
            OnCounter::Add(by) => Some(state + by),
            OnCounter::AddAndTell(by, sum) => (state + by == *sum).then_some(*sum),
        }
    }
}

/// A counter with increments whose result is read, and others.
pub async fn counters(context: &Context) {
    check(context, Counter, |tx, [key, _], roll| {
        let by = (roll >> 8) as i64 % 9 - 4;
        match roll % 3 {
            0 => Ok(OnCounter::Read(number(&tx.raw_read(key, Read::Get)?))),
            1 => {
                tx.raw_write(key.clone(), Write::IncrBy(by))?;
                Ok(OnCounter::Add(by))
            }
            _ => {
                tx.raw_write(key.clone(), Write::IncrBy(by))?;
                Ok(OnCounter::AddAndTell(by, number(&tx.raw_read(key, Read::Get)?)))
            }
        }
    })
    .await;
}

/// A set: adds and removes that tell whether they changed it, and whole reads.
#[derive(Debug)]
enum SetCall {
    Add(Bytes, bool),
    Remove(Bytes, bool),
    Members(Vec<Bytes>),
}

struct Members;

impl Spec for Members {
    type State = BTreeSet<Bytes>;
    type Op = SetCall;

    fn start(&self) -> BTreeSet<Bytes> {
        BTreeSet::new()
    }

    fn apply(&self, state: &BTreeSet<Bytes>, op: &SetCall) -> Option<BTreeSet<Bytes>> {
        let mut after = state.clone();
        let possible = match op {
            SetCall::Add(member, new) => after.insert(member.clone()) == *new,
            SetCall::Remove(member, stored) => after.remove(member) == *stored,
            SetCall::Members(found) => state.iter().eq(found),
        };
        possible.then_some(after)
    }
}

/// A set of few members.
pub async fn sets(context: &Context) {
    check(context, Members, |tx, [key, _], roll| {
        let member = b(["a", "b", "c"][(roll >> 8) as usize % 3]);
        match roll % 3 {
            0 => {
                let new = tx.raw_read(key, Read::SIsMember(member.clone()))? == int(0);
                tx.raw_write(key.clone(), Write::SAdd(vec![member.clone()]))?;
                Ok(SetCall::Add(member, new))
            }
            1 => {
                let stored = tx.raw_read(key, Read::SIsMember(member.clone()))? == int(1);
                tx.raw_write(key.clone(), Write::SRem(vec![member.clone()]))?;
                Ok(SetCall::Remove(member, stored))
            }
            _ => match tx.raw_read(key, Read::SMembers)? {
                Reply::List(members) => Ok(SetCall::Members(members)),
                other => panic!("SMEMBERS answered {other:?}"),
            },
        }
    })
    .await;
}

/// Two registers: transactions over both, as one state.
#[derive(Debug)]
enum OnPair {
    Both(i64, i64),
    Swap(i64, i64),
    Write(usize, i64),
}

struct Pair;

impl Spec for Pair {
    type State = [i64; 2];
    type Op = OnPair;

    fn start(&self) -> [i64; 2] {
        [0, 0]
    }

    fn apply(&self, state: &[i64; 2], op: &OnPair) -> Option<[i64; 2]> {
        match op {
            OnPair::Both(one, other) => (*state == [*one, *other]).then_some(*state),
            OnPair::Swap(one, other) => (*state == [*one, *other]).then_some([*other, *one]),
            OnPair::Write(at, value) => {
                let mut after = *state;
                after[*at] = *value;
                Some(after)
            }
        }
    }
}

/// Two keys in one transaction: reads of both, swaps, blind writes of one.
pub async fn transactions_over_two_keys(context: &Context) {
    check(context, Pair, |tx, keys, roll| {
        let value = (roll >> 8) as i64 % 5;
        if roll % 3 == 0 {
            let at = (roll >> 16) as usize % 2;
            tx.raw_write(keys[at].clone(), set(&value.to_string()))?;
            return Ok(OnPair::Write(at, value));
        }
        // In either order, so that locks are met in either order.
        let (first, second) = if roll >> 20 & 1 == 0 { (0, 1) } else { (1, 0) };
        let mut found = [0; 2];
        found[first] = number(&tx.raw_read(&keys[first], Read::Get)?);
        found[second] = number(&tx.raw_read(&keys[second], Read::Get)?);
        if roll % 3 == 1 {
            return Ok(OnPair::Both(found[0], found[1]));
        }
        tx.raw_write(keys[0].clone(), set(&found[1].to_string()))?;
        tx.raw_write(keys[1].clone(), set(&found[0].to_string()))?;
        Ok(OnPair::Swap(found[0], found[1]))
    })
    .await;
}
