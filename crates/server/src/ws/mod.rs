//! Rooms over WebSocket.
//!
//! A room's log and its state are the source of truth; its pub/sub channel only wakes. Every process has one
//! [`hub`] per room with local connections. The hub reads the log from its position and sends each event to
//! the subscribers that may see it. If the log cannot be followed (a gap, a rollback, an event of a later
//! version, a full queue), it sends the state and goes on from the state's sequence.
//!
//! A connection is a task: [`connection`] → [`join`] → [`session`]. All its messages pass one bounded
//! [`send_queue`], so that a slow client never slows down its room. Every state comes from the hub, so that
//! states never go backwards.
//!
//! Nothing here decides about the game: client messages go to [`Rooms`](emberkeep_games::party::Rooms), and
//! their effects come back through the log, also from other servers.

mod client_message;
mod close;
mod connection;
pub(crate) mod galaxy;
mod hub;
mod hubs;
mod join;
mod send_queue;
mod server_message;
mod session;
mod state_cache;
mod subscriber;
mod timing;

pub(crate) use close::CloseReason;
pub(crate) use connection::{Gateway, serve};
pub(crate) use hubs::Hubs;
pub(crate) use timing::Timing;

#[cfg(test)]
mod tests;
