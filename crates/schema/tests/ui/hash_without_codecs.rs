//! A hash of plain types.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
part! {
    /// A player.
    pub struct PlayerId(u32);
}
family! {
    /// The bids on an item.
    pub BIDS = "bids:{realm}:{item}" {
        kind: Hash<PlayerId, i64>,
        partition: Realm,
        parts: (item: u32),
        ttl: persistent,
        owner: "bank",
    }
}

fn main() {}
