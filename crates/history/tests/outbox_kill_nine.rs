//! A game and its consumer that are killed: a process kills monsters, answers each kill and drains its outbox, and is
//! killed without warning at random points. In the end history has exactly the kills that were committed, and all
//! that were answered.

mod arena;
mod folders;

use arena::*;
use emberkeep_history::History;
use emberkeep_history::outbox::Consumer;
use emberkeep_hot::embedded::Embedded;
use emberkeep_hot::{Scope, Store};
use emberkeep_testkit::report;
use folders::Folder;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FOLDER: &str = "EMBERKEEP_OUTBOX_CHILD_FOLDER";
const REDIS: &str = "EMBERKEEP_OUTBOX_CHILD_REDIS";
/// History is away most of the time, and the consumer has a spool.
const SPOOL: &str = "EMBERKEEP_OUTBOX_CHILD_SPOOL";
/// For each engine.
const KILLS_MAX: usize = 200;
const WRITERS: i64 = 3;
/// The child is killed long before.
const CHILD_TIME_MAX: Duration = Duration::from_secs(30);
/// What a test may take, on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(400);

async fn hot_store(folder: &Path, redis: Option<&str>) -> Store {
    match redis {
        Some(url) => on_redis(url).await,
        None => Store::new(Arc::new(Embedded::builder().data(folder.join("hot")).open().unwrap())),
    }
}

fn with_spool(scope: &Scope<Arena>, history: &History, folder: &Path) -> Consumer {
    let consumer = consumer(scope, history).through_spool(folder.join("spool"), 64 << 20).unwrap();
    consumer.spool_after(Duration::from_millis(1))
}

/// The process that is killed: kills and answers, and drains all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (folder, redis) = (Path::new(&folder), std::env::var(REDIS).ok());
    let store = hot_store(folder, redis.as_deref()).await;
    let (scope, history) = (store.scope(Arena(1)), history_in(&folder.join("history")));
    // The process before had it and is dead.
    scope.del(&DRAINER.key()).await.unwrap();
    let consumer = match std::env::var(SPOOL) {
        Ok(_) => {
            let store = history.store().clone();
            // In three of four calls it is away.
            let faults = Faults::new(store, |_| (fastrand::u8(..4) > 0).then_some(Fault::Before));
            with_spool(&scope, &History::new(faults), folder)
        }
        Err(_) => consumer(&scope, &history),
    };
    let consumer = Arc::new(consumer);
    tokio::spawn(async move { consumer.run(std::future::pending()).await });
    let writer = |killer: i64| {
        let scope = scope.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            while begun.elapsed() < CHILD_TIME_MAX {
                match kill(&scope, killer).await {
                    Ok(_) => writeln!(std::io::stdout(), "answered {killer}").unwrap(),
                    Err(emberkeep_hot::Error::LogFull { .. }) => {
                        tokio::time::sleep(Duration::from_millis(1)).await
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        })
    };
    for task in (0..WRITERS).map(writer).collect::<Vec<_>>() {
        let _ = task.await;
    }
}

/// Starts a child, kills it after some answers and a part of a moment. Returns how many kills it answered.
fn kill_one(folder: &Path, redis: Option<&str>, spool: bool) -> i64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(FOLDER, folder);
    if let Some(url) = redis {
        command.env(REDIS, url);
    }
    if spool {
        command.env(SPOOL, "1");
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut answers = lines.filter(|line| line.contains("answered"));
    // One in ten dies while it starts.
    let wanted = if fastrand::u8(..).is_multiple_of(10) { 0 } else { fastrand::usize(1..120) };
    let before = answers.by_ref().take(wanted).count();
    std::thread::sleep(Duration::from_micros(fastrand::u64(..8_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    // Those that were in the pipe when it was killed.
    (before + answers.count()) as i64
}

async fn kill_many(redis: Option<&str>, spool: bool) {
    let folder = Folder::new();
    let (begun, mut answered, mut with_answers) = (Instant::now(), 0, 0);
    for _ in 0..KILLS_MAX {
        let answers = kill_one(folder.path(), redis, spool);
        answered += answers;
        with_answers += usize::from(answers > 0);
        assert!(begun.elapsed() < TIME_MAX, "{KILLS_MAX} kills take too long");
    }
    let store = hot_store(folder.path(), redis).await;
    let scope = store.scope(Arena(1));
    let history = history_in(&folder.path().join("history"));
    scope.del(&DRAINER.key()).await.unwrap();
    let mut in_spool = 0;
    let last = if spool {
        let last = with_spool(&scope, &history, folder.path()).spool_after(Duration::from_secs(60));
        in_spool = last.stats().spooled_entries;
        last
    } else {
        consumer(&scope, &history)
    };
    let late = last.drain_once().await.unwrap().expect("no other consumer has the lease").delivered;
    let mut in_history = 0;
    for killer in 0..WRITERS {
        in_history += kills_of(&history, killer).await;
    }
    let committed = scope.get(&KILLS.key()).await.unwrap().unwrap();
    report!(
        "outbox: {KILLS_MAX} kills -9, {answered} kills answered, {committed} committed, {in_history} in history, {late} drained at the end, {in_spool} of them in the spool, {:?}",
        begun.elapsed()
    );
    assert_eq!(in_history, committed, "what was committed is in history, each once");
    let unanswered = committed - answered;
    assert!(
        (0..=WRITERS * KILLS_MAX as i64).contains(&unanswered),
        "{unanswered} were committed and not answered"
    );
    assert!(with_answers > KILLS_MAX / 2, "most children must have answered something");
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_in_history_are_those_of_the_callers_in_process() {
    kill_many(None, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_in_history_are_those_of_the_callers_on_redis() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    kill_many(Some(&server.url()), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_in_history_are_those_of_the_callers_through_a_spool() {
    kill_many(None, true).await;
}
