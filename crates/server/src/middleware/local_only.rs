//! Answers requests that [`host_check`](crate::security::host_check) refuses.

use super::guard::Guard;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::security::cors::AllowedOrigins;
use crate::security::host_check::{self, Refusal};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Lets requests pass that come from this machine, from our own pages and from pages of these origins.
#[derive(Clone)]
pub(crate) struct LocalOnly(pub(crate) AllowedOrigins);

impl Guard for LocalOnly {
    fn check(&self, request: &Request) -> Result<Option<Caller>, Box<Response>> {
        match host_check::check(&self.0, request) {
            Ok(()) => Ok(None),
            Err(refusal) => Err(Box::new(error(refusal).into_response())),
        }
    }
}

fn error(refusal: Refusal) -> ApiError {
    let (code, detail) = match refusal {
        Refusal::Host => (
            "host_not_allowed",
            "without tokens this server is for its own machine: call it localhost or 127.0.0.1, or configure tokens"
                .to_owned(),
        ),
        Refusal::Proxy(header) => (
            "proxy_not_allowed",
            format!(
                "{header} says that this request came through a proxy, and without tokens this server is for its own \
                 machine; configure tokens"
            ),
        ),
        Refusal::Origin => (
            "origin_not_allowed",
            "this page may not call here; add its origin to the server's setting `origins`".to_owned(),
        ),
    };
    ApiError::new(StatusCode::FORBIDDEN, code, detail)
}
