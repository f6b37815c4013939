//! A TTL that ends at once.

use emberkeep_schema::*;

table! {
    /// Who was where.
    pub struct Visit = "visits" {
        pub at: Timestamp,
        pub player_id: i64,
        pub origin: Option<String>,
    }
    partition: (player_id),
    clustering: (at desc),
    ttl: days(0),
    writes: rows,
    owner: "world",
}

fn main() {}
