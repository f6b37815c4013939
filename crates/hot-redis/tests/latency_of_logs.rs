//! Logs from far away: a process that reads the end of a log before it writes, or pages through a full one, gets
//! its turn beside near processes that only append.

mod fault_harness;

use emberkeep_hot::{Error, Scope};
use emberkeep_schema::{Log, Newest, Utf8, family};
use emberkeep_testkit::{FaultProxy, report};
use fault_harness::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

family! {
    /// The newest events; the others are dropped.
    pub FULL_LOG = "log:full:{arena}" {
        kind: Log<Utf8, Newest<500>>, partition: Arena, parts: (), ttl: persistent, owner: "test"
    }
}

/// Callers of the near process.
const APPENDERS: u32 = 4;

/// Appends to both logs until it is stopped.
struct Appenders {
    stop: Arc<AtomicBool>,
    appended: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
}

impl Appenders {
    fn start(near: &Scope<Arena>) -> Appenders {
        let (stop, appended) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let append = |_| {
            let (near, stop, appended) = (near.clone(), stop.clone(), appended.clone());
            tokio::spawn(async move {
                let started = Instant::now();
                while !stop.load(Relaxed) && started.elapsed() < LONG {
                    let both = near.transact(|tx| {
                        tx.append(&HIT_LOG.key(), &"near".to_owned())?;
                        tx.append(&FULL_LOG.key(), &"near".to_owned())
                    });
                    both.await.expect("it waits for no number");
                    appended.fetch_add(1, Relaxed);
                    // So few that none is dropped before the far process has read it.
                    tokio::time::sleep(Duration::from_millis(4)).await;
                }
            })
        };
        let tasks = (0..APPENDERS).map(append).collect();
        Appenders { stop, appended, tasks }
    }

    async fn end(self) -> u64 {
        self.stop.store(true, Relaxed);
        for task in self.tasks {
            task.await.expect("no appender panics");
        }
        self.appended.load(Relaxed)
    }
}

/// A far process that needs the numbers of its entries, beside near ones that only append.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_far_numbered_writer_beside_near_appenders() {
    const ENTRIES: usize = 5;
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let near = store_on(&server.url()).await.scope(arena("numbers")).deadline(LONG);
    let far = store_on(&proxy.url()).await.scope(arena("numbers")).deadline(Duration::from_secs(4));
    far.put(&COUNT.key(), 0).await.expect("the way is short");
    proxy.delay(Duration::from_millis(30), Duration::from_millis(30));
    let appenders = Appenders::start(&near);
    // Transactions of its own process are in the way as well.
    let beside = Appenders::start(&far);
    let (started, mut last) = (Instant::now(), 0);
    for n in 0..ENTRIES {
        let numbered = far.transact(|tx| tx.append_numbered(&HIT_LOG.key(), &"far".to_owned())).await;
        let number =
            numbered.unwrap_or_else(|error| panic!("entry {n} after {:?}: {error}", started.elapsed()));
        assert!(number > last, "{number} after {last}");
        last = number;
    }
    let took = started.elapsed();
    let appended = appenders.end().await + beside.end().await;
    report!("{ENTRIES} numbered entries from far away in {took:?} beside {appended} others");
    assert!(appended > ENTRIES as u64, "the others go on, too");
    let entries = near.log_last(&HIT_LOG.key()).await.expect("a log").sequence;
    assert_eq!(entries, appended + ENTRIES as u64, "each entry is there once");
}

/// A far process pages through a full log whose entries all move while it reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_far_reader_of_a_full_log_beside_near_appenders() {
    const PAGES: usize = 6;
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let near = store_on(&server.url()).await.scope(arena("pages")).deadline(LONG);
    let far = store_on(&proxy.url()).await.scope(arena("pages")).deadline(Duration::from_secs(3));
    let fill = near.transact(|tx| {
        (0..600).try_for_each(|_| tx.append(&FULL_LOG.key(), &"old".to_owned()))?;
        Ok::<_, Error>(())
    });
    fill.await.expect("a plain transaction");
    let mut position = far.log_last(&FULL_LOG.key()).await.expect("a log");
    proxy.delay(Duration::from_millis(30), Duration::from_millis(30));
    let appenders = Appenders::start(&near);
    let (started, mut entries) = (Instant::now(), 0);
    for n in 0..PAGES {
        let page = far.log_after(&FULL_LOG.key(), position, 256).await;
        let page = page.unwrap_or_else(|error| panic!("page {n} after {:?}: {error}", started.elapsed()));
        assert_eq!((page.missed, page.is_reset), (0, false), "page {n}");
        for entry in page.entries {
            assert_eq!(entry.sequence, position.sequence + 1, "page {n}");
            position = entry.position();
            entries += 1;
        }
    }
    let took = started.elapsed();
    let appended = appenders.end().await;
    report!("{PAGES} pages from far away with {entries} entries in {took:?} beside {appended} near ones");
    assert!(entries > 0 && appended > 0);
}
