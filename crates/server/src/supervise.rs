//! Restarts background tasks that end or panic, and counts the restarts.

use crate::limits::TASK_RESTART_PAUSE;
use crate::metrics::Metrics;
use futures_util::FutureExt as _;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Runs the future of `start` again and again until the handle is aborted. State that the futures share must
/// be valid after a panic.
pub(crate) fn supervise<F>(
    name: &'static str,
    metrics: Arc<Metrics>,
    start: impl FnMut() -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    supervise_with_pause(TASK_RESTART_PAUSE, name, metrics, start)
}

fn supervise_with_pause<F>(
    pause: Duration,
    name: &'static str,
    metrics: Arc<Metrics>,
    mut start: impl FnMut() -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        loop {
            let how = match AssertUnwindSafe(start()).catch_unwind().await {
                Ok(()) => "ended",
                Err(_) => "panicked",
            };
            metrics.count_restart(name);
            tracing::error!(task = name, "a background task {how}; it is restarted");
            tokio::time::sleep(pause).await;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_hot::engine::Stats;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[tokio::test]
    async fn a_task_that_panics_or_ends_is_restarted_and_counted() {
        let (metrics, started) = (Arc::new(Metrics::default()), Arc::new(AtomicU32::new(0)));
        let (counter, running) = (started.clone(), Arc::new(tokio::sync::Notify::new()));
        let third = running.clone();
        let task = supervise_with_pause(Duration::ZERO, "test", metrics.clone(), move || {
            let (number, third) = (counter.fetch_add(1, Relaxed), third.clone());
            async move {
                match number {
                    0 => panic!("the first one panics"),
                    1 => {}
                    _ => {
                        third.notify_one();
                        std::future::pending().await
                    }
                }
            }
        });
        running.notified().await;
        task.abort();
        assert_eq!(started.load(Relaxed), 3);
        let page = metrics.page(&Stats::default(), &[], None);
        assert!(page.contains("emberkeep_task_restarts_total{task=\"test\"} 2\n"), "{page}");
    }
}
