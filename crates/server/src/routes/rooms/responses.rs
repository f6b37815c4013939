//! Error responses of the routes of rooms, for the OpenAPI document.
#![expect(dead_code, reason = "only the OpenAPI document reads them")]

use crate::error::ProblemDetails;
use utoipa::IntoResponses;

/// Errors of every request to a room.
#[derive(IntoResponses)]
pub(super) enum RoomErrors {
    #[response(
        status = 404,
        description = "The room or the player does not exist",
        content_type = "application/problem+json"
    )]
    NotFound(ProblemDetails),
    #[response(status = 410, description = "The room has expired", content_type = "application/problem+json")]
    Expired(ProblemDetails),
}

/// Errors of every request of a device.
#[derive(IntoResponses)]
#[response(
    status = 403,
    description = "The reconnect token is missing or wrong, the device is banned, or the room is locked",
    content_type = "application/problem+json"
)]
pub(super) struct DeviceErrors(ProblemDetails);

/// Errors of every request of the master.
#[derive(IntoResponses)]
pub(super) enum MasterErrors {
    #[response(
        status = 403,
        description = "The master key is missing or wrong",
        content_type = "application/problem+json"
    )]
    Forbidden(ProblemDetails),
    #[response(
        status = 429,
        description = "Too many wrong master keys; `Retry-After` says how long to wait",
        content_type = "application/problem+json"
    )]
    Backoff(ProblemDetails),
}

/// The error of public requests that are rate-limited.
#[derive(IntoResponses)]
#[response(
    status = 429,
    description = "Too many of these requests from one address; `Retry-After` says how long to wait",
    content_type = "application/problem+json"
)]
pub(super) struct RateLimitErrors(ProblemDetails);
