//! Games over HTTP and WebSocket.
//!
//! **Responsible for**: routes, the OpenAPI document, authentication, limits, metrics, WebSockets, listening
//! and shutdown. The only crate that uses HTTP.
//!
//! **Not responsible for**: rules of a game, a concrete engine, reading settings.
//!
//! A request passes: `listen` (TLS, connection limits) → `middleware` (request log, host check,
//! CORS, role) → `extract` (path, query, body within `limit`) → a handler in `routes` → the game. A WebSocket
//! goes on in `ws`. Every failure becomes an [`error::ApiError`]. Top-level modules do not import each other
//! in cycles.

mod answer;
pub mod auth;
mod darkages_sweep;
mod duration;
pub mod error;
mod extract;
mod headers;
mod history;
mod limit;
pub mod limits;
mod listen;
mod liveness;
mod metrics;
mod middleware;
mod openapi;
mod routes;
mod run_history;
mod security;
mod seldom;
mod state;
mod streams;
mod supervise;
mod ws;
mod zone_reporters;

pub use extract::ActingService;
pub use history::HistoryTier;
pub use listen::{ListenError, RunningServer, Settings, Timeouts, Tls, listen, listen_with_history};
pub use routes::document;
pub use security::client_ip::{ProxyError, check_proxies};
pub use security::cors::{OriginError, check_origins};
