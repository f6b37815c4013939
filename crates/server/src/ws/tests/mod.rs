//! Hubs and connections without a network: what a room tells its subscribers, and how a connection ends.

pub(super) mod fixture;
mod rates;
mod recovery;
pub(super) mod sessions;
mod subscribers;
