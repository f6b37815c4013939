//! Setting right what other services left: timers and cooldowns whose monster is gone, hints that they do not know.
//!
//! Each function looks at some keys of one tenant in bounded transactions. What it removes, it looks at once more in the
//! transaction that removes it: ids are used again.

mod outdated;

use super::cooldowns::cooldowns;
use super::sweep::SweepReport;
use super::*;
use crate::monsters::limits::MONSTERS_PER_TRANSACTION;
use crate::monsters::model::SkillId;
use crate::monsters::rules;
use crate::type_guard::{self, TypeGuard};
use emberkeep_hot::command::Read;
use emberkeep_schema::Part;

/// Puts the effects of monsters into the index of deadlines, where they are not in it or at another time, and writes
/// records anew that other services cannot read.
pub(super) async fn monsters(
    scope: &Scope<Tenant>,
    ids: &[MonsterId],
    swept: &mut SweepReport,
) -> Result<()> {
    let (found, outdated) = outdated::look(scope, ids).await?;
    let record = |scope: Scope<Tenant>, id: &MonsterId| scope.prefetch_get(&MONSTER.key(id));
    in_transactions(scope, &outdated, record, outdated::rewrite_transaction, swept).await?;
    // Most monsters bear nothing: only the others are worth a transaction.
    let bearers = found.iter().filter(|(_, monster)| rules::next_due_ms(monster).is_some());
    let bearers: Vec<MonsterId> = bearers.map(|(id, _)| *id).collect();
    let prefetched = |scope: Scope<Tenant>, id: &MonsterId| {
        scope.prefetch_get(&MONSTER.key(id)).prefetch(&MONSTER_EFFECTS.key(), score_of(id))
    };
    in_transactions(scope, &bearers, prefetched, effects_transaction, swept).await
}

fn effects_transaction(tx: &mut Tx<'_, Tenant>, ids: &[MonsterId]) -> hot::Result<SweepReport> {
    let keys: Vec<_> = ids.iter().map(|id| MONSTER.key(id)).collect();
    let mut swept = SweepReport::default();
    for (id, monster) in ids.iter().zip(tx.get_each(&keys)?) {
        // What cannot be read is told by the sweep of the indexes, which sees every record too.
        let Ok(Some(monster)) = monster else { continue };
        if effects_due().get(tx, id)? != rules::next_due_ms(&monster) {
            effects::schedule(tx, *id, &monster)?;
            swept.hints += 1;
        }
    }
    Ok(swept)
}

/// Removes drop timers whose monster died or is gone, and puts the others into the index of deadlines.
pub(super) async fn timers(scope: &Scope<Tenant>, ids: &[MonsterId], swept: &mut SweepReport) -> Result<()> {
    let prefetched = |scope: Scope<Tenant>, id: &MonsterId| {
        let scope = scope.prefetch_get(&MONSTER.key(id)).prefetch_get(&DROP_TIMER.key(id));
        scope.prefetch(&DROP_TIMERS.key(), score_of(id))
    };
    in_transactions(scope, ids, prefetched, timers_transaction, swept).await
}

fn timers_transaction(tx: &mut Tx<'_, Tenant>, ids: &[MonsterId]) -> hot::Result<SweepReport> {
    let (timers, monsters): (Vec<_>, Vec<_>) =
        ids.iter().map(|id| (DROP_TIMER.key(id), MONSTER.key(id))).unzip();
    let found = tx.get_each(&timers)?.into_iter().zip(tx.get_each(&monsters)?);
    let mut swept = SweepReport::default();
    for (id, (timer, monster)) in ids.iter().zip(found) {
        match (monster, timer) {
            (Ok(Some(monster)), Ok(Some(mut timer))) if monster.is_alive() => {
                if timer.is_former() {
                    timer.complete(*tx.partition(), *id, &monster);
                    tx.put(&DROP_TIMER.key(id), &timer)?;
                    swept.rewritten += 1;
                }
                let next = rules::next_drop_ms(&timer);
                if drops_due().get(tx, id)? != Some(next) {
                    drops_due().set(tx, id, next)?;
                    swept.hints += 1;
                }
            }
            (Ok(Some(monster)), Err(error)) if monster.is_alive() => swept.corrupt.push(error),
            // Nobody can tell whether it lives; the sweep of the indexes tells its key.
            (Err(_), _) => {}
            (Ok(_), timer) => {
                drops::forget(tx, *id, TypeGuard::Off)?;
                swept.timers += usize::from(!matches!(timer, Ok(None)));
            }
        }
    }
    Ok(swept)
}

