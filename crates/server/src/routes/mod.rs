//! The routes, and the layers around them.

mod darkages;
mod galaxy;
mod galaxy_ws;
mod health;
mod home;
mod monsters;
mod paging;
mod path;
mod reactors;
mod responses;
mod rooms;
mod sweep;
mod ws;

use crate::auth::Role;
use crate::error::ApiError;
use crate::limits::SERVER_INSTANCE_DEFAULT;
use crate::middleware::GuardLayer;
use crate::middleware::drain_body::DrainBody;
use crate::middleware::local_only::LocalOnly;
use crate::middleware::request_log::RequestLog;
use crate::middleware::require_role::RequireRole;
use crate::middleware::room_code_limit::RoomCodeLimit;
use crate::openapi;
use crate::state::{AccessPolicy, AppState};
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use emberkeep_games::darkages::DarkAges;
use emberkeep_hot::Store;
use utoipa_axum::router::OpenApiRouter;

/// All routes, with the layers that every request passes.
pub(crate) fn router(app: AppState) -> Router {
    let (router, document) = documented(&app).split_for_parts();
    // Already set if the router is built twice, with the same document.
    let _ = app.openapi.set(openapi::serialize(&document));
    let router = router.fallback(no_such_route).method_not_allowed_fallback(method_not_allowed);
    // Without other origins the CORS layer would only cost time.
    let origins = &app.access.origins;
    let router = if origins.is_empty() { router } else { router.layer(origins.layer()) };
    let router = match app.access.tokens.is_open() {
        true => router.layer(GuardLayer(LocalOnly(origins.clone()))),
        false => router,
    };
    router.layer(RequestLog(app.clone())).layer(DrainBody).with_state(app)
}

/// The OpenAPI document, as `/openapi.json` serves it.
pub fn document(store: Store) -> serde_json::Value {
    let darkages = DarkAges::new(store.clone(), SERVER_INSTANCE_DEFAULT).expect("a short name of letters");
    let app = AppState::new(store, AccessPolicy::open(), Default::default(), darkages);
    openapi::finish(&documented(&app).into_openapi())
}

fn documented(app: &AppState) -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(openapi::skeleton())
        .merge(public(health::routes()))
        .merge(public(home::routes()))
        .merge(public(openapi::routes()))
        .merge(monsters::routes(app))
        .merge(reactors::routes(app))
        .merge(darkages::routes(app))
        .merge(galaxy::routes(app))
        .merge(public(galaxy_ws::routes()))
        .merge(public(ws::routes()))
        .merge(rooms::routes().route_layer(RoomCodeLimit(app.clone())))
}

/// Routes that need no token.
fn public(mut routes: OpenApiRouter<AppState>) -> OpenApiRouter<AppState> {
    openapi::mark_public(routes.get_openapi_mut());
    routes
}

/// Routes that need a token of at least this role, and use the store.
fn require_role(app: &AppState, role: Role, mut routes: OpenApiRouter<AppState>) -> OpenApiRouter<AppState> {
    openapi::describe_errors(routes.get_openapi_mut());
    openapi::require_token(routes.get_openapi_mut(), role);
    routes.route_layer(GuardLayer(RequireRole { tokens: app.access.tokens.clone(), role }))
}

async fn no_such_route(uri: Uri) -> ApiError {
    let detail = format!("there is no route {}; /docs lists all routes", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, "no_such_route", detail)
}

async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not accept {method}; /docs lists all routes", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}
