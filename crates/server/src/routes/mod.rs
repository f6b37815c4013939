//! The routes, and the document that is made from them.

mod answers;
mod documents;
pub(crate) mod health;
mod monsters;
mod paging;
mod place;
mod reactors;
mod rooms;
mod shape;
pub(crate) mod sweeping;

pub(crate) use answers::whole_ms;

use crate::access::{self, plain};
use crate::app::{App, Doors};
use crate::auth::Role;
use crate::drain::Drain;
use crate::guard::Guarding;
use crate::local::Local;
use crate::observe::Observe;
use crate::problem::Problem;
use crate::room_codes::LimitRoomCodes;
use crate::ws;
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use emberkeep_hot::Store;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

/// Looking on.
const READ: Role = Role::ReadOnly;
/// What games do.
const PLAY: Role = Role::Service;
/// What concerns whole tenants, or everybody.
const RULE: Role = Role::Admin;

const ABOUT: &str = "Hot state of multiplayer games. Every problem is `{error, message, details}`: a stable word for \
programs, a sentence for people, and what belongs to the word. Every answer carries `X-Request-Id`; a caller may choose it. \
A server without tokens is for its own machine: whatever calls it by another name, or is a page of an external origin, gets 403.";

/// The whole service.
pub(crate) fn router(app: App) -> Router {
    let (router, document) = documented(&app).split_for_parts();
    // Only the first counts, and all are the same.
    let _ = app.document.set(documents::written(&document));
    let router = router.fallback(no_such_route).method_not_allowed_fallback(no_such_method);
    // Without origins there is nothing to tell browsers, and nothing to do for each request.
    let router = if app.doors.origins.is_empty() { router } else { router.layer(app.doors.origins.layer()) };
    let router = if app.doors.tokens.is_open() {
        router.layer(Guarding(Local(app.doors.origins.clone())))
    } else {
        router
    };
    router.layer(Observe(app.clone())).layer(Drain).with_state(app)
}

/// The document of all routes, as it is served at `/openapi.json`.
pub fn document(store: Store) -> serde_json::Value {
    let app = App::new(store, Doors::open(), Default::default());
    documents::finished(&documented(&app).into_openapi())
}

fn documented(app: &App) -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(head())
        .merge(plain(health::routes()))
        .merge(plain(documents::routes()))
        .merge(monsters::routes(app))
        .merge(reactors::routes(app))
        .merge(plain(ws::routes()))
        .merge(rooms::routes().route_layer(LimitRoomCodes(app.clone())))
}

fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Emberkeep")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .build();
    let mut head = OpenApiBuilder::new().info(info).tags(Some(tags())).build();
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token of `emberkeep token new`. `x-role` says which role a route needs."))
        .build();
    let mut components = utoipa::openapi::Components::new();
    components.add_security_scheme(access::SCHEME, SecurityScheme::Http(token));
    components.schemas.insert("Problem".into(), access::problem_schema());
    head.components = Some(components);
    head
}

/// The groups of the document, in the order in which they are shown.
fn tags() -> Vec<Tag> {
    let groups = [
        ("monsters", "Instances on a map: who hurts them, what weighs on them, what they drop."),
        ("reactors", "Objects on a map that do something when they are hit."),
        ("rooms", "A party game on phones. `X-Master-Key` is the key that the creation of the room gave."),
        ("server", "Whether the server works, what it counts, and this document."),
    ];
    groups.map(|(name, what)| TagBuilder::new().name(name).description(Some(what)).build()).into()
}

async fn no_such_route(uri: Uri) -> Problem {
    let message = format!("there is nothing at {}; /docs lists all routes", uri.path());
    Problem::new(StatusCode::NOT_FOUND, "no_such_route", message)
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let message = format!("{} takes no {method}; /docs lists all routes", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
