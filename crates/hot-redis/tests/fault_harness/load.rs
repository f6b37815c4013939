//! Load on a place, and the account of it afterwards.

use super::{Arena, Audit, Deployment, Ledger, Until, assault, audit, flag, store_on};
use emberkeep_hot::{Scope, Store};
use emberkeep_testkit::report;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A deadline that no fault of these tests outlasts.
pub const LONG: Duration = Duration::from_secs(20);
/// What a caller may wait beyond its deadline on a busy machine.
pub const SLACK: Duration = Duration::from_millis(1_500);
/// Tasks, over all arenas.
const TASKS: usize = 9;

/// A deployment under load.
pub struct Load {
    pub deployment: Deployment,
    pub store: Store,
    scopes: Vec<Scope<Arena>>,
    stop: Arc<AtomicBool>,
    running: Vec<tokio::task::JoinHandle<Ledger>>,
}

impl Load {
    /// Begins to hit an arena on every server of the place; every hit has this deadline.
    pub async fn begin(deployment: Deployment, deadline: Duration) -> Load {
        let arenas = deployment.arenas();
        Load::on(deployment, "", arenas, deadline).await
    }

    /// The same on these arenas, with these options of the URL.
    pub async fn on(deployment: Deployment, options: &str, arenas: Vec<Arena>, deadline: Duration) -> Load {
        let store = store_on(&format!("{}{options}", deployment.url())).await;
        let scopes: Vec<_> = arenas.into_iter().map(|arena| store.scope(arena).deadline(deadline)).collect();
        let stop = flag();
        let tasks = (TASKS / scopes.len()).max(1);
        let start = |scope: &Scope<Arena>| {
            let (scope, until) = (scope.clone(), Until::Flag(stop.clone()));
            tokio::spawn(async move { assault(scope, "t", tasks, until).await })
        };
        let running = scopes.iter().map(start).collect();
        let load = Load { deployment, store, scopes, stop, running };
        load.some_time(150).await;
        load
    }

    pub async fn some_time(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Waits until so many more hits were committed: service is back.
    pub async fn until_more(&self, hits: u64) -> Duration {
        let (since, before) = (Instant::now(), self.store.stats().unwrap().committed);
        while self.store.stats().unwrap().committed < before + hits {
            assert!(since.elapsed() < LONG, "service does not resume");
            self.some_time(5).await;
        }
        since.elapsed()
    }

    /// Waits until a Cluster says that all is well; the load goes on meanwhile.
    pub fn wait_ready(&self) {
        tokio::task::block_in_place(|| self.deployment.wait_ready());
    }

    /// Ends the load, audits every arena, prints one line for all. Ledgers are in the order of the arenas.
    pub async fn end(self, title: &str) -> LoadReport {
        self.wait_ready();
        self.some_time(200).await;
        self.stop.store(true, Ordering::Release);
        let mut ledgers = Vec::new();
        let mut found = Audit { consistent: true, ..Audit::default() };
        for (task, scope) in self.running.into_iter().zip(&self.scopes) {
            let ledger = task.await.expect("the tasks end");
            let mut client = self.deployment.client_of(self.store.key_layout(), scope.partition());
            found.merge(&audit(&mut client, self.store.key_layout(), scope.partition(), &ledger));
            ledgers.push(ledger);
        }
        let receipts = self.store.stats().unwrap().receipts_asked;
        let outcome = LoadReport { deployment: self.deployment, ledgers, audit: found };
        outcome.print(title, receipts);
        outcome
    }
}

/// What came of a load.
pub struct LoadReport {
    pub deployment: Deployment,
    pub ledgers: Vec<Ledger>,
    pub audit: Audit,
}

impl LoadReport {
    fn sum(&self, of: impl Fn(&Ledger) -> usize) -> usize {
        self.ledgers.iter().map(of).sum()
    }

    pub fn done(&self) -> usize {
        self.sum(Ledger::done)
    }

    pub fn refused(&self) -> usize {
        self.sum(Ledger::refused)
    }

    pub fn unknown(&self) -> usize {
        self.sum(Ledger::unknown)
    }

    pub fn slowest(&self) -> Duration {
        self.ledgers.iter().map(Ledger::slowest).max().unwrap_or_default()
    }

    /// Nothing was refused and nothing is unknown: the deadline was long enough for every hit.
    #[track_caller]
    pub fn assert_all_done(&self) {
        let errors: Vec<_> = self.ledgers.iter().map(Ledger::errors).collect();
        assert_eq!((self.refused(), self.unknown()), (0, 0), "{errors:?}");
        for ledger in &self.ledgers {
            assert!(ledger.done() > 20, "too little happened in an arena: {}", ledger.done());
        }
    }

    fn print(&self, title: &str, receipts: u64) {
        report!(
            "{}, {title}: {} hits, {} done, {} refused, {} unknown, receipts asked {receipts}, slowest {:?}; {}",
            self.deployment.name(),
            self.sum(|ledger| ledger.entries.len()),
            self.done(),
            self.refused(),
            self.unknown(),
            self.slowest(),
            self.audit,
        );
        let mut errors: BTreeMap<String, usize> = BTreeMap::new();
        for (error, times) in self.ledgers.iter().flat_map(Ledger::errors) {
            *errors.entry(error).or_default() += times;
        }
        errors.iter().for_each(|(error, times)| report!("  {times} x {error}"));
    }
}
