//! A name that CQL would need quotes for.

use emberkeep_schema::*;

table! {
    /// Who was where.
    pub struct Visit = "Visits" {
        pub at: Timestamp,
        pub player_id: i64,
        pub origin: Option<String>,
    }
    partition: (player_id),
    clustering: (at desc),
    ttl: days(30) of at,
    writes: rows,
    owner: "world",
}

fn main() {}
