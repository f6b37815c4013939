//! A field of a record with its name in another form.

use emberkeep_schema::*;

record! {
    /// A wallet.
    pub struct Wallet {
        /// Gold.
        pub gold: u64 = "gold",
    }
}

fn main() {}
