//! Headers of our own.

use axum::http::HeaderName;

/// The key of a room's master.
pub(crate) const MASTER_KEY: HeaderName = HeaderName::from_static("x-master-key");
/// The token with which a device proves itself.
pub(crate) const RECONNECT_TOKEN: HeaderName = HeaderName::from_static("x-reconnect-token");
/// What a request is called in the log; callers may choose it.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
