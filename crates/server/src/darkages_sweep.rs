//! Closes expired sessions of DarkAges into history, in the background. Where its shards are partitions of their own, it also
//! brings players to the shard that they are on the way to, sends back those that no zone server accepts, and looks for those that a
//! failover lost.
//!
//! Budget: a pass of at most [`DARKAGES_SWEEP_SESSIONS_MAX`] sessions, as many arrivals of each shard, and as many pages of the
//! directory as fit in [`DARKAGES_DIRECTORY_BUDGET`], at least one; then a pause, shorter while more are due. Several servers on
//! one store share the work: each session is closed by one of them. Stops with the server.

use crate::limits::{
    DARKAGES_DIRECTORY_BUDGET, DARKAGES_DIRECTORY_EVERY, DARKAGES_LOGGED_EVERY, DARKAGES_SWEEP_EVERY,
    DARKAGES_SWEEP_PAUSE, DARKAGES_SWEEP_SESSIONS_MAX,
};
use crate::metrics::{DarkAgesCounters, Metrics};
use crate::seldom::Seldom;
use emberkeep_games::darkages::{DarkAges, Error};
use emberkeep_hot::engine::Cursor;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Sweeps until it is dropped.
pub(crate) async fn run(darkages: DarkAges, metrics: Arc<Metrics>) {
    let mut sweep = Sweep::new(darkages, metrics);
    loop {
        let is_full = sweep.close_expired().await;
        sweep.sweep_hand_offs().await;
        sweep.check_directory(DARKAGES_DIRECTORY_BUDGET).await;
        tokio::time::sleep(if is_full { DARKAGES_SWEEP_PAUSE } else { DARKAGES_SWEEP_EVERY }).await;
    }
}

/// How far a walk through the directory is.
enum Walk {
    /// It ended; when it had begun.
    Ended { begun: Instant },
    /// The next page.
    At { page: Option<Cursor>, begun: Instant },
}

struct Sweep {
    darkages: DarkAges,
    metrics: Arc<Metrics>,
    walk: Walk,
    sessions_log: Seldom,
    hand_offs_log: Seldom,
    directory_log: Seldom,
}

impl Sweep {
    fn new(darkages: DarkAges, metrics: Arc<Metrics>) -> Sweep {
        let log = || Seldom::new(DARKAGES_LOGGED_EVERY);
        let walk = Walk::At { page: None, begun: Instant::now() };
        Sweep { darkages, metrics, walk, sessions_log: log(), hand_offs_log: log(), directory_log: log() }
    }

    fn counters(&self) -> &DarkAgesCounters {
        &self.metrics.darkages
    }

    /// Counts and logs what of a pass failed. Without a number it is a whole pass, or a shard of it.
    fn note(&self, log: &Seldom, what: &str, failed: usize, failure: Option<Error>) {
        self.counters().sweep_failed.fetch_add(failed as u64, Relaxed);
        let Some(error) = failure else { return };
        if failed == 0 {
            self.counters().sweep_errors.fetch_add(1, Relaxed);
        }
        log.log(|| tracing::warn!(failed, %error, "{what} of DarkAges failed, a later pass tries again"));
    }

    /// Whether there may be more.
    async fn close_expired(&self) -> bool {
        let (log, what) = (&self.sessions_log, "closing expired sessions");
        match self.darkages.close_expired(DARKAGES_SWEEP_SESSIONS_MAX).await {
            Ok(done) => {
                self.counters().sessions_closed.fetch_add(done.closed as u64, Relaxed);
                if done.unreadable > 0 {
                    log.log(|| {
                        let count = done.unreadable;
                        tracing::warn!("{count} play records cannot be read and were left as they are");
                    });
                }
                self.note(log, what, done.failed, done.failure);
                done.closed + done.alive + done.unreadable >= DARKAGES_SWEEP_SESSIONS_MAX
            }
            Err(error) => {
                self.note(log, what, 0, Some(error));
                false
            }
        }
    }

    async fn sweep_hand_offs(&self) {
        let (log, what) = (&self.hand_offs_log, "completing hand-offs");
        match self.darkages.sweep_hand_offs(DARKAGES_SWEEP_SESSIONS_MAX).await {
            Ok(done) => {
                self.counters().hand_offs_returned.fetch_add(done.returned as u64, Relaxed);
                if done.unreadable > 0 {
                    log.log(|| {
                        let count = done.unreadable;
                        tracing::warn!("{count} arrivals cannot be read and were left as they are");
                    });
                }
                self.note(log, what, done.failed, done.failure);
            }
            Err(error) => self.note(log, what, 0, Some(error)),
        }
    }

