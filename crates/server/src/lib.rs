//! Games over HTTP and WebSocket.
//!
//! **Responsible for**: routes, their document, who may call them, what is counted, sockets, listening and ending. The only
//! crate that knows HTTP.
//!
//! **Not responsible for**: any rule of a game, any engine by name, reading settings from anywhere.
//!
//! The order in which a request passes: `observe` (request id, counters, log line) → `local` (only without tokens: this
//! machine) → `origins` (external pages) → `access` (token and role) → `room_codes` (guesses of room codes) →
//! `extract` (path, query, body, within the bounds of `bodies`) → a handler in `routes` → the game. What a body still has when its
//! request is answered is read by `drain`. Whatever goes wrong on the way becomes a [`problem::Problem`], in one shape.

mod access;
mod app;
pub mod auth;
mod bodies;
mod brake;
mod census;
mod drain;
mod extract;
mod guard;
mod headers;
pub mod limits;
mod listen;
mod local;
mod metrics;
mod observe;
mod origins;
mod pace;
pub mod problem;
mod room_codes;
mod routes;
mod supervise;
mod throttle;
mod ws;

pub use listen::{ListenError, Listening, Settings, Tls, Waits, listen};
pub use origins::OriginError;
pub use routes::document;
