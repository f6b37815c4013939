//! Error responses of the routes of rooms, for the OpenAPI document.

use crate::openapi::problem_responses;

problem_responses! {
    /// Errors of every request to a room.
    pub(super) RoomErrors { 404 "The room or the player does not exist", 410 "The room has expired" }
    /// Errors of every request of a device.
    pub(super) DeviceErrors {
        403 "The reconnect token is missing or wrong, the device is banned, or the room is locked"
    }
    /// Errors of every request of the master.
    pub(super) MasterErrors {
        403 "The master key is missing or wrong",
        429 "Too many wrong master keys; `Retry-After` says how long to wait"
    }
    /// The error of public requests that are rate-limited.
    pub(super) RateLimitErrors {
        429 "Too many of these requests from one address; `Retry-After` says how long to wait"
    }
}
