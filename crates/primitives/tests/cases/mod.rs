//! What the primitives promise, on any store: each case takes a store that others may be using, and a realm
//! of its own.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

pub mod ballot;
pub mod claim;
pub mod cooldown;
pub mod directory;
pub mod directory_model;
pub mod due_queue;
pub mod expiring_group;
pub mod id_pool;
pub mod index;
pub mod leaderboard;
pub mod lease;
pub mod log_feed;
pub mod mail;
pub mod once;
pub mod presence;
pub mod rate_limit;
pub mod record;

use emberkeep_schema::partition;
use uuid::Uuid;

partition! {
    /// What a case lives in.
    #[derive(Copy)]
    pub struct Realm(Uuid) as "realm";
}

impl Realm {
    /// One that no other test uses.
    pub fn new() -> Realm {
        Realm(Uuid::new_v4())
    }
}
