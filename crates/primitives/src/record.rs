//! A record: one JSON object in a string, read and written whole.
//!
//! Promises:
//! 1. Unknown fields that external clients wrote are kept byte by byte (see
//!    [`record!`](emberkeep_schema::record!)).
//! 2. A list that a Lua script wrote as `{}` is read as an empty list and written back as `[]`
//!    (see [`Array`](emberkeep_schema::Array)).
//! 3. A record that is not JSON of its type is [`Corrupt`](emberkeep_hot::Error::Corrupt), with its key in
//!    the error. [`update`] and [`create`] do not overwrite it.
//! 4. A change applies to the record as stored at the commit: of two concurrent changes, none is lost.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::record::{self, Change};
//! use emberkeep_schema::{Json, Text, family, partition, record};
//!
//! partition! {
//!     /// One galaxy.
//!     pub struct Galaxy = "galaxy";
//! }
//! record! {
//!     /// A ship.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct Ship {
//!         /// Fuel left.
//!         pub fuel: u32 => "fuel",
//!     }
//! }
//! family! {
//!     /// Ships.
//!     pub SHIP = "ship:{id}" {
//!         kind: Text<Json<Ship>>, partition: Galaxy, parts: (id: u32), ttl: persistent, owner: "ships"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let scope = Store::new(std::sync::Arc::new(Embedded::in_memory())).scope(Galaxy);
//! let ship = Ship::new(10);
//! let fresh = ship.clone();
//! assert!(scope.transact(move |tx| record::create(tx, &SHIP.key(7), &fresh)).await?);
//! assert!(!scope.transact(move |tx| record::create(tx, &SHIP.key(7), &ship)).await?);
//! let burnt = scope.transact(|tx| {
//!     record::update(tx, &SHIP.key(7), |ship| {
//!         if ship.fuel < 4 {
//!             return Ok(Change::Leave(false));
//!         }
//!         ship.fuel -= 4;
//!         Ok::<_, Error>(Change::Put(true))
//!     })
//! });
//! assert_eq!(burnt.await?, Some(true));
//! assert_eq!(scope.get(&SHIP.key(7)).await?.map(|ship| ship.fuel), Some(6));
//! # Ok(())
//! # }
//! ```

use emberkeep_hot::{Error, Result, Tx};
use emberkeep_schema::{Automatic, Codec, Family, Key, Partition, Text};

/// What a rule did to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<T> {
    /// It changed: write it.
    Put(T),
    /// It did not change: write nothing.
    Leave(T),
}

/// Writes a record if there is none. `false` = it exists already and is not changed.
pub fn create<P, F, C>(tx: &mut Tx<'_, P>, key: &Key<F>, value: &C::Value) -> Result<bool>
where
    P: Partition,
    F: Family<Partition = P, Kind = Text<C>>,
    F::Ttl: Automatic,
    C: Codec,
{
    if tx.exists(key)? {
        return Ok(false);
    }
    tx.put(key, value)?;
    Ok(true)
}

/// Applies a rule to a record. `None` = there is no such record.
///
/// The rule may fail, and may leave the record as it is. [`Tx::update`] is the shorter way for a change that
/// is always written.
pub fn update<P, F, C, T, E>(
    tx: &mut Tx<'_, P>,
    key: &Key<F>,
    rule: impl FnOnce(&mut C::Value) -> Result<Change<T>, E>,
) -> Result<Option<T>, E>
where
    P: Partition,
    F: Family<Partition = P, Kind = Text<C>>,
    F::Ttl: Automatic,
    C: Codec,
    E: From<Error>,
{
    let Some(mut value) = tx.get(key)? else { return Ok(None) };
    match rule(&mut value)? {
        Change::Put(result) => {
            tx.put(key, &value)?;
            Ok(Some(result))
        }
        Change::Leave(result) => Ok(Some(result)),
    }
}
