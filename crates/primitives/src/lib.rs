//! Building blocks for games, one file each, on any engine.
//!
//! **Responsible for**: what several games need inside their transactions, generic over their families. A
//! primitive takes `&mut Tx`, so it commits together with the rest of the caller's transaction.
//!
//! **Not responsible for**: any game's keys or rules, and any engine.

pub mod ballot;
pub mod claim;
pub mod cooldown;
pub mod directory;
pub mod due_queue;
mod encode;
pub mod expiring_group;
pub mod id_pool;
pub mod index;
pub mod leaderboard;
pub mod lease;
pub mod limits;
pub mod log_feed;
pub mod mail;
pub mod once;
pub mod presence;
pub mod rate_limit;
pub mod record;
pub mod sequence;
pub mod ttl;

pub use ballot::Ballot;
pub use claim::Claims;
pub use cooldown::Cooldowns;
pub use directory::Directory;
pub use due_queue::DueQueue;
pub use expiring_group::ExpiringGroup;
pub use id_pool::{IdPool, RestingPool};
pub use index::Indexed;
pub use leaderboard::Leaderboard;
pub use lease::Lease;
pub use mail::Mail;
pub use once::once;
pub use presence::Presence;
pub use rate_limit::RateLimit;
pub use sequence::{Exhausted, IdResult, Search, Sequence};
