//! The routes, and the document that is made from them.

mod documents;
mod health;
mod monsters;

use crate::access::{self, Access, fenced};
use crate::app::App;
use crate::auth::{Role, Tokens};
use crate::observe::observe;
use crate::problem::Problem;
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use emberkeep_hot::Store;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

const READ: Access = Access::Token(Role::ReadOnly);
const PLAY: Access = Access::Token(Role::Service);
const RULE: Access = Access::Token(Role::Admin);

/// The whole service.
pub(crate) fn router(app: App) -> Router {
    let (router, document) = documented(&app).split_for_parts();
    router
        .merge(documents::routes(&document))
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// The document of all routes, as it is served at `/openapi.json`.
pub fn document(store: Store) -> OpenApi {
    documented(&App::new(store, Tokens::open())).into_openapi()
}

fn documented(app: &App) -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(head())
        .merge(fenced(app, Access::Public, health::routes()))
        .merge(monsters::routes(app))
}

fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Emberkeep")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Hot state of multiplayer games."))
        .build();
    let mut head = OpenApiBuilder::new().info(info).build();
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

async fn no_such_route(uri: Uri) -> Problem {
    let message = format!("there is nothing at {}; /docs lists all routes", uri.path());
    Problem::new(StatusCode::NOT_FOUND, "no_such_route", message)
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let message = format!("{} takes no {method}; /docs lists all routes", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
