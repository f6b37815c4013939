//! What all actors of one process share: the games, the rosters, the counters, and whether the game goes on.

use crate::city_plan::City;
use crate::plan::Plan;
use crate::roster::Roster;
use crate::stats::{Counters, Totals};
use emberkeep::games::monsters::{self, Monsters};
use emberkeep::games::reactors::{self, Reactors};
use emberkeep::hot::{self, Store};
use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Sets of counters that the actors share.
const COUNTER_SETS: usize = 16;
/// How long an actor keeps trying when the store refuses for now: what it began must not be left undone.
const PATIENCE: Duration = Duration::from_secs(30);
/// Drop timers that one process may register and still distinguish from those of other processes.
const TIMERS_BITS: u32 = 24;

/// One process' part of the game.
pub(super) struct World {
    pub(super) plan: Plan,
    /// Number of this process.
    pub(super) process: u32,
    pub(super) store: Store,
    pub(super) monsters: Monsters,
    pub(super) reactors: Reactors,
    pub(super) city: Option<City>,
    rosters: Vec<Roster>,
    counters: Vec<Counters>,
    violations: Mutex<Vec<String>>,
    over: watch::Sender<bool>,
    start: Instant,
    timers: AtomicU32,
}

impl World {
    pub(super) fn new(store: Store, plan: Plan, process: u32) -> World {
        World {
            rosters: (0..plan.grounds()).map(|ground| Roster::new(plan.monsters_of(ground))).collect(),
            process,
            monsters: Monsters::new(store.clone()),
            reactors: Reactors::new(store.clone()),
            city: plan.city.clone().map(|city| City::new(store.clone(), city)),
            counters: (0..COUNTER_SETS).map(|_| Counters::new()).collect(),
            violations: Mutex::default(),
            over: watch::Sender::new(false),
            start: Instant::now(),
            timers: AtomicU32::new(0),
            plan,
            store,
        }
    }

    pub(super) fn roster(&self, ground: usize) -> &Roster {
        &self.rosters[ground]
    }

    /// The counters of an actor.
    pub(super) fn counters(&self, actor: usize) -> &Counters {
        &self.counters[actor % COUNTER_SETS]
    }

    pub(super) fn totals(&self) -> Totals {
        Totals::of(&self.counters, &self.store.stats().unwrap_or_default())
    }

    /// Milliseconds since the game began, by this process' own clock: for pauses, never for what is checked.
    pub(super) fn ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// A number that no other drop timer of the game was registered with.
    pub(super) fn timer_number(&self) -> u32 {
        (self.process << TIMERS_BITS) + self.timers.fetch_add(1, Relaxed) % (1 << TIMERS_BITS)
    }

    /// Tells all actors to finish what they are doing.
    pub(super) fn end(&self) {
        self.over.send_replace(true);
    }

    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits; `false` if the game is over before that.
    pub(super) async fn rest(&self, pause: Duration) -> bool {
        let mut over = self.over.subscribe();
        tokio::select! {
            _ = over.wait_for(|over| *over) => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    /// Waits until the game is over.
    pub(super) async fn until_over(&self) {
        // An error would mean that the sender is gone, and it is ours.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// Notes a violation, and ends the game.
    pub(super) fn report_violation(&self, what: String) {
        self.violations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(what);
        self.end();
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// Errors of which some say that calling again may help.
pub(super) trait Retryable: std::error::Error + Send + Sync + 'static {
    /// Whether the store refused for now, and nothing was written.
    fn is_transient(&self) -> bool;
}

impl Retryable for hot::Error {
    fn is_transient(&self) -> bool {
        hot::Error::is_transient(self)
    }
}

impl Retryable for monsters::Error {
    fn is_transient(&self) -> bool {
        matches!(self, monsters::Error::Store(error) if error.is_transient())
    }
}

impl Retryable for reactors::Error {
    fn is_transient(&self) -> bool {
        matches!(self, reactors::Error::Store(error) if error.is_transient())
    }
}

/// Calls again while the store refuses for now.
pub(super) async fn retry_transient<T, E, F>(mut call: impl FnMut() -> F) -> Result<T, E>
where
    E: Retryable,
    F: Future<Output = Result<T, E>>,
{
    let start = Instant::now();
    loop {
        match call().await {
            Err(error) if error.is_transient() && start.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            outcome => return outcome,
        }
    }
}
