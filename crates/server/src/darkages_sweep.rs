//! Closes expired sessions of DarkAges into history, in the background. Where its shards are partitions of their own, it also
//! brings players to the shard that they are on the way to, sends back those that no zone server accepts, and looks for those that a
//! failover lost.
//!
//! Budget: a pass of at most [`DARKAGES_SWEEP_SESSIONS_MAX`] sessions, as many arrivals of each shard, and a page of the
//! directory, then a pause, shorter while more are due. Several servers on one store share the work: each session is closed by one of them. Stops with the
//! server.

use crate::limits::{DARKAGES_SWEEP_EVERY, DARKAGES_SWEEP_PAUSE, DARKAGES_SWEEP_SESSIONS_MAX};
use crate::metrics::Metrics;
use emberkeep_games::darkages::DarkAges;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Sweeps until it is dropped.
pub(crate) async fn run(darkages: DarkAges, metrics: Arc<Metrics>) {
    let counters = &metrics.darkages;
    let mut next_page = None;
    loop {
        let pause = match darkages.close_expired(DARKAGES_SWEEP_SESSIONS_MAX).await {
            Ok(done) => {
                counters.sessions_closed.fetch_add(done.closed as u64, Relaxed);
                if done.unreadable > 0 {
                    tracing::warn!(
                        "{} play records cannot be read and were left as they are",
                        done.unreadable
                    );
                }
                let is_full = done.closed + done.alive + done.unreadable >= DARKAGES_SWEEP_SESSIONS_MAX;
                if is_full { DARKAGES_SWEEP_PAUSE } else { DARKAGES_SWEEP_EVERY }
            }
            Err(error) => {
                counters.sweep_errors.fetch_add(1, Relaxed);
                tracing::warn!(
                    "expired sessions of DarkAges cannot be closed, the next pass tries again: {error}"
                );
                DARKAGES_SWEEP_EVERY
            }
        };
        match darkages.sweep_hand_offs(DARKAGES_SWEEP_SESSIONS_MAX).await {
            Ok(done) => {
                counters.hand_offs_returned.fetch_add(done.returned as u64, Relaxed);
                if done.unreadable > 0 {
                    tracing::warn!("{} arrivals cannot be read and were left as they are", done.unreadable);
                }
            }
            Err(error) => {
                counters.sweep_errors.fetch_add(1, Relaxed);
                tracing::warn!(
                    "hand-offs of DarkAges cannot be completed, the next pass tries again: {error}"
                );
            }
        }
        match darkages.check_directory(next_page.take()).await {
            Ok(done) => {
                counters.players_restored.fetch_add(done.restored as u64, Relaxed);
                counters.players_lost.fetch_add(done.ended as u64, Relaxed);
                next_page = done.next;
            }
            Err(error) => {
                counters.sweep_errors.fetch_add(1, Relaxed);
                tracing::warn!(
                    "the directory of DarkAges cannot be checked, the next pass begins anew: {error}"
                );
            }
        }
        tokio::time::sleep(pause).await;
    }
}
