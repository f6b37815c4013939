//! Tower layers, in the order in which a request passes them: [`drain_body`], [`request_log`], [`local_only`]
//! (without tokens), CORS, then per route [`require_role`] or [`room_code_limit`].
//!
//! Most are tower services rather than `axum::middleware::from_fn`, which boxes a future and clones the
//! handler for every request: a measurable part of a small request.

pub(crate) mod drain_body;
mod guard;
pub(crate) mod local_only;
pub(crate) mod request_log;
pub(crate) mod require_role;
pub(crate) mod room_code_limit;

pub(crate) use guard::GuardLayer;
