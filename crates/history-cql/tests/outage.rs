//! A game and its consumer beside a Cassandra that is away when they start, comes, hangs and comes back, while the process
//! is killed without warning: nothing is lost and nothing counts twice.
//!
//! Each process writes 5,000 kills a second for [`BURST`], then some. The outage is cut to what shows it: about 30 s in
//! two parts instead of a minute in one.

#[path = "../../history/tests/arena/mod.rs"]
mod arena;
mod cassandra;
#[path = "../../history/tests/folders/mod.rs"]
mod folders;

use arena::*;
use cassandra::keyspace;
use emberkeep_history::outbox::Consumer;
use emberkeep_history::{Deferred, History};
use emberkeep_history_cql::CqlStore;
use emberkeep_hot::embedded::Embedded;
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_testkit::{CassandraCluster, report, require};
use folders::Folder;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const FOLDER: &str = "EMBERKEEP_TEST_OUTAGE_FOLDER";
const URL: &str = "EMBERKEEP_TEST_OUTAGE_URL";
const WRITERS: i64 = 4;
/// Of each writer.
const KILLS_PER_SECOND: u32 = 1_250;
const BURST: Duration = Duration::from_secs(5);
const KILLS_PER_SECOND_LATER: u32 = 50;
/// The log takes 5,000 entries: a second of the burst.
const SPOOL_AFTER: Duration = Duration::from_millis(400);
/// A child is killed long before.
const CHILD_TIME_MAX: Duration = Duration::from_secs(120);
/// Until something happens, on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(90);

fn hot(folder: &Path) -> Scope<Arena> {
    let store = Embedded::builder().data(folder.join("hot")).open().unwrap();
    Store::new(Arc::new(store)).scope(Arena(1))
}

fn with_spool(scope: &Scope<Arena>, history: &History, folder: &Path) -> Consumer {
    consumer(scope, history).through_spool(folder.join("spool"), 1 << 30).unwrap().spool_after(SPOOL_AFTER)
}

/// History that is opened when the cluster answers, as a server does it.
fn deferred(url: String) -> History {
    let deferred = Arc::new(Deferred::new("history", "it was not tried yet"));
    let opened = deferred.clone();
    tokio::spawn(async move {
        let open = || {
            let url = url.clone();
            let connect = async move { CqlStore::connect(&url, schema(), cassandra::options()).await };
            Box::pin(async move { connect.await.map(|store| History::new(Arc::new(store))) }) as _
        };
        opened.open::<emberkeep_history_cql::ConnectError>(open).await;
    });
    History::new(deferred)
}

