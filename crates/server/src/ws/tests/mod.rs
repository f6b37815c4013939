//! Hubs and connections without a network: what a room tells its subscribers, and how a connection ends.

mod fixture;
mod rates;
mod recovery;
mod sessions;
mod subscribers;
