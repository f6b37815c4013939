//! Follows the present tick for all watchers of this process.
//!
//! Budget while there are watchers: a read of a small key every [`TICK_POLL_EVERY`], and at most ten times a second a read of
//! the tick as a whole. Without watchers nothing is read.

use super::frame::{Frame, split};
use crate::limit::connections::ConnectionLimiter;
use crate::limits::{SYSTEMS_WATCHED_MAX, TICK_FRAME_EVERY, TICK_POLL_EVERY, TICK_RETRY};
use crate::metrics::Metrics;
use emberkeep_games::galaxy::{GalaxyState, Result, SystemId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

/// The newest frame of a system; a watcher that comes late finds only that one.
pub(super) type Newest = watch::Receiver<Option<Arc<Frame>>>;
type Publisher = watch::Sender<Option<Arc<Frame>>>;

/// The frames of all watched systems. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Feeds(Arc<Inner>);

struct Inner {
    galaxy: GalaxyState,
    metrics: Arc<Metrics>,
    connections: ConnectionLimiter,
    systems: Mutex<BTreeMap<SystemId, Publisher>>,
    /// A system is watched that was not before.
    wake: Notify,
    shutdown: watch::Sender<bool>,
}

/// As many systems are watched as one process follows.
#[derive(Debug)]
pub(super) struct TooManySystems;

impl Feeds {
    pub(crate) fn new(galaxy: GalaxyState, metrics: Arc<Metrics>) -> Feeds {
        Feeds(Arc::new(Inner {
            galaxy,
            metrics,
            connections: ConnectionLimiter::default(),
            systems: Mutex::default(),
            wake: Notify::new(),
            shutdown: watch::Sender::new(false),
        }))
    }

    pub(crate) fn connections(&self) -> &ConnectionLimiter {
        &self.0.connections
    }

    pub(super) fn galaxy(&self) -> &GalaxyState {
        &self.0.galaxy
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The newest frame of a system and those after it.
    pub(super) fn subscribe(&self, system: &SystemId) -> std::result::Result<Newest, TooManySystems> {
        let mut systems = self.0.systems.lock();
        if !systems.contains_key(system) && systems.len() >= SYSTEMS_WATCHED_MAX {
            return Err(TooManySystems);
        }
        let mut newest = systems.entry(system.clone()).or_default().subscribe();
        newest.mark_changed();
        self.0.wake.notify_one();
        Ok(newest)
    }

    /// Ends all connections.
    pub(crate) fn shutdown(&self) {
        self.0.shutdown.send_replace(true);
    }

    /// Waits until [`shutdown`](Self::shutdown) is called; returns at once after it.
    pub(super) async fn wait_shutdown(&self) {
        // The sender is in `self`, so it is never gone.
        let _ = self.0.shutdown.subscribe().wait_for(|is_set| *is_set).await;
    }

    /// Follows the present tick, until it is dropped.
    pub(crate) async fn run(self) {
        let mut due = Instant::now();
        loop {
            if !self.is_watched() {
                self.0.wake.notified().await;
                continue;
            }
            let pause = match self.pass(&mut due).await {
                Ok(()) => TICK_POLL_EVERY,
                Err(error) => {
                    self.0.metrics.galaxy.feed_errors.fetch_add(1, Relaxed);
                    tracing::warn!("the present tick cannot be read for its watchers: {error}");
                    TICK_RETRY
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.0.wake.notified() => {}
            }
        }
    }

    /// Whether there are watchers. Systems without a watcher are forgotten.
    fn is_watched(&self) -> bool {
        let mut systems = self.0.systems.lock();
        systems.retain(|_, publisher| publisher.receiver_count() > 0);
        !systems.is_empty()
    }

    /// Publishes the present tick to the systems that do not have it: to new ones at once, to others when it is due.
    async fn pass(&self, due: &mut Instant) -> Result<()> {
        let head = self.0.galaxy.head().await?;
        let (place, is_due) = ((head.generation, head.tick), Instant::now() >= *due);
        let needs = |publisher: &Publisher| match &*publisher.borrow() {
            None => true,
            Some(frame) => is_due && frame.place != place,
        };
        let behind: Vec<SystemId> = {
            let systems = self.0.systems.lock();
            systems
                .iter()
                .filter(|(_, publisher)| needs(publisher))
                .map(|(system, _)| system.clone())
                .collect()
        };
        if behind.is_empty() {
            return Ok(());
        }
        let view = self.0.galaxy.tick().await?;
        for (system, world) in split(&view.world, &behind) {
            let systems = self.0.systems.lock();
            let Some(publisher) = systems.get(&system).cloned() else { continue };
            drop(systems);
            let before = publisher.borrow().clone();
            let frame = Frame::new(&view, system, world, before.as_deref());
            publisher.send_replace(Some(Arc::new(frame)));
            self.0.metrics.galaxy.frames.fetch_add(1, Relaxed);
        }
        if is_due {
            // Ten a second in the long run, whatever the polls meet.
            *due = (*due + TICK_FRAME_EVERY).max(Instant::now());
        }
        Ok(())
    }
}
