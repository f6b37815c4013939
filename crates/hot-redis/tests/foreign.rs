//! Foreign services that write the same keys by plain commands: what a step saw is true, what a plain read answers
//! is the server's, and sums are exact.

mod arena;

use arena::*;
use emberkeep_hot::Store;
use emberkeep_testkit::{RedisServer, Resp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guess_never_answers_a_plain_read() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("guess"));
    let mut foreign = server.client();
    let (mut reads, mut steps) = (0, 0);
    for n in 0..300_i64 {
        // The engine has just seen the key, and wrote it itself.
        scope
            .transact(move |tx| {
                let _ = tx.get(&SUM.key())?;
                tx.put(&SUM.key(), &n)
            })
            .await
            .expect("a step");
        let theirs = 1_000_000 + n;
        foreign.call(&["SET", "sum:guess", &theirs.to_string()]);
        match n % 3 {
            0 => assert_eq!(scope.get(&SUM.key()).await, Ok(Some(theirs))),
            1 => assert_eq!(scope.get_many(&[SUM.key()]).await, Ok(vec![Some(theirs)])),
            _ => assert_eq!(scope.transact(|tx| tx.get(&SUM.key())).await, Ok(Some(theirs))),
        }
        reads += i64::from(n % 3 != 2);
        steps += i64::from(n % 3 == 2);
    }
    // An error of a body that saw a guess is not believed either.
    foreign.call(&["SET", "sum:guess", "5"]);
    scope.transact(|tx| tx.get(&SUM.key())).await.expect("seen");
    foreign.call(&["SET", "sum:guess", "6"]);
    let judged: Result<i64, emberkeep_hot::Error> = scope
        .transact(|tx| match tx.get(&SUM.key())? {
            Some(6) => Ok(6),
            other => panic!("a stale guess: {other:?}"),
        })
        .await;
    assert_eq!(judged, Ok(6), "the panic came from a guess that was no longer true");
    println!(
        "guesses: {reads} plain reads and {steps} reading steps after foreign writes, 0 answered by a guess"
    );
}

/// A thread that adds 1 to one key after the other by plain commands, without pause.
struct Foreigner {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Foreigner {
    fn start(mut client: Resp, keys: Vec<String>, pause: Duration) -> Foreigner {
        let stop = flag();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut made = 0;
            while !stopped.load(Ordering::Acquire) {
                client.call(&["INCRBY", &keys[made as usize % keys.len()], "1"]);
                made += 1;
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            made
        });
        Foreigner { stop, thread: Some(thread) }
    }

    fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Release);
        self.thread.take().expect("it runs").join().expect("it ends")
    }
}

/// Hits some arenas beside a foreigner for two seconds, and compares all sums.
async fn beside(title: &str, server: &RedisServer, arenas: usize, pause: Duration) -> Ledger {
    server.client().call(&["FLUSHALL"]);
    let store: Store = store_on(&server.url()).await;
    let keys: Vec<String> = (0..arenas).map(|n| format!("sum:a{n}")).collect();
    let foreigner = Foreigner::start(server.client(), keys.clone(), pause);
    let stop = flag();
    let mut running = Vec::new();
    for n in 0..arenas {
        let tasks = (8 / arenas).max(1);
        let scope = store.scope(arena(format!("a{n}")));
        let (name, until) = (format!("n{n}"), Until::Flag(stop.clone()));
        running.push(tokio::spawn(async move { assault(scope, &name, tasks, until).await }));
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    stop.store(true, Ordering::Release);
    let mut ledger = Ledger::default();
    for task in running {
        ledger.merge(task.await.expect("the tasks end"));
    }
    let theirs = foreigner.stop();
    let ours: i64 = ledger.entries.values().filter(|e| e.told == Told::Done).map(|e| e.damage).sum();
    let mut client = server.client();
    let total: i64 =
        keys.iter().map(|key| client.call(&["GET", key]).text().parse::<i64>().expect("a number")).sum();
    println!(
        "{title}: {theirs} foreign writes, {} hits made, {} conflicts at the deadline, {} stale runs, slowest {:?}; sum {total} = {theirs} + {ours}",
        ledger.done(),
        ledger.conflicts(),
        store.stats().conflicts,
        ledger.slowest(),
    );
    assert_eq!(total, theirs as i64 + ours, "sums differ");
    assert_eq!(ledger.unknown(), 0);
    assert_eq!(ledger.refused(), ledger.conflicts(), "{:?}", ledger.errors());
    assert!(ledger.slowest() < Duration::from_millis(2_000 + 1_500), "{:?}", ledger.slowest());
    ledger
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_writer_beside_our_steps() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let many = beside("foreign writer at full speed on 16 keys", &server, 16, Duration::ZERO).await;
    assert_eq!(many.conflicts(), 0, "there is time enough between two foreign writes of a key");
    let slow = beside("foreign writer every 5 ms on one key", &server, 1, Duration::from_millis(5)).await;
    assert_eq!(slow.conflicts(), 0, "there is time enough between two foreign writes of the key");
    // Nobody can win this for sure: no turn binds a foreigner. What is told must be true all the same.
    beside("foreign writer at full speed on one key", &server, 1, Duration::ZERO).await;
}

/// The counter that nobody reads does not conflict with anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_that_only_add_do_not_conflict() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("adds"));
    let foreigner = Foreigner::start(server.client(), vec!["count:adds".into()], Duration::ZERO);
    let made = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (scope, made) = (scope.clone(), made.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..100 {
                scope.transact(|tx| tx.incr_by(&COUNT.key(), 1)).await.expect("an addition");
                made.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for task in tasks {
        task.await.expect("a task ends");
    }
    let theirs = foreigner.stop();
    let total: u64 = server.client().call(&["GET", "count:adds"]).text().parse().expect("a number");
    assert_eq!(total, theirs + 800);
    assert_eq!(store.stats().conflicts, 0);
    println!("additions: 800 beside {theirs} foreign ones, 0 stale runs, sum {total}");
}
