//! Removal of monsters: atomic, and reported to one caller.

use super::cooldowns::cooldowns;
use super::*;
use crate::monsters::limits::{MARKERS_PER_TRANSACTION, MONSTERS_PER_TRANSACTION};
use crate::type_guard::{self, TypeGuard};
use crate::world::Field;
use emberkeep_hot::command::{Read, ZSlice};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_primitives::index;
use emberkeep_primitives::limits::CLEARED_PER_TRANSACTION_MAX;
use std::collections::BTreeSet;

/// The result of emptying a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldDestruction {
    /// The monsters that this call removed, as they were last.
    pub monsters: Vec<Monster>,
    /// The ids of their keys, in the same order. The record of an external client may contain another id.
    pub ids: Vec<MonsterId>,
    /// Cooldowns that were removed with them.
    pub cooldowns: usize,
    /// Errors for corrupt records, each with its key. Their field is unknown, so they are unchanged.
    pub corrupt: Vec<hot::Error>,
    /// Why the call stopped early. Call again for the rest. It is not an `Err`, because the removed monsters
    /// must not be lost.
    pub stopped: Option<Error>,
}

/// What a transaction did to one monster.
enum Removal {
    /// It was removed, with so many cooldowns.
    Done(Box<Monster>, usize),
    /// It does not exist, or is not in the field.
    Absent,
    /// It has more cooldowns than one transaction clears. Another transaction must continue.
    NotYet,
}

