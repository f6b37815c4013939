//! An index: a set of the ids of records that belong together. Reading it never returns a stale entry.
//!
//! Promises:
//! 1. A record and its entry are written and removed in one transaction ([`enter`] and [`leave`] beside the
//!    write).
//! 2. [`list`] returns only existing records that name this index as theirs and, if records name it
//!    ([`Indexed::partition`]), this partition. Stale entries (the record expired, or an external client
//!    deleted it) are removed in a transaction that reads the record again, because ids are reused.
//! 3. A record that cannot be decoded does not hide the others: it is reported by its key, and its entry
//!    stays.
//! 4. A [`Sweeper`] does the same for indexes that are seldom read, and enters records that are in no index.
//!    It works in bounded turns and never blocks other callers.
//!
//! Keys, both the caller's: the record (a string), and the index (a set of the ids in the records' keys).
//! [`Indexed`] links them.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::index::{self, Indexed};
//! use emberkeep_schema::{Id, Json, Key, Set, Text, family, partition, record};
//!
//! partition! {
//!     /// One galaxy.
//!     pub struct Galaxy = "galaxy";
//! }
//! record! {
//!     /// A ship.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct Ship {
//!         /// Where it is.
//!         pub system: u32 => "system",
//!     }
//! }
//! family! {
//!     /// Ships.
//!     pub SHIP = "ship:{id}" {
//!         kind: Text<Json<Ship>>, partition: Galaxy, parts: (id: u32), ttl: persistent, owner: "ships"
//!     }
//! }
//! family! {
//!     /// The ships of a system.
//!     pub SYSTEM = "system:{system}:ships" {
//!         kind: Set<Id<u32>>, partition: Galaxy, parts: (system: u32), ttl: persistent, owner: "ships",
//!         index_of: SHIP,
//!     }
//! }
//!
//! struct BySystem;
//!
//! impl Indexed for BySystem {
//!     type Partition = Galaxy;
//!     type Member = u32;
//!     type Value = Ship;
//!     type Codec = Json<Ship>;
//!     type Record = SHIP;
//!     type Index = SYSTEM;
//!
//!     fn record(id: &u32) -> Key<SHIP> {
//!         SHIP.key(id)
//!     }
//!     fn member(key: &Key<SHIP>) -> u32 {
//!         SHIP.parts(key).0
//!     }
//!     fn home(ship: &Ship) -> Key<SYSTEM> {
//!         SYSTEM.key(ship.system)
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let scope = Store::new(std::sync::Arc::new(Embedded::in_memory())).scope(Galaxy);
//! let ship = Ship::new(3);
//! for id in [7, 8] {
//!     let ship = ship.clone();
//!     let build = scope.transact(move |tx| {
//!         tx.put(&SHIP.key(id), &ship)?;
//!         index::enter::<BySystem>(tx, &id, &ship)
//!     });
//!     build.await?;
//! }
//! // An external client deletes a ship and forgets the index.
//! scope.del(&SHIP.key(7)).await?;
//! let listing = index::list::<BySystem>(&scope, &SYSTEM.key(3)).await?;
//! assert_eq!((listing.living, listing.pruned), (vec![ship], 1));
//! # Ok(())
//! # }
//! ```

mod list;
mod sweep;

pub use list::{IndexPage, Listing, list, living, page};
pub use sweep::{SweepReport, Sweeper, rest};

use emberkeep_hot::{Result, Scope, Tx};
use emberkeep_schema::{Automatic, Codec, Family, Id, Key, Part, Partition, Piece, Set, Text, Topology};

/// Links records to their index. A game implements it on a marker type, once for each index.
pub trait Indexed: Send + Sync + 'static {
    /// The partition of both.
    type Partition: Partition;
    /// The id of a record.
    type Member: Part + Clone + Ord + Send + Sync + 'static;
    /// A record as its codec reads it.
    type Value: Send + 'static;
    /// The codec of a record.
    type Codec: Codec<Value = Self::Value>;
    /// The family of the records.
    type Record: Family<Partition = Self::Partition, Kind = Text<Self::Codec>>;
    /// The family of the index: its members are the ids of records.
    type Index: Family<Partition = Self::Partition, Kind = Set<Id<Self::Member>>, Ttl: Automatic>;

    /// The key of a record.
    fn record(member: &Self::Member) -> Key<Self::Record>;

    /// The id in a record's key.
    fn member(record: &Key<Self::Record>) -> Self::Member;

    /// The index in which a record belongs.
    fn home(value: &Self::Value) -> Key<Self::Index>;

    /// The partition of a record whose key does not contain it. An index whose key contains the partition
    /// holds only records of that one.
    fn partition(value: &Self::Value) -> Option<Self::Partition> {
        let _ = value;
        None
    }

    /// Any partition, if keys on a single node do not contain it: all partitions reach the same keys.
    fn anywhere() -> Option<Self::Partition> {
        None
    }
}

/// The partition of an index; `None` if its key is shared by all of them.
fn owner<X: Indexed>(scope: &Scope<X::Partition>) -> Option<X::Partition> {
    let in_key = X::Index::DECLARATION.pieces.contains(&Piece::Partition);
    (in_key || scope.store().key_layout().topology() == Topology::Cluster).then(|| scope.partition().clone())
}

/// Whether a record names this index as its own.
fn belongs_to<X: Indexed>(value: &X::Value, index: &Key<X::Index>, owner: Option<&X::Partition>) -> bool {
    let is_foreign = || owner.zip(X::partition(value)).is_some_and(|(owner, own)| *owner != own);
    X::home(value) == *index && !is_foreign()
}

/// Enters a record into its index. Call it in the transaction that creates the record.
pub fn enter<X: Indexed>(tx: &mut Tx<'_, X::Partition>, member: &X::Member, value: &X::Value) -> Result<()> {
    tx.sadd(&X::home(value), member)
}

/// Removes a record from its index. Call it in the transaction that removes the record.
pub fn leave<X: Indexed>(tx: &mut Tx<'_, X::Partition>, member: &X::Member, value: &X::Value) -> Result<()> {
    tx.srem(&X::home(value), member)
}
