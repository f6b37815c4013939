//! Presence: which connections of an owner are open.
//!
//! Promises:
//! 1. A connection is listed while its record exists. One whose record expired, or was deleted by another program, is not
//!    listed, and its entry is removed when the set is read.
//! 2. Record and entry come and go in one transaction.
//!    With [`owned_by`](Presence::owned_by) a record of another owner, who took the id when the first record had expired,
//!    counts as gone: it is not listed, and not removed with this owner's.
//! 3. An entry never outlives its owner's set: renewing one connection renews the set, too.
//!
//! Two families, the caller's: the records of connections, of any type, and a set of ids for each owner. Both expire, and
//! each write restarts their time. The caller bounds the connections of an owner: a set is read as a whole, so it may
//! have [`REPLY_ELEMENTS_MAX`](emberkeep_hot::limits::REPLY_ELEMENTS_MAX) entries.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::Presence;
//! use emberkeep_schema::{Hash, Id, Name, Set, Utf8, family, partition};
//! use std::sync::Arc;
//!
//! partition! {
//!     /// A galaxy.
//!     pub struct Galaxy(Name) as "galaxy";
//! }
//! family! {
//!     /// A connection.
//!     pub SOCKET = "socket:{galaxy}:{id}" {
//!         kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (id: u32), ttl: refresh(60_000), owner: "gateway"
//!     }
//! }
//! family! {
//!     /// The connections of a player.
//!     pub SOCKETS = "sockets:{galaxy}:{player}" {
//!         kind: Set<Id<u32>>, partition: Galaxy, parts: (player: u32), ttl: refresh(60_000), owner: "gateway"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let scope = Store::new(Arc::new(Embedded::in_memory())).scope(Galaxy(Name::new("m31").expect("a word")));
//! let of_player = || Presence::new(SOCKETS.key(7), |id: &u32| SOCKET.key(*id));
//! let open = scope.transact(move |tx| {
//!     tx.hset(&SOCKET.key(1), &"ip".to_owned(), &"127.0.0.1".to_owned())?;
//!     of_player().join(tx, &1)?;
//!     of_player().living(tx)
//! });
//! assert_eq!(open.await?, [1]);
//! scope.del(&SOCKET.key(1)).await?; // by another program
//! assert!(scope.transact(move |tx| of_player().living(tx)).await?.is_empty());
//! # Ok(())
//! # }
//! ```

use bytes::Bytes;
use emberkeep_hot::command::RawKey;
use emberkeep_hot::command::{Read, Reply};
use emberkeep_hot::limits::READS_TOGETHER_MAX;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Tx};
use emberkeep_schema::{Family, Hash, Id, Key, Part, Partition, Refresh, Set, Utf8};

/// The connections of one owner.
pub struct Presence<I: Family, R: Family, M> {
    entries: Key<I>,
    record: fn(&M) -> Key<R>,
    /// The field of a record that names its owner, and this owner.
    owner: Option<(Bytes, Bytes)>,
}

impl<I, R, M> Presence<I, R, M>
where
    I: Family,
    R: Family<Kind = Hash<Utf8, Utf8>>,
{
    /// The same for records that name their owner in a field.
    pub fn owned_by(self, field: &'static str, owner: String) -> Presence<I, R, M> {
        Presence { owner: Some((Bytes::from_static(field.as_bytes()), Bytes::from(owner))), ..self }
    }
}

