//! Events without a time.

use emberkeep_schema::*;

table! {
    /// Who was where.
    pub struct Visit = "visits" {
        pub at: Timestamp,
        pub player_id: i64,
        pub zone_id: i32,
        pub address: std::net::IpAddr,
        pub origin: Option<String>,
    }
    partition: (player_id),
    clustering: (at desc),
    ttl: persistent,
    writes: events,
    owner: "world",
}

fn main() {}
