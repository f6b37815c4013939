//! The start page, and the protocol page that it links to.

use crate::openapi::PAGE_POLICY;
use crate::state::AppState;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use utoipa_axum::{router::OpenApiRouter, routes};

const PAGE: &str = include_str!("home.html");
const PROTOCOL: &str = include_str!("../../../../docs/party-protocol.md");
const GALAXY_PROTOCOL: &str = include_str!("../../../../docs/galaxy-protocol.md");

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(home)).routes(routes!(protocol)).routes(routes!(galaxy_protocol))
}

/// Returns the start page: links and live counters.
#[utoipa::path(get, path = "/", tag = "server",
    responses((status = 200, description = "The page", body = String, content_type = "text/html")))]
async fn home(State(app): State<AppState>) -> impl IntoResponse {
    let link = |(label, url): &(String, String)| {
        let (label, url) = (escape(label), escape(url));
        format!("<li><a href=\"{url}\">{label}</a> <code>{url}</code></li>\n")
    };
    let links: String = app.home_links.lock().iter().map(link).collect();
    let page = PAGE.replace("{{version}}", env!("CARGO_PKG_VERSION")).replace("{{links}}", &links);
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, PAGE_POLICY),
    ];
    (headers, page)
}

/// Returns the party protocol: the messages of the WebSocket at `/ws`, in Markdown.
#[utoipa::path(get, path = "/protocol", tag = "server",
    responses((status = 200, description = "The protocol", body = String, content_type = "text/plain")))]
async fn protocol() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-cache")], PROTOCOL)
}

/// Returns the Galaxy protocol: the messages of the WebSocket at `/ws/galaxy`, in Markdown.
#[utoipa::path(get, path = "/protocol/galaxy", tag = "server",
    responses((status = 200, description = "The protocol", body = String, content_type = "text/plain")))]
async fn galaxy_protocol() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-cache")], GALAXY_PROTOCOL)
}

/// Escapes text for HTML content and quoted attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
