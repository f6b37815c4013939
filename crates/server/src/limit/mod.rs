//! Rate limits and resource limits. Each returns plain values; callers turn a refusal into an HTTP or
//! WebSocket error.

pub(crate) mod bodies;
pub(crate) mod connections;
pub(crate) mod flood;
pub(crate) mod login_backoff;
pub(crate) mod per_ip;
pub(crate) mod room_codes;
pub(crate) mod token_bucket;
