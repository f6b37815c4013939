//! A key column that a row may lack.

use emberkeep_schema::*;

table! {
    /// Who was where.
    pub struct Visit = "visits" {
        pub at: Timestamp,
        pub player_id: i64,
        pub origin: Option<String>,
    }
    partition: (origin),
    clustering: (at desc),
    ttl: days(30) of at,
    writes: rows,
    owner: "world",
}

fn main() {}
