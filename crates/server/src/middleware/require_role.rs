//! Requires a token of at least a role.

use super::guard::Guard;
use crate::auth::{Caller, Role, TokenCheck, Tokens, bearer_token};
use crate::error::ApiError;
use axum::extract::Request;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

#[derive(Clone)]
pub(crate) struct RequireRole {
    pub(crate) tokens: Tokens,
    pub(crate) role: Role,
}

impl Guard for RequireRole {
    fn check(&self, request: &Request) -> Result<Option<Caller>, Box<Response>> {
        let role = self.role;
        match self.tokens.look_up(bearer_token(request.headers())) {
            TokenCheck::Open => Ok(None),
            TokenCheck::Known(caller) if caller.role >= role => Ok(Some(caller)),
            TokenCheck::Known(caller) => {
                let detail =
                    format!("{} is {:?}, this needs {role:?}; use another token", caller.name, caller.role);
                let mut response = ApiError::new(StatusCode::FORBIDDEN, "forbidden", detail).into_response();
                // The request log names the caller of a refused request, too.
                response.extensions_mut().insert(caller);
                Err(Box::new(response))
            }
            TokenCheck::Unknown => Err(Box::new(unauthorized())),
        }
    }
}

fn unauthorized() -> Response {
    let detail = "this needs a known token; send Authorization: Bearer ek_…";
    let mut response = ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}
