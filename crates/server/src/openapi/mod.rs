//! The OpenAPI document, and the reference page that shows it without external resources.

mod ranges;
mod responses;

pub(crate) use responses::{describe_errors, mark_public, problem, problem_responses, require_token};

use crate::error::{ProblemDetails, TITLES};
use crate::state::AppState;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Map, Value};
use utoipa::PartialSchema as _;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::{router::OpenApiRouter, routes};

const PAGE: &str = include_str!("page.html");
/// A page may run its own script and call its own server; nothing else.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const DESCRIPTION: &str = "State of multiplayer games. Errors are RFC 9457 problem details \
(`application/problem+json`) with `type`, `title`, `status` and `detail`; `error` is a stable code for programs, and `details` \
holds values that belong to it. Every response carries `X-Request-Id`; a client may choose it. A server without tokens is for \
its own machine: requests with another `Host`, from other origins or through a proxy get 403.";

/// The document without paths.
pub(crate) fn skeleton() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Emberkeep")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .build();
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token of `emberkeep token new`. `x-role` is the role that a route needs."))
        .build();
    let mut components = utoipa::openapi::Components::new();
    components.add_security_scheme(responses::SECURITY_SCHEME, SecurityScheme::Http(token));
    components.schemas.insert("Problem".into(), ProblemDetails::schema());
    let titles: Map<String, Value> =
        TITLES.iter().map(|(code, title)| ((*code).to_owned(), (*title).into())).collect();
    let mut document =
        OpenApiBuilder::new().info(info).tags(Some(tags())).components(Some(components)).build();
    document.extensions = Some(ExtensionsBuilder::new().add("x-errors", titles).build());
    document
}

/// The groups of the document, in the order of the reference page.
fn tags() -> Vec<Tag> {
    let groups = [
        ("monsters", "Monster instances on a map: damage, status effects, cooldowns and drops."),
        ("reactors", "Objects on a map that change state or trigger when they are hit."),
        (
            "darkages",
            "An MMO with zones: sessions, positions and fights, and their history. Times are milliseconds since 1970.",
        ),
        (
            "galaxy",
            "A space simulation of several services: ships, whole ticks, clock and rules. The service of a token decides what it may write.",
        ),
        ("rooms", "A party game on phones. `X-Master-Key` is the key that room creation returned."),
        ("server", "Health, metrics and this document."),
    ];
    groups.map(|(name, what)| TagBuilder::new().name(name).description(Some(what)).build()).into()
}

/// The complete document, with the range of every number.
pub(crate) fn finish(document: &OpenApi) -> Value {
    let mut document = serde_json::to_value(document).expect("utoipa's types serialize");
    ranges::fill(&mut document);
    document
}

pub(crate) fn serialize(document: &OpenApi) -> Bytes {
    finish(document).to_string().into()
}

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(openapi)).routes(routes!(docs))
}

/// Returns this document: OpenAPI 3.1.
#[utoipa::path(get, path = "/openapi.json", tag = "server",
    responses((status = 200, description = "The document", body = Object)))]
async fn openapi(State(app): State<AppState>) -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];
    (headers, app.openapi.get().cloned().unwrap_or_default())
}

/// Returns the reference page, which shows this document and sends requests.
#[utoipa::path(get, path = "/docs", tag = "server",
    responses((status = 200, description = "The page", body = String, content_type = "text/html")))]
async fn docs() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, PAGE_POLICY),
    ];
    (headers, PAGE)
}
