//! Whether the server works, and what it counted.

use crate::app::App;
use crate::limits::JOURNAL_STOPPED_MAX;
use crate::problem::{Body, Problem};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use emberkeep_hot::{self as hot, Store};
use parking_lot::Mutex;
use serde::Serialize;
use std::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(metrics))
}

/// That a part works.
#[derive(Serialize, ToSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Since when the store's journal has been stopped for good, as far as the probes have seen.
#[derive(Default)]
pub(crate) struct Liveness(Mutex<Option<Instant>>);

impl Liveness {
    /// Why the process should be started again: its journal has been stopped for good, for long enough.
    fn needs_restart(&self, store: &Store, now: Instant) -> Option<hot::Error> {
        let (stopped, mut since) = (store.stopped(), self.0.lock());
        if stopped.is_none() {
            *since = None;
        }
        stopped.filter(|_| now.duration_since(*since.get_or_insert(now)) >= JOURNAL_STOPPED_MAX)
    }
}

/// Whether the process should go on. 503 asks for a restart: the journal has been stopped for good for more than a minute.
///
/// A full disk, after which the journal goes on by itself, and a store on another machine that cannot be reached are no
/// reason to start this process again: `/readyz` tells of them.
#[utoipa::path(get, path = "/healthz", tag = "server", responses(
    (status = 200, body = Health), (status = 503, description = "The process needs a restart", body = Body)))]
async fn healthz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if let Some(error) = app.liveness.needs_restart(&app.store, Instant::now()) {
        let message = "the journal stopped and does not resume; the process needs a restart";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal_stopped", message);
        return Err(problem.because(error.to_string()));
    }
    Ok(Json(Health { status: "ok" }))
}

/// Whether the store takes transactions. Why it does not stands in the log, under the `X-Request-Id` of the answer.
#[utoipa::path(get, path = "/readyz", tag = "server", responses(
    (status = 200, body = Health), (status = 503, description = "The store is not ready", body = Body)))]
async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    match app.store.ready().await {
        Ok(()) => Ok(Json(Health { status: "ok" })),
        Err(error) => {
            let message = "hot state is not ready; the log says why, under the X-Request-Id of this answer";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message);
            Err(problem.with("backend", "hot").because(format!("{}: {error}", app.store.name())))
        }
    }
}

/// Counters, in Prometheus' text form.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn metrics(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.page(&app.store.stats()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_hot::embedded::Embedded;
    use emberkeep_hot::journal::fault_disk::FaultDisk;
    use emberkeep_schema::{Number, Text, family, partition};
    use std::sync::Arc;
    use std::time::Duration;

    partition! {
        /// The one partition of this test.
        pub struct Everything = "everything";
    }
    family! {
        /// Transactions done.
        pub COUNT = "count" { kind: Text<Number<i64>>, partition: Everything, parts: (), ttl: persistent, owner: "test" }
    }

    fn on(disk: &FaultDisk) -> Store {
        let options = Embedded::builder().data("/data").files(Arc::new(disk.clone()));
        Store::new(Arc::new(options.open().expect("opens")))
    }

    /// Writes until the journal refuses.
    async fn refused(store: &Store) -> hot::Error {
        for n in 0..10_000 {
            let scope = store.scope(Everything);
            if let Err(error) = scope.transact(move |tx| tx.put(&COUNT.key(), &n)).await {
                return error;
            }
        }
        panic!("the journal takes everything");
    }

    #[tokio::test]
    async fn a_journal_that_does_not_resume_asks_for_a_restart() {
        let (full, broken) = (FaultDisk::new(), FaultDisk::new());
        let (resumes, stopped) = (on(&full), on(&broken));
        full.fill_at_write(1);
        broken.break_at_copy(1);
        for store in [&resumes, &stopped] {
            assert!(matches!(refused(store).await, hot::Error::JournalStopped { .. }));
            assert!(store.ready().await.is_err());
        }
        let (liveness, start, second) = (Liveness::default(), Instant::now(), Duration::from_secs(1));
        let asks = |store: &Store, after: Duration| liveness.needs_restart(store, start + after).is_some();
        assert!(!asks(&resumes, Duration::ZERO));
        assert!(!asks(&resumes, JOURNAL_STOPPED_MAX), "a full disk resumes by itself, however late");
        assert!(!asks(&stopped, second), "since now");
        assert!(!asks(&stopped, JOURNAL_STOPPED_MAX));
        assert!(asks(&stopped, JOURNAL_STOPPED_MAX + second));
        assert!(!asks(&resumes, JOURNAL_STOPPED_MAX + second), "another store");
        assert!(!asks(&stopped, JOURNAL_STOPPED_MAX + 2 * second), "a new stop");
    }
}