    /// Goes on through the directory for a time, to its end at most. A new walk begins some time after the last one began.
    async fn check_directory(&mut self, budget: Duration) {
        let now = Instant::now();
        let (mut page, begun) = match &mut self.walk {
            Walk::At { page, begun } => (page.take(), *begun),
            Walk::Ended { begun } if now.duration_since(*begun) < DARKAGES_DIRECTORY_EVERY => return,
            Walk::Ended { .. } => (None, now),
        };
        let (log, what) = (&self.directory_log, "checking the directory");
        self.walk = loop {
            match self.darkages.check_directory(page).await {
                Ok(done) => {
                    self.counters().players_restored.fetch_add(done.restored as u64, Relaxed);
                    self.counters().players_lost.fetch_add(done.ended as u64, Relaxed);
                    self.note(log, what, done.failed, done.failure);
                    match done.next {
                        None => break Walk::Ended { begun },
                        next if now.elapsed() >= budget => break Walk::At { page: next, begun },
                        next => page = next,
                    }
                }
                Err(error) => {
                    self.note(log, what, 0, Some(error));
                    // The cursor may be one of before a restart.
                    break Walk::At { page: None, begun };
                }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_games::darkages::{
        ADMITTED, EntityId, LoginRequest, PLAY, Point, Position, SESSION, Shard, Shards, ZONE_PLAYERS, ZoneId,
    };
    use emberkeep_hot::command::{Expiry, Write};
    use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
    use emberkeep_hot::{self as hot, Store, Tx};
    use emberkeep_schema::KeyLayout;

    const START: i64 = 1_700_000_000_000;

    fn sweep_of(layout: KeyLayout) -> (Sweep, ManualClock) {
        let clock = ManualClock::at(START);
        let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).layout(layout).open();
        let store = Store::new(Arc::new(engine.expect("an engine in memory")));
        let shards: Shards = "1:1-9,2:10-19".parse().expect("ranges");
        let darkages = DarkAges::new(store, "zone-1").expect("a name").with_shards(shards);
        (Sweep::new(darkages, Arc::default()), clock)
    }

    async fn log_in(game: &DarkAges, player: i64) {
        let request = LoginRequest::new(player, "client", ZoneId(1), Point::new(0.0, 0.0, 0.0));
        game.login(request).await.expect("a login");
    }

    /// Lost players behind thousands of other keys are found in one pass.
    #[tokio::test]
    async fn a_pass_examines_the_directory_to_its_end_while_it_has_time() {
        let (mut sweep, clock) = sweep_of(KeyLayout::cluster());
        let game = sweep.darkages.clone();
        let at = |entity| (EntityId(entity), Position { x: 0.0, y: 0.0, z: 0.0, at: START });
        game.in_zone(ZoneId(1)).set_positions((100..4_100).map(at).collect()).await.expect("positions");
        let scope = game.scope_of(ZoneId(1));
        for entity in (0..20).map(EntityId) {
            log_in(&game, entity.0).await;
            scope.del(&SESSION.key(entity)).await.expect("deleted");
            scope.del(&PLAY.key(entity)).await.expect("deleted");
            scope.del(&ADMITTED.key(entity)).await.expect("deleted");
        }
        clock.advance(70_000);
        sweep.check_directory(Duration::ZERO).await;
        assert!(matches!(sweep.walk, Walk::At { page: Some(_), .. }), "without time a pass is a page");
        sweep.check_directory(Duration::from_secs(600)).await;
        assert_eq!(sweep.counters().players_lost.load(Relaxed), 20);
        assert!(matches!(sweep.walk, Walk::Ended { .. }));
        log_in(&game, 1).await;
        sweep.check_directory(Duration::from_secs(600)).await;
        assert!(matches!(sweep.walk, Walk::Ended { .. }), "the next walk waits");
    }

    #[tokio::test]
    async fn what_failed_in_a_pass_is_counted() {
        let (sweep, clock) = sweep_of(KeyLayout::single());
        log_in(&sweep.darkages, 1).await;
        clock.advance(3_600_001);
        let overwrite = |tx: &mut Tx<'_, Shard>| {
            let key = tx.raw_name(&ZONE_PLAYERS.key(ZoneId(1)));
            tx.raw_write(key, Write::Set("x".into(), Expiry::Never))
        };
        sweep.darkages.scope().transact::<(), hot::Error, _>(overwrite).await.expect("another program");
        assert!(!sweep.close_expired().await);
        let (failed, closed) = (&sweep.counters().sweep_failed, &sweep.counters().sessions_closed);
        assert_eq!((failed.load(Relaxed), closed.load(Relaxed)), (1, 0));
    }
}
