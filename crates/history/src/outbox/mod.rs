//! The outbox: an event log of hot state, drained into history.
//!
//! A transaction changes state and appends an event in one commit. A [`Consumer`] reads the log, projects each event
//! into rows and amounts, stores them and then trims the log. Each event counts once, whatever crashes.
//!
#![doc = include_str!("../../docs/outbox.md")]

mod claims;
mod consumer;
mod consumers;
mod error;
mod lag;
mod log;
#[cfg(test)]
mod model;
mod plan;
mod relay;
#[cfg(test)]
mod tests;

pub use crate::delivery::ConsumerStats;
pub use consumer::{Consumer, Drained};
pub use consumers::Consumers;
pub use emberkeep_primitives::log_feed::FeedStats;
pub use error::DrainError;
pub use lag::LogLag;
