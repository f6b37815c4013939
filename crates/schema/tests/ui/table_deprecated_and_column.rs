//! A deprecated column that the row still has.

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
    ttl: days(30) of at,
    deprecated: (origin(String, since "2026-01-31")),
    writes: rows,
    owner: "world",
}

fn main() {}
