//! A lookup that would read all days.

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
    partition: (day_bucket = day(at)),
    clustering: (at desc, player_id asc),
    ttl: days(30) of at,
    lookups: (by_zone(zone_id)),
    writes: events,
    owner: "world",
}

fn main() {}
