//! Who stands where in a field, as a creation must know it.
//!
//! A creation must see every living reactor of its field, also those that an external service made by the document's words
//! alone. Three ways were weighed:
//!
//! * **Read every record of the field's index.** Right, but a field of fifty reactors costs fifty records of one or
//!   two KB, once to read and once more to validate them in the commit, and every hit in the field makes the creation
//!   stale.
//! * **A key per spot that names its reactor.** Fast, but blind to what others made.
//! * **The index, and one hash that says of each reactor where it stands** (`ember:reactor-spots:…`). This one. Both
//!   are read in the transaction, together some KB, and prefetched before the body runs. A member of the index that the hash
//!   does not know is external: its record is read, once, and the hash remembers. A member that the hash puts on the
//!   wanted spot is looked at too. All others need no look.
//!
//! So a hint alone never refuses: only a record that was read in the transaction does. What a hint may hide is a reactor
//! whose place an external client changed under the same id; nobody in the game moves a reactor, and the sweep sets it
//! right. Entries of the hash that the index does not have are dropped here.
//!
//! A hash that is lost, corrupt or too large is removed, and everything is read once.

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

/// The scope, told what [`claim`] reads.
pub(super) fn prefetched(scope: Scope<Tenant>, field: &Field) -> Scope<Tenant> {
    scope.prefetch(&field_key(field), Read::SMembers).prefetch(&spots_key(field), Read::HGetAll)
}

/// Makes sure that nobody stands on a spot, and that the field takes another one.
pub(super) fn claim(tx: &mut Transaction<'_>, field: &Field, spot: &Spot) -> Result<()> {
    let members = members(tx, field)?;
    let hints = hints(tx, field)?;
    for id in hints.keys().filter(|id| !members.contains(id)) {
        tx.hdel(&spots_key(field), id)?;
    }
    let unsure = |id: &ReactorId| hints.get(id).is_none_or(|stands| stands == spot);
    let unsure: Vec<ReactorId> = members.iter().copied().filter(unsure).collect();
    let gone = look(tx, field, spot, &unsure, &hints)?;
    if members.len() - gone >= FIELD_REACTORS_MAX {
        return Err(Error::FieldFull { max: FIELD_REACTORS_MAX });
    }
    Ok(())
}

/// Remembers where a reactor stands.
pub(super) fn enter(tx: &mut Transaction<'_>, id: &ReactorId, reactor: &Reactor) -> hot::Result<()> {
    tx.hset(&spots_key(&reactor.field()), id, &reactor.spot())
}

/// Forgets where a reactor stood.
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

/// The field's index, without what is no id at all. More entries than a transaction reads are more than a field takes.
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

/// What is remembered of the field.
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

/// Looks at records: an error if one of them stands on the spot, else how many of the ids are not here at all.
///
/// A record that cannot be read stands on the spot that is remembered of it, and nowhere if nothing is: it can be
/// neither hit nor shown, and one corrupt value must not close a whole field.
fn look(
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
