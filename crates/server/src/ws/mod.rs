//! Rooms over WebSocket.
//!
//! A room's log is the truth; its channel only wakes. Every process has one [`hub`](hub) per room in which it has sockets:
//! it reads the log from where it is and hands each event to the seats that may know of it. A socket is a task of its own with
//! a bounded queue: one that does not keep up is closed, and never slows its room.
//!
//! Nothing here decides anything about a game: commands go to [`Rooms`](emberkeep_games::party::Rooms), and what comes of
//! them comes back through the log, whichever server it was written on.

mod command;
mod hub;
mod message;
mod registry;
mod seat;
mod socket;

pub(crate) use registry::Registry;
pub(crate) use socket::routes;
