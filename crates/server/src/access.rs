//! Who may call which route. A group of routes is fenced by what it needs, and the document says the same.

use crate::app::App;
use crate::auth::{Caller, Role, Shown};
use crate::extract::Address;
use crate::guard::{Guard, Guarding};
use crate::problem::{Body, Problem};
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use axum::response::{IntoResponse, Response};
use utoipa::PartialSchema as _;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;

/// The name of the security scheme in the document.
pub(crate) const SCHEME: &str = "token";

/// Problems of every route that takes a body.
const OF_BODIES: &[(StatusCode, &str)] = &[
    (StatusCode::BAD_REQUEST, "The body is no JSON"),
    (StatusCode::REQUEST_TIMEOUT, "The body does not arrive"),
    (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large"),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared as JSON"),
    (StatusCode::TOO_MANY_REQUESTS, "Too many unfinished requests from one address"),
];
/// The problem of every route that takes anything.
const OF_INPUT: (StatusCode, &str) = (StatusCode::UNPROCESSABLE_ENTITY, "The request makes no sense");
/// Problems of every route that asks the store.
const OF_THE_STORE: &[(StatusCode, &str)] = &[
    (StatusCode::CONFLICT, "The state of things does not allow it, or others kept changing it"),
    (StatusCode::INTERNAL_SERVER_ERROR, "A stored value is corrupt, or the server is at fault"),
    (StatusCode::SERVICE_UNAVAILABLE, "The store cannot be reached, or the outcome is unknown"),
    (StatusCode::INSUFFICIENT_STORAGE, "The store is full"),
];
/// Problems of every route that needs a token.
const OF_TOKENS: &[(StatusCode, &str)] = &[
    (StatusCode::UNAUTHORIZED, "No token, or one that is not known"),
    (StatusCode::FORBIDDEN, "The token's role does not allow it"),
];

/// The routes behind their fence.
pub(crate) fn fenced(app: &App, role: Role, mut routes: OpenApiRouter<App>) -> OpenApiRouter<App> {
    for operation in operations(routes.get_openapi_mut()) {
        describe(operation);
        demand(operation, role);
    }
    routes.route_layer(Guarding(Fence { app: app.clone(), role }))
}

/// Routes that need no token: the game's own clients call them.
pub(crate) fn public(mut routes: OpenApiRouter<App>) -> OpenApiRouter<App> {
    for operation in operations(routes.get_openapi_mut()) {
        describe(operation);
        operation.security = Some(vec![]);
    }
    routes
}

/// Routes that ask no store and need nothing: what they answer, they say themselves.
pub(crate) fn plain(mut routes: OpenApiRouter<App>) -> OpenApiRouter<App> {
    for operation in operations(routes.get_openapi_mut()) {
        operation.security = Some(vec![]);
    }
    routes
}

/// Every operation of a document.
pub(crate) fn operations(document: &mut utoipa::openapi::OpenApi) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(|item| {
        [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch]
            .into_iter()
            .filter_map(Option::as_mut)
    })
}

/// Tells of the problems that come with what a route takes, and with the store.
fn describe(operation: &mut Operation) {
    let bodies = if operation.request_body.is_some() { OF_BODIES } else { &[] };
    let takes_something = operation.request_body.is_some() || operation.parameters.is_some();
    let input = takes_something.then_some(&OF_INPUT);
    for (status, what) in bodies.iter().chain(input).chain(OF_THE_STORE) {
        add_response(operation, *status, what);
    }
}

/// Tells of the token that a route needs.
fn demand(operation: &mut Operation, role: Role) {
    for (status, what) in OF_TOKENS {
        add_response(operation, *status, what);
    }
    operation.security = Some(vec![SecurityRequirement::new(SCHEME, Vec::<String>::new())]);
    let role = serde_json::to_value(role).unwrap_or_default();
    operation.extensions = Some(ExtensionsBuilder::new().add("x-role", role).build());
}

fn add_response(operation: &mut Operation, status: StatusCode, what: &str) {
    let known = &mut operation.responses.responses;
    if !known.contains_key(status.as_str()) {
        let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new().description(what).content("application/json", content).build();
        known.insert(status.as_str().to_owned(), RefOr::T(response));
    }
}

/// The schema that all problems have, for the document's components.
pub(crate) fn problem_schema() -> RefOr<utoipa::openapi::Schema> {
    Body::schema()
}

/// Whether a caller shows a token of a service.
pub(crate) fn is_service(app: &App, headers: &HeaderMap) -> bool {
    let shown = app.doors.tokens.look_up(bearer(headers));
    matches!(shown, Shown::Known(caller) if caller.role >= Role::Service)
}

/// A call that anybody may make, but not as often as they like. Who shows a token of a service may.
pub(crate) struct Paced;

impl FromRequestParts<App> for Paced {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Paced, Problem> {
        if !is_service(app, &parts.headers) {
            let Ok(Address(from)) = Address::from_request_parts(parts, app).await;
            app.doors.throttle.pass(from)?;
        }
        Ok(Paced)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Lets requests through that show a token of at least a role.
#[derive(Clone)]
struct Fence {
    app: App,
    role: Role,
}

impl Guard for Fence {
    fn pass(&self, request: &Request) -> Result<Option<Caller>, Box<Response>> {
        let role = self.role;
        match self.app.doors.tokens.look_up(bearer(request.headers())) {
            Shown::Open => Ok(None),
            Shown::Known(caller) if caller.role >= role => Ok(Some(caller)),
            Shown::Known(caller) => {
                let message =
                    format!("{} is {:?}, this needs {role:?}; use another token", caller.name, caller.role);
                let mut refusal = Problem::new(StatusCode::FORBIDDEN, "forbidden", message).into_response();
                refusal.extensions_mut().insert(caller);
                Err(Box::new(refusal))
            }
            Shown::Unknown => Err(Box::new(unauthorized())),
        }
    }
}

fn unauthorized() -> Response {
    let message = "this needs a known token; send Authorization: Bearer ek_…";
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message).into_response();
    let challenge = axum::http::HeaderValue::from_static("Bearer");
    response.headers_mut().insert(axum::http::header::WWW_AUTHENTICATE, challenge);
    response
}
