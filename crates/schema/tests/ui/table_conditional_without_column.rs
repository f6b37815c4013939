//! A claim that has nothing to compare.

use emberkeep_schema::*;

table! {
    /// Names that are taken.
    pub struct Taken = "taken" {
        pub name: String,
        pub owner: Option<i64>,
    }
    partition: (name),
    clustering: (),
    ttl: persistent,
    writes: conditional,
    owner: "world",
}

fn main() {}
