//! The document of the routes, and a page that shows it without anything from elsewhere.

use crate::app::App;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::routing::get;
use bytes::Bytes;
use utoipa::openapi::OpenApi;

const PAGE: &str = include_str!("documents/page.html");
/// The page runs its own script and asks its own server; nothing else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:";

pub(super) fn routes(document: &OpenApi) -> Router<App> {
    // Only a type of ours that cannot be written down would fail here, and the tests write all of them.
    let json = Bytes::from(serde_json::to_vec(document).expect("the document is plain data"));
    let json_head = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];
    let page_head = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];
    Router::new()
        .route("/openapi.json", get(move || async move { (json_head, json) }))
        .route("/docs", get(move || async move { (page_head, PAGE) }))
}
