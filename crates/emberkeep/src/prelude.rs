//! Everything that a game names: `use emberkeep::prelude::*;`.
//!
//! The macros that declare keys and records, the codecs and kinds, the store and its errors. Primitives are not in it:
//! a game names those that it uses.

#[cfg(feature = "history")]
#[doc(inline)]
pub use crate::open::OpenHistory;
#[doc(inline)]
pub use crate::open::{OpenError, OpenStore};
#[doc(inline)]
pub use emberkeep_hot::command::{LexBound, ScoreBound, ZSlice};
#[doc(inline)]
pub use emberkeep_hot::embedded::Embedded;
#[doc(inline)]
pub use emberkeep_hot::store::{LogItem, LogPosition};
#[doc(inline)]
pub use emberkeep_hot::{Error, ReadTx, Scope, Store, Tx};
#[cfg(feature = "redis")]
#[doc(inline)]
pub use emberkeep_hot_redis::RedisEngine;
#[doc(inline)]
pub use emberkeep_schema::{
    Array, Bool, Channel, Codec, Family, Float, Grant, Hash, Id, Json, Key, List, Log, Name, Newest, Number,
    Partition, Raw, RefuseAbove, Schema, Service, Set, SortedSet, Text, Utf8, family, part, partition,
    record, schema, service,
};
