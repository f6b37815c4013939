//! A field of a record without its name in JSON.

use emberkeep_schema::*;

record! {
    /// A wallet.
    pub struct Wallet {
        /// Gold.
        pub gold: u64 => "gold",
        /// Items.
        pub items: Vec<u32>,
    }
}

fn main() {}
