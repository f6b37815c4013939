//! An expiring group: keys that share one deadline and are removed together, without a scan of the keyspace.
//!
//! Promises:
//! 1. After [`extend`](ExpiringGroup::extend) every key that joined expires at the same millisecond,
//!    including one that an external client wrote again without a deadline.
//! 2. [`dissolve`](ExpiringGroup::dissolve) removes every key that joined, in one transaction.
//! 3. External clients can write to the roster. A name outside the group's families or outside the
//!    transaction's partition is dropped; its key is neither extended nor deleted.
//!
//! Keys: the roster, the caller's, a set of the names of the group's keys. A key may join before or after it
//! is written, and more than once. The families of the members declare `ttl: given`; logs can be members
//! too.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::{ExpiringGroup, expiring_group::member};
//! use emberkeep_schema::{Name, Raw, Set, Text, Utf8, family, partition};
//!
//! partition! {
//!     /// One table in a tavern.
//!     pub struct Table(Name) as "table";
//! }
//! family! {
//!     /// What a customer ordered.
//!     pub ORDER = "order:{table}:{guest}" {
//!         kind: Text<Utf8>, partition: Table, parts: (guest: u32), ttl: given, owner: "tavern"
//!     }
//! }
//! family! {
//!     /// All keys of a table.
//!     pub ROSTER = "ember:table:{table}" {
//!         kind: Set<Raw>, partition: Table, parts: (), ttl: given, owner: "tavern"
//!     }
//! }
//! fn table() -> ExpiringGroup<ROSTER> {
//!     ExpiringGroup::new(ROSTER.key(), &[member::<ORDER>])
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
//! let until = store.now().await? + 60_000;
//! let scope = store.scope(Table(Name::new("corner").expect("a word")));
//! scope.transact(move |tx| {
//!     tx.put_until(&ORDER.key(1), &"soup".to_owned(), until)?;
//!     table().join(tx, &ORDER.key(1), until)?;
//!     table().join(tx, &ORDER.key(2), until)
//! }).await?;
//! scope.transact(move |tx| table().extend(tx, until + 60_000)).await?;
//! assert_eq!(scope.deadline_of(&ORDER.key(1)).await?, Some(until + 60_000));
//! assert_eq!(scope.deadline_of(&ROSTER.key()).await?, Some(until + 60_000));
//! scope.transact(|tx| table().dissolve(tx)).await?;
//! assert!(!scope.exists(&ORDER.key(1)).await?);
//! # Ok(())
//! # }
//! ```

use emberkeep_hot::command::Write;
use emberkeep_hot::{Result, Tx};
use emberkeep_schema::{Declaration, Family, Given, Key, Partition, Raw, Set};

/// The family of a name, if it is that of a key of one family in the transaction's partition, see [`member`].
pub type MemberFamily<P> = fn(&Tx<'_, P>, &[u8]) -> Option<&'static Declaration>;

/// Allows keys of `F` in a group.
pub fn member<F: Family<Ttl = Given>>(
    tx: &Tx<'_, F::Partition>,
    name: &[u8],
) -> Option<&'static Declaration> {
    tx.owns::<F>(name).then_some(F::DECLARATION)
}

/// The keys of one group.
pub struct ExpiringGroup<R: Family> {
    roster: Key<R>,
    families: Vec<MemberFamily<R::Partition>>,
}

impl<P, R> ExpiringGroup<R>
where
    P: Partition,
    R: Family<Partition = P, Kind = Set<Raw>, Ttl = Given>,
{
    /// The group of a roster, with keys of these families.
    pub fn new(roster: Key<R>, families: &[MemberFamily<P>]) -> Self {
        ExpiringGroup { roster, families: families.to_vec() }
    }

    /// Adds a key, whether or not it exists yet. `until_ms` is the deadline of the group.
    pub fn join<F>(&self, tx: &mut Tx<'_, P>, key: &Key<F>, until_ms: i64) -> Result<()>
    where
        F: Family<Partition = P, Ttl = Given>,
    {
        let name = tx.raw_name(key).to_vec();
        tx.sadd_until(&self.roster, &name, until_ms)
    }

    /// Removes a key and its name.
    pub fn remove<F>(&self, tx: &mut Tx<'_, P>, key: &Key<F>) -> Result<()>
    where
        F: Family<Partition = P, Ttl = Given>,
    {
        let name = tx.raw_name(key).to_vec();
        tx.del(key)?;
        tx.srem(&self.roster, &name)
    }

    /// Sets the deadline of all keys of the group and returns how many joined. 0 = the roster was lost.
    pub fn extend(&self, tx: &mut Tx<'_, P>, until_ms: i64) -> Result<usize> {
        let names = self.names(tx)?;
        let joined = names.len();
        for (family, name) in names {
            tx.raw_write_of(family, name.into(), Write::ExpireAt(until_ms))?;
        }
        tx.expire_at(&self.roster, until_ms)?;
        Ok(joined)
    }

    /// Removes all keys of the group and the roster.
    pub fn dissolve(&self, tx: &mut Tx<'_, P>) -> Result<()> {
        for (family, name) in self.names(tx)? {
            tx.raw_write_of(family, name.into(), Write::Del)?;
        }
        tx.del(&self.roster)
    }

    /// The names that belong to the group, each with its family; others are removed from the roster.
    fn names(&self, tx: &mut Tx<'_, P>) -> Result<Vec<(&'static Declaration, Vec<u8>)>> {
        let mut own = Vec::new();
        for name in tx.smembers(&self.roster)? {
            match self.families.iter().find_map(|family| family(&*tx, &name)) {
                Some(family) => own.push((family, name)),
                None => tx.srem(&self.roster, &name)?,
            }
        }
        Ok(own)
    }
}
