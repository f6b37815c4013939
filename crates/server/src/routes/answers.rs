//! Answers that several routes give, and how the document tells of them.

use crate::problem::Body;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header::LOCATION};
use axum::response::{IntoResponse, Response};
use emberkeep_hot as hot;
use serde::Serialize;
use std::time::Duration;
use utoipa::{IntoResponses, ToSchema};

/// Nothing is there.
#[derive(IntoResponses)]
#[response(status = 404, description = "There is no such thing")]
pub(super) struct Absent(#[expect(dead_code, reason = "only the document reads it")] Body);

/// The state of things does not allow it.
#[derive(IntoResponses)]
#[response(status = 409, description = "The state of things does not allow it; `error` says what")]
pub(super) struct Conflict(#[expect(dead_code, reason = "only the document reads it")] Body);

/// Something cools down.
#[derive(IntoResponses)]
#[response(status = 423, description = "The spot cools down; `Retry-After` says for how long",
    headers(("Retry-After" = u32, description = "Seconds until it has cooled down")))]
pub(super) struct Cooling(#[expect(dead_code, reason = "only the document reads it")] Body);

/// Something new, and where it is.
pub(super) struct Created<T> {
    pub(super) location: String,
    pub(super) body: T,
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        let mut response = (StatusCode::CREATED, Json(self.body)).into_response();
        // Percent-encoded where it holds a caller's own words: always a header's value.
        if let Ok(location) = HeaderValue::try_from(self.location) {
            response.headers_mut().insert(LOCATION, location);
        }
        response
    }
}

/// A caller's own word as one part of a path.
pub(super) fn encoded(part: &str) -> String {
    let mut path = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            // Also the dot: `..` would lead elsewhere.
            _ => path.extend(format!("%{byte:02X}").chars()),
        }
    }
    path
}

/// How many things ended.
#[derive(Serialize, ToSchema)]
pub(super) struct Cleared {
    /// How many there were.
    pub(super) cleared: usize,
}

/// Whether something cools down.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cooldown {
    /// Whether it cools down.
    cooling: bool,
    /// Milliseconds until it has. `null` if it has, and for a marker without an end, which only other services set.
    remaining_ms: Option<u64>,
}

impl From<Option<Duration>> for Cooldown {
    fn from(remaining: Option<Duration>) -> Cooldown {
        Cooldown { cooling: remaining.is_some(), remaining_ms: remaining.and_then(whole_ms) }
    }
}

/// Milliseconds, rounded up; `None` for a time that never ends.
pub(crate) fn whole_ms(time: Duration) -> Option<u64> {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).ok()
}

/// A time that is to pass.
pub(super) fn ms(time_ms: u64) -> Duration {
    Duration::from_millis(time_ms)
}

/// Records that could not be read, as problems.
pub(super) fn told(errors: Vec<hot::Error>) -> Vec<Body> {
    errors.into_iter().map(|error| crate::problem::Problem::from(error).into_body()).collect()
}
