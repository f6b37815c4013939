//! Names of custom headers.

use axum::http::HeaderName;

/// The master key of a room.
pub(crate) const MASTER_KEY: HeaderName = HeaderName::from_static("x-master-key");
/// The secret of a device in a room.
pub(crate) const RECONNECT_TOKEN: HeaderName = HeaderName::from_static("x-reconnect-token");
/// Identifies a request in the log; clients may choose it.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
