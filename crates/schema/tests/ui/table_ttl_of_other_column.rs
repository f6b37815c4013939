//! A TTL of a column that is not a time of the key.

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
    ttl: days(30) of player_id,
    writes: rows,
    owner: "world",
}

fn main() {}
