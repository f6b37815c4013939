//! API errors as RFC 9457 problem details (`application/problem+json`).
//!
//! `error` is the stable code for programs. `type` points to its entry on the reference page, `detail` is for
//! people, and `details` holds values that belong to the code, such as ids. `convert` decides which error
//! has which status.

mod convert;
mod titles;

pub(crate) use convert::public_text;
pub(crate) use titles::TITLES;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;
use utoipa::ToSchema;

/// The media type of every error.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An error as RFC 9457 problem details.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDetails {
    /// Where this kind of error is described, relative to the server.
    #[serde(rename = "type")]
    #[schema(examples("/docs#error-not_found"))]
    kind: String,
    /// What kind of error it is. The same for every error of one code.
    #[schema(examples("Not found"))]
    title: &'static str,
    /// The HTTP status, the same as that of the response.
    #[schema(examples(404))]
    status: u16,
    /// What is wrong in this case, and what to do about it.
    detail: String,
    /// The stable code, for programs.
    #[schema(examples("not_found"))]
    error: &'static str,
    /// Values that belong to the code, such as ids.
    #[schema(value_type = Object)]
    details: Map<String, Value>,
}

/// An error of a request.
#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    retry_after: Option<Duration>,
    /// For the log only.
    reason: Option<String>,
    /// Boxed, because every handler returns an error by value.
    body: Box<ProblemDetails>,
}

impl ApiError {
    /// An error without `details`.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> ApiError {
        let body = ProblemDetails {
            kind: format!("/docs#error-{code}"),
            title: titles::title(code).unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            error: code,
            details: Map::new(),
        };
        ApiError { status, retry_after: None, reason: None, body: Box::new(body) }
    }

    /// An argument that cannot be used: 422 `invalid`.
    pub fn invalid(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    /// Something that a path or body names and that does not exist: 404 `not_found`.
    pub fn not_found(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// Too many requests: 429 `rate_limited`. The caller adds `Retry-After`.
    pub(crate) fn rate_limited(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail)
    }

    /// Adds a member to `details`.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> ApiError {
        self.body.details.insert(name.into(), value.into());
        self
    }

    /// Adds a `Retry-After` header.
    pub fn retry_after(mut self, wait: Duration) -> ApiError {
        self.retry_after = Some(wait);
        self
    }

    /// Adds a reason that is logged and not sent.
    pub fn with_reason(mut self, reason: impl Into<String>) -> ApiError {
        self.reason = Some(reason.into());
        self
    }

    /// The stable code, which programs compare.
    pub fn code(&self) -> &'static str {
        self.body.error
    }

    /// The HTTP status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The body, for a response that lists errors without being one.
    pub fn into_details(self) -> ProblemDetails {
        *self.body
    }
}

/// The error of a response, in its extensions: for metrics, the log and the limit of room codes.
#[derive(Debug, Clone)]
pub(crate) struct LoggedError {
    pub(crate) code: &'static str,
    /// Present if the server is at fault.
    pub(crate) reason: Option<String>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let detail = || self.body.detail.clone();
        let reason = self.status.is_server_error().then(|| self.reason.unwrap_or_else(detail));
        let logged = LoggedError { code: self.body.error, reason };
        // Strings, numbers and maps with string keys: serialization cannot fail.
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (self.status, [(CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        response.extensions_mut().insert(logged);
        if let Some(wait) = self.retry_after {
            // Rounded up so that a client that retries exactly then succeeds.
            let seconds = wait.as_millis().div_ceil(1_000).clamp(1, u128::from(u32::MAX));
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds as u32));
        }
        response
    }
}
