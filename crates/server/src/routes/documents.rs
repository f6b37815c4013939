//! The document of the routes, and a page that shows it without anything from elsewhere.

mod ranges;

use crate::app::App;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::Value;
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

const PAGE: &str = include_str!("documents/page.html");
/// The page runs its own script and asks its own server; nothing else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(openapi)).routes(routes!(docs))
}

/// The document with all that the types of its numbers say.
pub(super) fn finished(document: &OpenApi) -> Value {
    // Only a type of ours that cannot be written down would fail here, and the tests write all of them.
    let mut document = serde_json::to_value(document).expect("the document is plain data");
    ranges::fill(&mut document);
    document
}

/// The document as it is sent.
pub(super) fn written(document: &OpenApi) -> Bytes {
    finished(document).to_string().into()
}

/// This document: OpenAPI 3.1.
#[utoipa::path(get, path = "/openapi.json", tag = "server",
    responses((status = 200, description = "The document", body = Object)))]
async fn openapi(State(app): State<App>) -> impl IntoResponse {
    let head = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];
    (head, app.document.get().cloned().unwrap_or_default())
}

/// A page that shows this document and sends requests.
#[utoipa::path(get, path = "/docs", tag = "server",
    responses((status = 200, description = "The page", body = String, content_type = "text/html")))]
async fn docs() -> impl IntoResponse {
    let head = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
    ];
    (head, PAGE)
}
