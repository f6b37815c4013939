//! A partition over text that could hold anything.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(String) as "realm";
}

fn main() {}