impl Monsters {
    /// Removes a monster, dead or alive: record, index, cooldowns, drop timer, deadlines and id in one
    /// transaction. `true` for the one caller that removed it.
    ///
    /// A key of a wrong type does not prevent a removal. It is left as it is, and nothing is removed from it.
    /// An id that cannot be released for that reason is used again when the counter has wrapped.
    pub fn remove(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<bool>> {
        Box::pin(async move { Ok(self.take(tenant, id).await?.is_some()) })
    }

    /// Removes a monster like [`remove`](Monsters::remove), and gives it as it was at its end: who hurt it,
    /// what weighed on it. Ids are used again, so only the removal itself can tell whose end it was.
    pub fn take(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<Option<Monster>>> {
        Box::pin(async move {
            let scope = prefetched(self.scope(tenant, "monsters.take"), id);
            loop {
                let ids = self.ids();
                match type_guard::run(&scope, move |tx, guard| remove(tx, &ids, id, None, guard)).await? {
                    Removal::Done(monster, _) => return Ok(Some(*monster)),
                    Removal::Absent => return Ok(None),
                    Removal::NotYet => {}
                }
            }
        })
    }

    /// Removes the monsters that are in a field now, in bounded transactions, each monster atomically.
    /// Monsters that are spawned meanwhile stay. A failure after the first removals is reported in
    /// [`stopped`](FieldDestruction::stopped).
    pub fn destroy_in_field(&self, tenant: Tenant, field: Field) -> Pending<'_, Result<FieldDestruction>> {
        Box::pin(async move {
            let (scope, index) = (self.scope(tenant, "monsters.destroy_in_field"), field_key(&field));
            // A set, because pages may repeat members.
            let (mut members, mut from) = (BTreeSet::new(), None);
            loop {
                let page = scope.members(&index, from, hot::limits::REPLY_ELEMENTS_MAX).await?;
                members.extend(page.members.into_iter().filter_map(Member::known));
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            self.remove_all(tenant, members.into_iter().collect(), Some(field)).await
        })
    }

    /// Removes many monsters in batches; with a field, only those in it.
    pub(super) async fn remove_all(
        &self,
        tenant: Tenant,
        mut wanted: Vec<MonsterId>,
        field: Option<Field>,
    ) -> Result<FieldDestruction> {
        let mut all = FieldDestruction::default();
        while !wanted.is_empty() {
            let some: Vec<_> = wanted.split_off(wanted.len().saturating_sub(MONSTERS_PER_TRANSACTION));
            let scope =
                some.iter().fold(self.scope(tenant, "monsters.remove"), |scope, id| prefetched(scope, *id));
            let ids = self.ids();
            let transaction =
                move |tx: &mut Tx<'_, Tenant>, guard| remove_some(tx, &ids, &some, field, guard);
            let batch = match type_guard::run(&scope, transaction).await {
                Ok(batch) => batch,
                Err(error) if all.ids.is_empty() => return Err(error),
                Err(error) => {
                    all.stopped = Some(error);
                    break;
                }
            };
            all.ids.extend(batch.destroyed.ids);
            all.monsters.extend(batch.destroyed.monsters);
            all.cooldowns += batch.destroyed.cooldowns;
            all.corrupt.extend(batch.destroyed.corrupt);
            wanted.extend(batch.left);
        }
        Ok(all)
    }
}

/// A scope that prefetches what a removal reads.
fn prefetched(scope: Scope<Tenant>, id: MonsterId) -> Scope<Tenant> {
    scope
        .prefetch_get(&MONSTER.key(id))
        .prefetch(&MONSTER_COOLDOWNS.key(id), Read::ZRange(indexed_cooldowns(), false))
}

/// What clearing all cooldowns of a monster reads from their index.
pub(super) fn indexed_cooldowns() -> ZSlice {
    ZSlice::Rank(0, CLEARED_PER_TRANSACTION_MAX as i64)
}

struct Batch {
    destroyed: FieldDestruction,
    /// Monsters that another transaction must remove.
    left: Vec<MonsterId>,
}

fn remove_some(
    tx: &mut Tx<'_, Tenant>,
    ids: &Ids,
    some: &[MonsterId],
    field: Option<Field>,
    guard: TypeGuard,
) -> Result<Batch> {
    let mut batch = Batch { destroyed: FieldDestruction::default(), left: Vec::new() };
    let mut markers = 0;
    for (at, id) in some.iter().enumerate() {
        if markers >= MARKERS_PER_TRANSACTION {
            batch.left.extend(&some[at..]);
            break;
        }
        match remove(tx, ids, *id, field, guard) {
            Ok(Removal::Done(monster, cleared)) => {
                markers += cleared;
                batch.destroyed.cooldowns += cleared;
                batch.destroyed.ids.push(*id);
                batch.destroyed.monsters.push(*monster);
            }
            Ok(Removal::Absent) => {}
            Ok(Removal::NotYet) => {
                markers += CLEARED_PER_TRANSACTION_MAX;
                batch.destroyed.cooldowns += CLEARED_PER_TRANSACTION_MAX;
                batch.left.push(*id);
            }
            Err(Error::Store(error)) if error.is_corrupt() => batch.destroyed.corrupt.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok(batch)
}

/// Removes one monster; with a field, only if it is in that field.
fn remove(
    tx: &mut Tx<'_, Tenant>,
    ids: &Ids,
    id: MonsterId,
    field: Option<Field>,
    guard: TypeGuard,
) -> Result<Removal> {
    let key = MONSTER.key(id);
    let monster = tx.get(&key)?.filter(|monster| field.is_none_or(|field| monster.field() == field));
    let Some(monster) = monster else {
        // The index of the field listed it: a stale entry.
        if let Some(field) = field {
            tx.srem(&field_key(&field), &id)?;
        }
        return Ok(Removal::Absent);
    };
    let cleared = cooldowns(id).clear_all(tx)?;
    if cleared.more {
        return Ok(Removal::NotYet);
    }
    if guard.allows(|| tx.sismember(&field_key(&monster.field()), &id))? {
        index::leave::<ByField>(tx, &id, &monster)?;
    }
    delete_record(tx, ids, id, guard)?;
    Ok(Removal::Done(Box::new(monster), cleared.count))
}

/// Removes the record, timer and deadlines of a monster, and releases its id. The caller must have read the
/// record in this transaction: only the transaction that deletes it may release the id.
pub(super) fn delete_record(
    tx: &mut Tx<'_, Tenant>,
    ids: &Ids,
    id: MonsterId,
    guard: TypeGuard,
) -> hot::Result<()> {
    tx.del(&MONSTER.key(id))?;
    remove_deadlines(tx, id, guard)?;
    let to_free = guard.allows(|| tx.llen(&MONSTER_ID_FREE.key()))?;
    let to_rest = guard.allows(|| tx.zscore(&MONSTER_ID_RESTING.key(), &id))?;
    if to_free && to_rest { ids.release(tx, &id) } else { Ok(()) }
}

/// Removes a monster's timer and deadlines, if there are any.
pub(super) fn remove_deadlines(tx: &mut Tx<'_, Tenant>, id: MonsterId, guard: TypeGuard) -> hot::Result<()> {
    drops::delete(tx, id, guard)?;
    if guard.allows(|| tx.zscore(&MONSTER_EFFECTS.key(), &id))? {
        tx.zrem(&MONSTER_EFFECTS.key(), &id)?;
    }
    Ok(())
}
