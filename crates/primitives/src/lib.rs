//! Building blocks of games, one file each, on any engine.
//!
//! **Responsible for**: what several games need inside their steps, generic over their families. A primitive
//! takes `&mut Tx`, so it commits together with whatever else the caller's step does.
//!
//! **Not responsible for**: any game's keys or rules, and any engine.

pub mod id_pool;

pub use id_pool::{Exhausted, IdPool, Search, Taken};