/// Removes cooldowns whose monster is gone, and makes the others known to their monster.
pub(super) async fn markers(
    scope: &Scope<Tenant>,
    markers: &[(MonsterId, SkillId)],
    swept: &mut SweepReport,
) -> Result<()> {
    let prefetched = |scope: Scope<Tenant>, (id, skill): &(MonsterId, SkillId)| {
        let marker = MONSTER_COOLDOWN.key(id, skill);
        let scope = scope.prefetch_exists(&MONSTER.key(id)).prefetch_exists(&marker);
        scope.prefetch(&marker, Read::ExpireTime).prefetch(&MONSTER_COOLDOWNS.key(id), score_of(skill))
    };
    in_transactions(scope, markers, prefetched, markers_transaction, swept).await
}

fn markers_transaction(
    tx: &mut Tx<'_, Tenant>,
    markers: &[(MonsterId, SkillId)],
) -> hot::Result<SweepReport> {
    let owners: Vec<_> = markers.iter().map(|(id, _)| MONSTER.key(id)).collect();
    let mut swept = SweepReport::default();
    for ((id, skill), lives) in markers.iter().zip(tx.exists_many(&owners)?) {
        if lives {
            swept.hints += usize::from(cooldowns(*id).adopt(tx, skill)?);
        } else {
            swept.cooldowns += usize::from(cooldowns(*id).clear(tx, skill)?);
        }
    }
    Ok(swept)
}

/// Runs a transaction over some things at a time. Where an external client corrupt what belongs to one of them, each gets a transaction
/// of its own, so that the others are not held up.
async fn in_transactions<T: Copy + Send + 'static>(
    scope: &Scope<Tenant>,
    things: &[T],
    prefetched: impl Fn(Scope<Tenant>, &T) -> Scope<Tenant>,
    transaction: fn(&mut Tx<'_, Tenant>, &[T]) -> hot::Result<SweepReport>,
    swept: &mut SweepReport,
) -> Result<()> {
    let run = async |some: &[T]| {
        let (scope, some) = (some.iter().fold(scope.clone(), &prefetched), some.to_vec());
        let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
            if guard == TypeGuard::On {
                drop_corrupt(tx)?;
            }
            transaction(tx, &some)
        };
        type_guard::run(&scope, transaction).await
    };
    for some in things.chunks(MONSTERS_PER_TRANSACTION) {
        match run(some).await {
            Err(error) if error.is_corrupt() => {}
            found => {
                swept.add(found?);
                continue;
            }
        }
        for one in some.chunks(1) {
            match run(one).await {
                Err(error) if error.is_corrupt() => swept.corrupt.push(error),
                found => swept.add(found?),
            }
        }
    }
    Ok(())
}

/// Removes the known cooldowns of monsters that are gone.
pub(super) async fn known_markers(
    scope: &Scope<Tenant>,
    ids: &[MonsterId],
    swept: &mut SweepReport,
) -> Result<()> {
    for id in ids {
        let id = *id;
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            if tx.exists(&MONSTER.key(id))? { Ok(None) } else { cooldowns(id).clear_all(tx).map(Some) }
        };
        while let Some(cleared) = scope.transact(transaction).await? {
            swept.cooldowns += cleared.count;
            if !cleared.more {
                break;
            }
        }
    }
    Ok(())
}

/// Removes our own indexes of deadlines where they hold something else: they are hints, and the sweep that is on its way
/// fills them again.
fn drop_corrupt(tx: &mut Tx<'_, Tenant>) -> hot::Result<()> {
    if type_guard::is_wrong_type(tx.zcard(&MONSTER_EFFECTS.key()))? {
        tx.del(&MONSTER_EFFECTS.key())?;
    }
    if type_guard::is_wrong_type(tx.zcard(&DROP_TIMERS.key()))? {
        tx.del(&DROP_TIMERS.key())?;
    }
    Ok(())
}

/// The read of a member's score.
pub(super) fn score_of(member: &impl Part) -> Read {
    let mut text = Vec::new();
    member.write(&mut text);
    Read::ZScore(text.into())
}