impl<P, I, R, M> Presence<I, R, M>
where
    P: Partition,
    I: Family<Partition = P, Kind = Set<Id<M>>, Ttl = Refresh>,
    R: Family<Partition = P, Ttl = Refresh>,
    M: Part + Send + 'static,
{
    /// The connections in an owner's set, and where the record of each is.
    pub fn new(entries: Key<I>, record: fn(&M) -> Key<R>) -> Presence<I, R, M> {
        Presence { entries, record, owner: None }
    }

    /// Adds a connection, whose record the caller writes in the same transaction.
    pub fn join(&self, tx: &mut Tx<'_, P>, connection: &M) -> Result<()> {
        tx.sadd(&self.entries, connection)
    }

    /// Restarts the time of a connection and of its owner's set. `false` = it is not open.
    pub fn renew(&self, tx: &mut Tx<'_, P>, connection: &M) -> Result<bool> {
        let record = (self.record)(connection);
        if !tx.exists(&record)? {
            return Ok(false);
        }
        tx.touch(&record)?;
        // The set may be gone: another program deleted it.
        tx.sadd(&self.entries, connection)?;
        Ok(true)
    }

    /// Removes a connection and its record.
    pub fn leave(&self, tx: &mut Tx<'_, P>, connection: &M) -> Result<()> {
        tx.del(&(self.record)(connection))?;
        tx.srem(&self.entries, connection)
    }

    /// Removes all connections and their records. Returns how many were open.
    pub fn leave_all(&self, tx: &mut Tx<'_, P>) -> Result<usize> {
        let entries = tx.smembers_lossy(&self.entries)?;
        if entries.is_empty() {
            return Ok(0);
        }
        let connections: Vec<M> = entries.into_iter().filter_map(Member::known).collect();
        let (own, _) = self.divide(tx, connections)?;
        own.iter().try_for_each(|connection| tx.del(&(self.record)(connection)))?;
        tx.del(&self.entries)?;
        Ok(own.len())
    }

    /// The connections whose record exists, and is this owner's. Entries of others are removed where the transaction
    /// may write the set; a service that does not own it only leaves them out.
    pub fn living(&self, tx: &mut Tx<'_, P>) -> Result<Vec<M>> {
        let (mut connections, prunes) = (Vec::new(), tx.may_write(&self.entries));
        for entry in tx.smembers_lossy(&self.entries)? {
            match entry {
                Member::Known(connection) => connections.push(connection),
                Member::External(bytes) if prunes => tx.srem_raw(&self.entries, bytes)?,
                Member::External(_) => {}
            }
        }
        let (living, gone) = self.divide(tx, connections)?;
        if prunes && !gone.is_empty() {
            tx.srem_many(&self.entries, &gone)?;
        }
        Ok(living)
    }

    /// Reads the connections of many owners together, for calls on each of them later in the transaction: two round trips
    /// for all.
    pub fn read_together(tx: &mut Tx<'_, P>, owners: &[Self]) -> Result<()> {
        let sets: Vec<_> = owners.iter().map(|owner| (tx.raw_name(&owner.entries), Read::SMembers)).collect();
        tx.raw_read_many(&sets)?;
        let mut records = Vec::new();
        for owner in owners {
            // A set that cannot be read fails the call on its own owner.
            let connections = tx.smembers_lossy(&owner.entries).unwrap_or_default();
            let connections = connections.into_iter().filter_map(Member::known);
            records.extend(connections.map(|connection| owner.ask(tx, &connection)));
        }
        for records in records.chunks(READS_TOGETHER_MAX) {
            tx.raw_read_many(records)?;
        }
        Ok(())
    }

    /// The read that tells whether a connection is open.
    fn ask(&self, tx: &Tx<'_, P>, connection: &M) -> (RawKey, Read) {
        let read = match &self.owner {
            Some((field, _)) => Read::HGet(field.clone()),
            None => Read::Exists,
        };
        (tx.raw_name(&(self.record)(connection)), read)
    }

    /// The open connections of this owner, and the others.
    fn divide(&self, tx: &mut Tx<'_, P>, connections: Vec<M>) -> Result<(Vec<M>, Vec<M>)> {
        let reads: Vec<_> = connections.iter().map(|connection| self.ask(tx, connection)).collect();
        let mut replies = Vec::with_capacity(reads.len());
        for reads in reads.chunks(READS_TOGETHER_MAX) {
            replies.extend(tx.raw_read_many(reads)?);
        }
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (connection, reply) in connections.into_iter().zip(replies) {
            let is_own = match (reply, &self.owner) {
                (Ok(Reply::Blob(value)), Some((_, owner))) => value == *owner,
                // The key has another type: it is no record of a connection.
                (Ok(_) | Err(Error::WrongType { .. }), Some(_)) => false,
                (reply, None) => reply? != Reply::Int(0),
                (Err(error), Some(_)) => return Err(error),
            };
            if is_own { own.push(connection) } else { others.push(connection) }
        }
        Ok((own, others))
    }
}
