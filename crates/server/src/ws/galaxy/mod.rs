//! The stream of Galaxy over WebSocket: whole ticks of a star system.
//!
//! One task per process, the [`feeds`], follows the present tick while there are watchers. Of each watched system it makes a
//! [`frame`]: the tick as a whole, and what changed since the frame before, each encoded at most once and shared by all
//! watchers. A connection is a task, the [`session`], with one place for a frame: who reads too slowly skips to the newest,
//! and is sent it as a whole, because a delta applies only to the frame before it.
//!
//! The [`gateway`] is this process's part of presence: which players are connected here, and its lease.

mod authenticate;
mod feeds;
mod frame;
mod gateway;
mod messages;
mod session;

pub(crate) use feeds::Feeds;
pub(crate) use gateway::GalaxyGateway;
pub(crate) use session::{GalaxyClient, serve};

#[cfg(test)]
mod tests;
