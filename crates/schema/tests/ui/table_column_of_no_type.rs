//! A column of a type that is not stored.

use emberkeep_schema::*;

table! {
    /// Who was where.
    pub struct Visit = "visits" {
        pub at: Timestamp,
        pub player_id: i64,
        pub origin: Option<String>,
        pub speed: u64,
    }
    partition: (player_id),
    clustering: (at desc),
    ttl: days(30) of at,
    writes: rows,
    owner: "world",
}

fn main() {}
