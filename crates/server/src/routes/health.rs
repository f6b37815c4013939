//! Health probes and metrics.

use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Serialize;
use std::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(metrics))
}

/// The state of the server.
#[derive(Serialize, ToSchema)]
struct Health {
    /// Always `ok`; a server that needs a restart answers with an error.
    status: &'static str,
}

/// Whether the server takes requests, and what waits.
#[derive(Serialize, ToSchema)]
struct Readiness {
    /// Always `ok`; a server that takes no transactions answers with an error.
    status: &'static str,
    /// History; absent on a server without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<HistoryReadiness>,
}

/// Whether events reach history.
#[derive(Serialize, ToSchema)]
struct HistoryReadiness {
    /// `ok`, or `waiting` while history cannot be reached: events wait in their logs, and the log of the server says why.
    status: &'static str,
    /// Entries of logs that are not in history yet, as far as this process knows.
    waiting_entries: u64,
}

/// Liveness probe. 503 means that the process needs a restart: its journal stopped more than a minute ago.
///
/// A full disk and an unreachable Redis do not need a restart of this process; `/readyz` reports them.
#[utoipa::path(get, path = "/healthz", tag = "server", responses(
    (status = 200, description = "The server works", body = Health),
    (status = 503, description = "The process needs a restart", body = ProblemDetails,
        content_type = "application/problem+json")))]
async fn healthz(State(app): State<AppState>) -> Result<Answer<Health>, ApiError> {
    if let Some(cause) = app.liveness.needs_restart(&app.store, Instant::now()) {
        let message = "the journal stopped and does not resume; the process needs a restart";
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "journal_stopped", message);
        return Err(error.with_reason(cause.to_string()));
    }
    Ok(Answer(Health { status: "ok" }))
}

/// Readiness probe: whether the store accepts transactions. The log has the reason of a 503.
///
/// History that cannot be reached is no reason for a 503: hot state works, and events wait in their logs.
#[utoipa::path(get, path = "/readyz", tag = "server", responses(
    (status = 200, description = "The store is ready", body = Readiness),
    (status = 503, description = "The store is not ready", body = ProblemDetails,
        content_type = "application/problem+json")))]
async fn readyz(State(app): State<AppState>) -> Result<Answer<Readiness>, ApiError> {
    let history = app.history.get().map(|tier| HistoryReadiness {
        status: if tier.is_ready() { "ok" } else { "waiting" },
        waiting_entries: tier.waiting_entries(),
    });
    match app.store.ready().await {
        Ok(()) => Ok(Answer(Readiness { status: "ok", history })),
        Err(cause) => {
            let message = "hot state is not ready; the log says why, under the X-Request-Id of this answer";
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message);
            Err(error.with("backend", "hot").with_reason(format!("{}: {cause}", app.store.name())))
        }
    }
}

/// Metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain")))]
async fn metrics(State(app): State<AppState>) -> impl IntoResponse {
    // Never an error here: this is not inside a transaction.
    let stats = app.store.stats().unwrap_or_default();
    let page = app.metrics.page(&stats, &app.store.named_stats(), app.history.get());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page)
}
