//! A TTL beyond the limit of CQL.

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
    ttl: days(7_301) of at,
    writes: events,
    owner: "world",
}

fn main() {}
