//! Hubs and connections without a network: what a room tells its seats, and how a connection ends.

mod connections;
mod doubts;
mod rates;
mod seats;
mod table;
