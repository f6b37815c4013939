//! The process is killed without warning, 200 times in each mode, at random points of its life: while it
//! writes, while it rewrites its journal, while it recovers. What comes back is a prefix of what it did,
//! whole transactions only, and with `always` and `everysec` nothing is missing that was acknowledged, or
//! that an acknowledged read has seen.
//!
//! A killed process leaves its pages with the operating system, so this says nothing about power loss; that
//! is what the journal's own tests do, on a file layer that forgets.

use emberkeep_hot::Store;
use emberkeep_hot::embedded::Embedded;
use emberkeep_hot::journal::Durability;
use emberkeep_schema::{List, Log, Newest, Number, Text, family, partition};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const KILLS: u64 = 200;
const SLOTS: i64 = 50;
const TRAIL: i64 = 20;
const FOLDER: &str = "EMBERKEEP_KILL_FOLDER";
const MODE: &str = "EMBERKEEP_KILL_MODE";

partition! {
    /// The one partition of this test.
    pub struct Everything = "everything";
}
family! {
    /// Transactions done.
    pub COUNT = "count" { kind: Text<Number<i64>>, partition: Everything, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// The last transaction that came by this slot.
    pub SLOT = "slot:{n}" { kind: Text<Number<i64>>, partition: Everything, parts: (n: i64), ttl: persistent, owner: "test" }
}
family! {
    /// Transactions done by one thread.
    pub DONE = "done:{thread}" { kind: Text<Number<i64>>, partition: Everything, parts: (thread: i64), ttl: persistent, owner: "test" }
}
family! {
    /// The last transactions, newest at the end.
    pub TRAIL_LIST = "trail" { kind: List<Number<i64>>, partition: Everything, parts: (), ttl: persistent, owner: "test" }
}

family! {
    /// The same as events, appended without a read.
    pub EVENTS = "log:events" {
        kind: Log<Number<i64>, Newest<20>>, partition: Everything, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// One event for each transaction of any thread.
    pub CROWD_EVENTS = "log:crowd" {
        kind: Log<Number<i64>, Newest<10>>, partition: Everything, parts: (), ttl: persistent, owner: "test"
    }
}

fn open(folder: &Path, durability: Durability) -> Arc<Embedded> {
    // A small journal is rewritten often, so that many kills hit a rewrite.
    let options = Embedded::builder().data(folder).durability(durability).rewrite_bytes_min(16 * 1024);
    Arc::new(options.open().expect("whatever a kill leaves behind can be opened"))
}

fn mode(name: &str) -> Durability {
    match name {
        "always" => Durability::Always,
        "everysec" => Durability::EverySec,
        _ => Durability::No,
    }
}

/// One transaction: counter, slot, trail and log speak of the same number.
async fn transaction(store: &Store) -> i64 {
    let scope = store.scope(Everything);
    let done = scope.transact(|tx| {
        let n = tx.get(&COUNT.key())?.unwrap_or(0) + 1;
        tx.put(&COUNT.key(), &n)?;
        tx.put(&SLOT.key(n % SLOTS), &n)?;
        tx.rpush(&TRAIL_LIST.key(), &n)?;
        tx.ltrim(&TRAIL_LIST.key(), -TRAIL, -1)?;
        tx.append(&EVENTS.key(), &n)?;
        Ok::<_, emberkeep_hot::Error>(n)
    });
    done.await.expect("a transaction of the victim")
}

/// Not a test of its own: the process that is killed.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let durability = mode(&std::env::var(MODE).unwrap_or_default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Store::new(open(Path::new(&folder), durability));
        let mut out = std::io::stdout();
        // Bounded, should it never be killed.
        for _ in 0..200_000 {
            let n = transaction(&store).await;
            if writeln!(out, "ack {n}").and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    });
}

/// Starts this binary as one of the processes that are killed. Returns it and the lines that it prints.
fn start(test: &str, folder: &Path, mode: &str) -> (Child, impl Iterator<Item = String>) {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(MODE, mode)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the victim starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    (child, lines)
}

/// Starts a victim, kills it at a random point, and returns the last transaction it acknowledged.
fn kill_one(folder: &Path, mode: &str, random: u64) -> i64 {
    let (mut child, lines) = start("victim", folder, mode);
    let mut acks = lines.filter_map(|line| line.strip_prefix("ack ")?.parse::<i64>().ok());
    // One in eight dies while it starts or recovers, the others after some transactions: points of its life,
    // not of the clock, so that a busy machine does not kill them all in the cradle.
    let mut last = 0;
    if !random.is_multiple_of(8) {
        last = acks.by_ref().take((random >> 8) as usize % 200 + 1).last().unwrap_or(0);
    }
    std::thread::sleep(Duration::from_micros((random >> 20) % 25_000));
    child.kill().expect("the victim was still there");
    last = acks.last().unwrap_or(last);
    child.wait().expect("the victim is gone");
    last
}

