//! Whether the server works, and what it counted.

use crate::app::App;
use crate::problem::{Body, Problem};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Serialize;
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

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = 200, body = Health)))]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether every backend takes steps. Says which one does not, and why.
#[utoipa::path(get, path = "/readyz", tag = "server", responses(
    (status = 200, body = Health), (status = 503, description = "A backend is not ready", body = Body)))]
async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    match app.store.ready().await {
        Ok(()) => Ok(Json(Health { status: "ok" })),
        Err(error) => {
            let message = format!("hot state is not ready: {error}");
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message);
            Err(problem.with("backend", "hot").with("name", app.store.name()))
        }
    }
}

/// Counters, in Prometheus' text form.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn metrics(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.page(&app.store.stats()))
}
