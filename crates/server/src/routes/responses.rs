//! Responses that several routes share.

use crate::answer::Answer;
use crate::duration::ceil_ms;
use crate::error::{ApiError, ProblemDetails};
use crate::openapi::problem_responses;
use axum::http::{HeaderValue, StatusCode, header::LOCATION};
use axum::response::{IntoResponse, Response};
use emberkeep_hot as hot;
use serde::Serialize;
use std::time::Duration;
use utoipa::{IntoResponses, ToSchema};

problem_responses! {
    /// The answer of a route that names something missing.
    pub(super) NotFound { 404 "It does not exist" }
    /// The answer to a player who is banned.
    pub(super) Banned { 403 "The player is banned, or the role of the token does not allow it" }
    /// The answer of a route whose state can forbid it.
    pub(super) Conflict { 409 "The current state does not allow it; `error` says why" }
}

/// The answer while a spot cools down, with the rest of the time.
#[derive(IntoResponses)]
#[response(status = 423, description = "The spot is on cooldown", content_type = "application/problem+json",
    headers(("Retry-After" = u32, description = "Seconds until the cooldown ends")))]
pub(super) struct OnCooldown(
    #[expect(dead_code, reason = "only the OpenAPI document reads it")] ProblemDetails,
);

/// 201 with a `Location`.
pub(super) struct Created<T> {
    pub(super) location: String,
    pub(super) body: T,
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        let mut response = (StatusCode::CREATED, Answer(self.body)).into_response();
        // Text of clients in it is percent-encoded, so that it is always a valid header value.
        if let Ok(location) = HeaderValue::try_from(self.location) {
            response.headers_mut().insert(LOCATION, location);
        }
        response
    }
}

/// Percent-encodes one segment of a path.
pub(super) fn percent_encode(segment: &str) -> String {
    let mut path = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            // Also the dot, because `..` has a meaning in paths.
            _ => path.extend(format!("%{byte:02X}").chars()),
        }
    }
    path
}

/// How many were cleared.
#[derive(Serialize, ToSchema)]
pub(super) struct ClearedCount {
    /// The number of cleared cooldowns or claims.
    pub(super) cleared: usize,
}

/// The state of a cooldown.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cooldown {
    /// Whether the cooldown is active.
    cooling: bool,
    /// Milliseconds until it ends. `null` if it is not active or, set by an external service, has no end.
    remaining_ms: Option<u64>,
}

impl From<Option<Duration>> for Cooldown {
    fn from(remaining: Option<Duration>) -> Cooldown {
        Cooldown { cooling: remaining.is_some(), remaining_ms: remaining.and_then(ceil_ms) }
    }
}

pub(super) fn from_ms(time_ms: u64) -> Duration {
    Duration::from_millis(time_ms)
}

/// Errors of single records, in a response that succeeded as a whole.
pub(super) fn problems(errors: Vec<hot::Error>) -> Vec<ProblemDetails> {
    errors.into_iter().map(|error| ApiError::from(error).into_details()).collect()
}
