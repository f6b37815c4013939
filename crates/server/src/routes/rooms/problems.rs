//! What can go wrong in a room, for the document.
#![expect(dead_code, reason = "only the document reads them")]

use crate::problem::Body;
use utoipa::IntoResponses;

/// Problems of every call about a room.
#[derive(IntoResponses)]
pub(super) enum OfRoom {
    /// Nothing is there.
    #[response(status = 404, description = "There is no such room, or no such player in it")]
    Absent(Body),
    /// It was there.
    #[response(status = 410, description = "The room has expired")]
    Expired(Body),
}

/// Problems of every call that a device makes.
#[derive(IntoResponses)]
#[response(
    status = 403,
    description = "The reconnect token is missing or another device's, the device was banned, or the room is locked"
)]
pub(super) struct OfDevice(Body);

/// Problems of every call that only the room's master may make.
#[derive(IntoResponses)]
pub(super) enum OfMaster {
    /// Somebody else.
    #[response(status = 403, description = "The master key is missing, or not the room's")]
    Forbidden(Body),
    /// Somebody who guesses.
    #[response(
        status = 429,
        description = "Too many wrong master keys; come back after the time in Retry-After"
    )]
    TooMany(Body),
}

/// The problem of calls that anybody may make, but not as often as they like.
#[derive(IntoResponses)]
#[response(
    status = 429,
    description = "Too many of these from one address; come back after the time in Retry-After"
)]
pub(super) struct OfCrowd(Body);
