//! Which reactor occupies which spot of a field.
//!
//! A creation must see every living reactor of its field, including those that an external service created
//! with the documented keys alone. Three designs were considered:
//!
//! * **Read every record of the field's index.** Correct, but a field of fifty reactors costs fifty records
//!   of one or two KB, once for the read and once for the validation. Every hit in the field makes the
//!   creation conflict.
//! * **A key per spot that names its reactor.** Fast, but it misses reactors of external services.
//! * **The index, and one hash with the spot of each reactor** (`ember:reactor-spots:…`). This is the chosen
//!   design. Both are prefetched and read in the transaction, together a few KB. If the hash lacks a member
//!   of the index, an external service created that reactor: its record is read once and entered into the
//!   hash. A member that the hash puts on the requested spot is read too. All others need no read.
//!
//! So the hash alone never refuses a creation; only a record that was read in the transaction does. The hash
//! can hide a reactor whose position an external client changed under the same id. The game moves no
//! reactors, and the sweep corrects the hash. Entries that the index lacks are dropped here.
//!
//! A hash that is lost, corrupt or too large is removed, and every record is read once.

use super::destroy::{leave_all, leave_field};
use crate::reactors::error::{Error, Result};
use crate::reactors::limits::FIELD_REACTORS_MAX;
use crate::reactors::model::{Reactor, ReactorId, Spot};
use crate::reactors::schema::{REACTOR, field_key, spots_key};
use crate::type_guard::TypeGuard;
use crate::world::{Field, Tenant};
use emberkeep_hot::command::Read;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_schema::Key;
use std::collections::{BTreeMap, BTreeSet};

type Transaction<'a> = Tx<'a, Tenant>;

/// A scope that prefetches what [`claim`] reads.
pub(super) fn prefetched(scope: Scope<Tenant>, field: &Field) -> Scope<Tenant> {
    scope.prefetch(&field_key(field), Read::SMembers).prefetch(&spots_key(field), Read::HGetAll)
}

/// Checks that the spot is free and that the field is not full.
pub(super) fn claim(tx: &mut Transaction<'_>, field: &Field, spot: &Spot) -> Result<()> {
    let members = members(tx, field)?;
    let hints = hints(tx, field)?;
    for id in hints.keys().filter(|id| !members.contains(id)) {
        tx.hdel(&spots_key(field), id)?;
    }
    let to_read = |id: &ReactorId| hints.get(id).is_none_or(|stands| stands == spot);
    let to_read: Vec<ReactorId> = members.iter().copied().filter(to_read).collect();
    let gone = check_records(tx, field, spot, &to_read, &hints)?;
    if members.len() - gone >= FIELD_REACTORS_MAX {
        return Err(Error::FieldFull { max: FIELD_REACTORS_MAX });
    }
    Ok(())
}

/// Enters a reactor into the hash.
pub(super) fn enter(tx: &mut Transaction<'_>, id: &ReactorId, reactor: &Reactor) -> hot::Result<()> {
    tx.hset(&spots_key(&reactor.field()), id, &reactor.spot())
}

/// Removes a reactor from the hash.
pub(super) fn leave(
    tx: &mut Transaction<'_>,
    id: &ReactorId,
    field: &Field,
    guard: TypeGuard,
) -> hot::Result<()> {
    if guard.allows(|| tx.hlen(&spots_key(field)))? {
        tx.hdel(&spots_key(field), id)?;
    }
    Ok(())
}

/// The members of the field's index. Members that are not ids are removed. A set that is too large to read is
/// a full field.
fn members(tx: &mut Transaction<'_>, field: &Field) -> Result<BTreeSet<ReactorId>> {
    let mut known = BTreeSet::new();
    let members = match tx.smembers_lossy(&field_key(field)) {
        Err(hot::Error::TooLarge { .. }) => return Err(Error::FieldFull { max: FIELD_REACTORS_MAX }),
        members => members?,
    };
    for member in members {
        match member {
            Member::Known(id) => drop(known.insert(id)),
            Member::External(bytes) => tx.srem_raw(&field_key(field), bytes)?,
        }
    }
    Ok(known)
}

/// The hash of the field. A corrupt one is removed.
pub(super) fn hints(tx: &mut Transaction<'_>, field: &Field) -> hot::Result<BTreeMap<ReactorId, Spot>> {
    match tx.hgetall(&spots_key(field)) {
        Ok(hints) => Ok(hints.into_iter().collect()),
        Err(error) if error.is_corrupt() => {
            tx.del(&spots_key(field))?;
            Ok(BTreeMap::new())
        }
        Err(error) => Err(error),
    }
}

/// Reads records. Fails if one of them occupies the spot; otherwise returns how many of the ids are stale.
///
/// A corrupt record occupies the spot that the hash has for it, or none. It can be neither hit nor shown, and
/// one corrupt value must not close a whole field.
fn check_records(
    tx: &mut Transaction<'_>,
    field: &Field,
    spot: &Spot,
    ids: &[ReactorId],
    hints: &BTreeMap<ReactorId, Spot>,
) -> Result<usize> {
    let keys: Vec<Key<REACTOR>> = ids.iter().map(|id| REACTOR.key(id)).collect();
    let mut gone = 0;
    for (id, found) in ids.iter().zip(tx.get_each(&keys)?) {
        match found {
            Ok(Some(reactor)) if reactor.is_of(tx.partition()) && reactor.field() == *field => {
                if reactor.spot() == *spot {
                    return Err(Error::SpotTaken { id: *id });
                }
                enter(tx, id, &reactor)?;
            }
            Ok(elsewhere) => {
                gone += 1;
                leave_field(tx, *id, field, TypeGuard::Off)?;
                if elsewhere.is_none() {
                    leave_all(tx, *id, TypeGuard::Off)?;
                }
            }
            Err(error) if hints.contains_key(id) => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(gone)
}
