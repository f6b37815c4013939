//! A bucket of the name of a column.

use emberkeep_schema::*;

table! {
    /// Who was where.
    pub struct Visit = "visits" {
        pub at: Timestamp,
        pub player_id: i64,
        pub origin: Option<String>,
    }
    partition: (at = day(at)),
    clustering: (at desc),
    ttl: days(30) of at,
    writes: rows,
    owner: "world",
}

fn main() {}