/// Opens what is left, checks that it is the state after some number of whole transactions, and returns that
/// number.
fn recovered(folder: &Path, durability: Durability) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Store::new(open(folder, durability));
        let scope = store.scope(Everything);
        let count = scope.get(&COUNT.key()).await.expect("readable").unwrap_or(0);
        for slot in 0..SLOTS {
            let expected = (count - (count - slot).rem_euclid(SLOTS)).max(0);
            let found = scope.get(&SLOT.key(slot)).await.expect("readable").unwrap_or(0);
            assert_eq!(found, expected, "slot {slot} after {count} transactions");
        }
        let trail = scope.transact(|tx| tx.lrange(&TRAIL_LIST.key(), 0, -1)).await.expect("readable");
        let expected: Vec<i64> = ((count - TRAIL).max(0) + 1..=count).collect();
        assert_eq!(trail, expected, "the trail after {count} transactions");
        let log = scope.log_after(&EVENTS.key(), 0, TRAIL as usize).await.expect("readable");
        let events: Vec<i64> = log.entries.into_iter().map(|entry| entry.event.expect("a number")).collect();
        assert_eq!((events, log.last), (expected, count as u64), "the log after {count} transactions");
        store.close().await.expect("closes");
        count
    })
}

fn kill_many(mode_name: &str) {
    let folder = emberkeep_testkit::scratch();
    let durability = mode(mode_name);
    let (mut random, mut before, mut lost, mut quiet) = (0x2545_F491_4F6C_DD1D_u64, 0, 0, 0);
    for _ in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let acknowledged = kill_one(folder.path(), mode_name, random >> 24).max(before);
        let now = recovered(folder.path(), durability);
        assert!(now >= before, "what had been recovered once is there: {before} then {now}");
        if durability != Durability::No {
            assert!(now >= acknowledged, "{acknowledged} transactions were acknowledged, {now} came back");
        }
        lost += (acknowledged - now).max(0);
        quiet += (now == before) as u64;
        before = now;
    }
    println!(
        "kill -9, {mode_name}: {KILLS} kills, {before} transactions survived, {lost} acknowledged ones lost, {quiet} victims did nothing"
    );
    assert!(quiet < KILLS / 2, "most victims must have lived long enough to write");
}

#[test]
fn always_loses_nothing_that_was_acknowledged() {
    kill_many("always");
}

#[test]
fn everysec_loses_nothing_that_was_acknowledged() {
    kill_many("everysec");
}

#[test]
fn no_sync_comes_back_to_a_prefix() {
    kill_many("no");
}

const THREADS: i64 = 3;
const CROWD_KILLS: u64 = 40;

/// Not a test of its own: the process that is killed while several threads write and one reads.
#[test]
fn crowd() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let engine = open(Path::new(&folder), mode(&std::env::var(MODE).unwrap_or_default()));
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
    };
    std::thread::scope(|scope| {
        for thread in 0..=THREADS {
            let store = Store::new(engine.clone());
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                // Bounded, in case it is never killed.
                for n in 0..50_000 {
                    let key = DONE.key(if thread < THREADS { thread } else { n % THREADS });
                    let scope = store.scope(Everything);
                    let done = runtime.block_on(scope.transact(move |tx| {
                        let observed = tx.get(&key)?.unwrap_or(0);
                        // The last thread only reads.
                        if thread < THREADS {
                            tx.put(&key, &(observed + 1))?;
                            tx.append(&CROWD_EVENTS.key(), &thread)?;
                        }
                        Ok::<_, emberkeep_hot::Error>(observed + i64::from(thread < THREADS))
                    }));
                    let name = if thread < THREADS { thread } else { n % THREADS };
                    if !say(format!("ack {name} {}", done.expect("a transaction of the victim"))) {
                        return;
                    }
                }
            });
        }
    });
}

/// Kills a crowd after some answers. Answers the highest number that each counter was said to have.
fn kill_crowd(folder: &Path, mode: &str, answers: usize) -> [i64; THREADS as usize] {
    let (mut child, lines) = start("crowd", folder, mode);
    let mut acks = lines.filter_map(|line| {
        let (thread, n) = line.split_once("ack ")?.1.split_once(' ')?;
        Some((thread.parse::<usize>().ok()?, n.parse::<i64>().ok()?))
    });
    let mut highest = [0; THREADS as usize];
    let mut note = |(thread, n): (usize, i64)| highest[thread] = highest[thread].max(n);
    acks.by_ref().take(answers).for_each(&mut note);
    child.kill().expect("the victim was still there");
    acks.for_each(note);
    child.wait().expect("the victim is gone");
    highest
}

#[test]
fn nothing_that_any_thread_was_answered_or_shown_is_lost() {
    let mut acknowledged = 0;
    for mode_name in ["everysec", "always"] {
        let folder = emberkeep_testkit::scratch();
        for kill in 0..CROWD_KILLS {
            let highest = kill_crowd(folder.path(), mode_name, kill as usize * 13 % 97 + 1);
            let store = Store::new(open(folder.path(), mode(mode_name)));
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let mut sum = 0;
            for (thread, highest) in (0..).zip(highest) {
                let found = runtime.block_on(store.scope(Everything).get(&DONE.key(thread)));
                let found = found.expect("readable").unwrap_or(0);
                assert!(found >= highest, "{mode_name}: {highest} was answered, {found} came back");
                acknowledged += highest;
                sum += found as u64;
            }
            let last = runtime.block_on(store.scope(Everything).log_last(&CROWD_EVENTS.key()));
            assert_eq!(last.expect("readable").sequence, sum, "{mode_name}: the log and the state agree");
            runtime.block_on(store.close()).expect("closes");
        }
    }
    println!(
        "kill -9, several threads: {} kills, 0 lost, counters stood at {acknowledged} in sum",
        2 * CROWD_KILLS
    );
    assert!(acknowledged > 0);
}
