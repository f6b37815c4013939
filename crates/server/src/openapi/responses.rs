//! Adds to each operation the errors and the security requirement that follow from its kind.

use crate::auth::Role;
use crate::error::PROBLEM_JSON;
use axum::http::StatusCode;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

/// The name of the security scheme.
pub(super) const SECURITY_SCHEME: &str = "token";

/// Errors of every operation with a body.
const BODY_ERRORS: &[(StatusCode, &str)] = &[
    (StatusCode::BAD_REQUEST, "The body is not JSON"),
    (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time"),
    (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large"),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared as JSON"),
    (StatusCode::TOO_MANY_REQUESTS, "Too many unfinished requests from one address"),
];
/// The error of every operation with a body or parameters.
const INPUT_ERROR: (StatusCode, &str) =
    (StatusCode::UNPROCESSABLE_ENTITY, "A parameter or a field of the body is invalid");
/// Errors of every operation that uses the store.
const STORE_ERRORS: &[(StatusCode, &str)] = &[
    (StatusCode::CONFLICT, "The current state does not allow it, or concurrent writes kept conflicting"),
    (StatusCode::INTERNAL_SERVER_ERROR, "A stored value is corrupt, or the server is at fault"),
    (StatusCode::SERVICE_UNAVAILABLE, "The store cannot be reached, or the outcome is unknown"),
    (StatusCode::INSUFFICIENT_STORAGE, "The store is full"),
];
/// Errors of every operation that needs a token.
const TOKEN_ERRORS: &[(StatusCode, &str)] = &[
    (StatusCode::UNAUTHORIZED, "The token is missing or unknown"),
    (StatusCode::FORBIDDEN, "The token's role does not allow it"),
];

/// Adds the errors of the input and of the store.
pub(crate) fn describe_errors(document: &mut OpenApi) {
    for operation in operations(document) {
        let body = if operation.request_body.is_some() { BODY_ERRORS } else { &[] };
        let has_input = operation.request_body.is_some() || operation.parameters.is_some();
        let input = has_input.then_some(&INPUT_ERROR);
        for (status, what) in body.iter().chain(input).chain(STORE_ERRORS) {
            add_response(operation, *status, what);
        }
    }
}

/// Adds the token that the operations need.
pub(crate) fn require_token(document: &mut OpenApi, role: Role) {
    let role = serde_json::to_value(role).unwrap_or_default();
    for operation in operations(document) {
        for (status, what) in TOKEN_ERRORS {
            add_response(operation, *status, what);
        }
        operation.security = Some(vec![SecurityRequirement::new(SECURITY_SCHEME, Vec::<String>::new())]);
        operation.extensions = Some(ExtensionsBuilder::new().add("x-role", role.clone()).build());
    }
}

/// Says that the operations need no token.
pub(crate) fn mark_public(document: &mut OpenApi) {
    operations(document).for_each(|operation| operation.security = Some(vec![]));
}

fn operations(document: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(|item| {
        [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch]
            .into_iter()
            .filter_map(Option::as_mut)
    })
}

/// A response that the operation declares itself stays.
fn add_response(operation: &mut Operation, status: StatusCode, what: &str) {
    let declared = &mut operation.responses.responses;
    if !declared.contains_key(status.as_str()) {
        declared.insert(status.as_str().to_owned(), problem(what));
    }
}

/// A response with problem details.
pub(crate) fn problem(what: &str) -> RefOr<Response> {
    let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    RefOr::T(ResponseBuilder::new().description(what).content(PROBLEM_JSON, content).build())
}

/// Declares sets of errors that an operation names among its responses.
macro_rules! problem_responses {
    ($($(#[$attribute:meta])* $vis:vis $name:ident { $($status:literal $what:literal),+ })+) => { $(
        $(#[$attribute])*
        $vis struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::response::Response>,
            > {
                [$(($status.to_string(), crate::openapi::problem($what))),+].into()
            }
        }
    )+ };
}

pub(crate) use problem_responses;