/// The process that is killed: it writes and drains, and says every moment how far it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let (Ok(folder), Ok(url)) = (std::env::var(FOLDER), std::env::var(URL)) else { return };
    let folder = Path::new(&folder);
    let scope = hot(folder);
    // The process before had it and is dead.
    scope.del(&DRAINER.key()).await.unwrap();
    let consumer = Arc::new(with_spool(&scope, &deferred(url), folder));
    let running = consumer.clone();
    tokio::spawn(async move { running.run(std::future::pending()).await });
    let (answered, refused) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicU64::new(0)));
    for killer in 0..WRITERS {
        tokio::spawn(write(scope.clone(), killer, answered.clone(), refused.clone()));
    }
    let begun = Instant::now();
    while begun.elapsed() < CHILD_TIME_MAX {
        let (answered, refused) = (answered.load(Relaxed), refused.load(Relaxed));
        let page = scope.log_after_encoded(&EVENTS.key(), 0, 1).await.unwrap();
        let in_log = page.entries.first().map_or(0, |first| page.last + 1 - first.sequence);
        let stats = consumer.stats();
        let line =
            format!("state {answered} {refused} {in_log} {} {}", stats.spooled_entries, stats.delivered);
        writeln!(std::io::stdout(), "{line}").unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn write(scope: Scope<Arena>, killer: i64, answered: Arc<AtomicI64>, refused: Arc<AtomicU64>) {
    let begun = Instant::now();
    let mut written: u32 = 0;
    loop {
        let elapsed = begun.elapsed();
        let due = elapsed.min(BURST).as_secs_f64() * f64::from(KILLS_PER_SECOND)
            + elapsed.saturating_sub(BURST).as_secs_f64() * f64::from(KILLS_PER_SECOND_LATER);
        while f64::from(written) < due {
            match kill(&scope, killer).await {
                Ok(_) => answered.fetch_add(1, Relaxed),
                Err(Error::LogFull { .. }) => refused.fetch_add(1, Relaxed) as i64,
                Err(other) => panic!("{other}"),
            };
            written += 1;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a child said last.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    answered: i64,
    refused: u64,
    in_log: u64,
    spooled: u64,
    delivered: u64,
    /// The most that were in the log so far.
    in_log_max: u64,
}

impl State {
    fn of(line: &str) -> Option<State> {
        let numbers = line.split_once("state ")?.1;
        let mut numbers = numbers.split(' ').map_while(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next();
        Some(State {
            answered: next()? as i64,
            refused: next()?,
            in_log: next()?,
            spooled: next()?,
            delivered: next()?,
            in_log_max: 0,
        })
    }

    fn after(self, before: State) -> State {
        State { in_log_max: before.in_log_max.max(self.in_log), ..self }
    }
}

struct Writing {
    process: Child,
    states: Receiver<State>,
    last: State,
}

impl Writing {
    fn start(folder: &Path, url: &str) -> Writing {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .env(URL, url);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (said, states) = channel();
        std::thread::spawn(move || {
            lines.filter_map(|line| State::of(&line)).try_for_each(|state| said.send(state))
        });
        Writing { process, states, last: State::default() }
    }

    /// Waits until it says something.
    fn until(&mut self, what: &str, is_so: impl Fn(State) -> bool) {
        let begun = Instant::now();
        while !is_so(self.last) {
            assert!(begun.elapsed() < WAIT_MAX, "{what} did not happen: {:?}", self.last);
            match self.states.recv_timeout(WAIT_MAX) {
                Ok(state) => self.last = state.after(self.last),
                Err(error) => {
                    panic!("{what} did not happen, the process says nothing: {error}, {:?}", self.last)
                }
            }
        }
    }

    fn kill9(mut self) -> State {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.states.iter().fold(self.last, |last, state| state.after(last))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_and_processes_that_are_killed_lose_and_double_nothing() {
    let Some(cassandra) = require(CassandraCluster::start_one()) else { return };
    let folder = Folder::new();
    let url = keyspace(&cassandra, "outage").await;
    drop(CqlStore::connect(&url, schema(), cassandra::options()).await.unwrap());
    cassandra.kill9(0);
    let begun = Instant::now();
    let burst = i64::from(KILLS_PER_SECOND) * WRITERS * BURST.as_secs() as i64;

    // Away from the start on.
    let mut first = Writing::start(folder.path(), &url);
    first.until("a burst", |state| state.answered + state.refused as i64 >= burst);
    first.until("moving", |state| state.in_log < 1_000 && state.spooled > state.answered as u64 / 2);
    let first = first.kill9();
    let mut second = Writing::start(folder.path(), &url);
    tokio::task::block_in_place(|| cassandra.restart(0)).unwrap();
    let away = begun.elapsed();
    second.until("history's return", |state| state.delivered > 2_000);
    // It hangs.
    cassandra.pause(0);
    let hung = Instant::now();
    std::thread::sleep(Duration::from_secs(3));
    let second = second.kill9();
    let mut third = Writing::start(folder.path(), &url);
    third.until("a burst", |state| state.answered + state.refused as i64 >= burst);
    third.until("moving", |state| state.in_log < 1_000 && state.spooled > state.answered as u64 / 2);
    cassandra.resume(0);
    let hung = hung.elapsed();
    third.until("history's return", |state| state.delivered > 2_000);
    let third = third.kill9();

    let scope = hot(folder.path());
    scope.del(&DRAINER.key()).await.unwrap();
    let store = CqlStore::connect(&url, schema(), cassandra::options()).await.unwrap();
    let history = History::new(Arc::new(store));
    let last = with_spool(&scope, &history, folder.path()).spool_after(WAIT_MAX);
    let left = last.stats().spooled_entries;
    last.drain_once().await.unwrap().expect("no other consumer has the lease");
    let mut in_history = 0;
    for killer in 0..WRITERS {
        // Rows and totals are the same.
        in_history += kills_of(&history, killer).await;
    }
    let committed = scope.get(&KILLS.key()).await.unwrap().unwrap();
    let all = [first, second, third];
    let answered: i64 = all.iter().map(|state| state.answered).sum();
    let refused: u64 = all.iter().map(|state| state.refused).sum();
    let in_log = all.iter().map(|state| state.in_log_max).max().unwrap_or(0);
    report!(
        "outage of Cassandra: away {away:.0?} and hung {hung:.0?} while 3 processes wrote and were killed: {answered} kills answered, {refused} refused, {committed} committed, {in_history} in history, 0 lost, 0 doubled; {in_log} at most in the log, {left} in the files of the spool at the end; {:.0?} in all",
        begun.elapsed()
    );
    assert_eq!(in_history, committed, "what was committed is in history, each once");
    assert!(committed >= answered, "{committed} committed, {answered} answered");
    assert_eq!(dead_letters(&history, last.log()).await, []);
    history.close().await.unwrap();
}
