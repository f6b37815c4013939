//! A claim whose TTL is counted from its key.

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
    ttl: days(30) of at,
    writes: conditional,
    owner: "world",
}

fn main() {}
