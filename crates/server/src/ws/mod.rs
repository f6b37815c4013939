//! Rooms over WebSocket.
//!
//! A room's log and its state are the truth; its channel only wakes. Every process has one [`hub`](hub) per room in which it
//! has sockets: it reads the log from where it is and hands each event to the seats that may know of it. In any doubt (a
//! gap, a log that was set back, an event of a later version, more news than fit) it hands out the state and goes on from its
//! sequence.
//!
//! A socket is a task of its own. Everything that it sends waits in one [`outbox`](outbox), in order and bounded, so that a
//! client which does not keep up never slows its room. Every state that a socket is sent comes from its hub, so that they
//! never go backwards.
//!
//! Nothing here decides anything about a game: commands go to [`Rooms`](emberkeep_games::party::Rooms), and what comes of
//! them comes back through the log, whichever server it was written on.

mod client;
mod command;
mod crowd;
mod ending;
mod entrance;
mod hub;
mod manners;
mod message;
mod outbox;
mod registry;
mod rhythm;
mod seat;
mod socket;
mod view;

pub(crate) use registry::Registry;
pub(crate) use socket::routes;

#[cfg(test)]
mod tests;
