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

/// Problems of every call that only the room's master may make.
#[derive(IntoResponses)]
#[response(status = 403, description = "The master key is missing, or not the room's")]
pub(super) struct OfMaster(Body);
