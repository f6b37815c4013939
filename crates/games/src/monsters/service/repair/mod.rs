//! Repairs of what other services left: timers and cooldowns of removed monsters, entries that our auxiliary
//! indexes lack.
//!
//! Each function examines some keys of one tenant in bounded transactions. Before it removes something, it
//! reads it again in the same transaction, because ids are reused.

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

/// Enters the effects of monsters into the due queue where they are missing or have another time, and
/// rewrites records that other services cannot read.
pub(super) async fn monsters(
    scope: &Scope<Tenant>,
    ids: &[MonsterId],
    report: &mut SweepReport,
) -> Result<()> {
    let (found, outdated) = outdated::read_records(scope, ids).await?;
    in_transactions(scope, &outdated, |scope, _| scope, outdated::rewrite_transaction, report).await?;
    // Most monsters have no effects. Only the others need a transaction.
    let affected = found.iter().filter(|(_, monster)| rules::next_due_ms(monster).is_some());
    let affected: Vec<MonsterId> = affected.map(|(id, _)| *id).collect();
    let prefetched = |scope: Scope<Tenant>, id: &MonsterId| {
        scope.prefetch_get(&MONSTER.key(id)).prefetch(&MONSTER_EFFECTS.key(), score_of(id))
    };
    in_transactions(scope, &affected, prefetched, effects_transaction, report).await
}

fn effects_transaction(tx: &mut Tx<'_, Tenant>, ids: &[MonsterId]) -> hot::Result<SweepReport> {
    let keys: Vec<_> = ids.iter().map(|id| MONSTER.key(id)).collect();
    let mut report = SweepReport::default();
    for (id, monster) in ids.iter().zip(tx.get_each(&keys)?) {
        // The sweep of the indexes reads every record too, and reports corrupt ones.
        let Ok(Some(monster)) = monster else { continue };
        if effects_due().get(tx, id)? != rules::next_due_ms(&monster) {
            effects::schedule(tx, *id, &monster)?;
            report.hints += 1;
        }
    }
    Ok(report)
}

/// Removes drop timers of dead or removed monsters, and enters the others into the due queue.
pub(super) async fn timers(scope: &Scope<Tenant>, ids: &[MonsterId], report: &mut SweepReport) -> Result<()> {
    let prefetched = |scope: Scope<Tenant>, id: &MonsterId| {
        let scope = scope.prefetch_get(&MONSTER.key(id)).prefetch_get(&DROP_TIMER.key(id));
        scope.prefetch(&DROP_TIMERS.key(), score_of(id))
    };
    in_transactions(scope, ids, prefetched, timers_transaction, report).await
}

fn timers_transaction(tx: &mut Tx<'_, Tenant>, ids: &[MonsterId]) -> hot::Result<SweepReport> {
    let (timers, monsters): (Vec<_>, Vec<_>) =
        ids.iter().map(|id| (DROP_TIMER.key(id), MONSTER.key(id))).unzip();
    let found = tx.get_each(&timers)?.into_iter().zip(tx.get_each(&monsters)?);
    let mut report = SweepReport::default();
    for (id, (timer, monster)) in ids.iter().zip(found) {
        match (monster, timer) {
            (Ok(Some(monster)), Ok(Some(mut timer))) if monster.is_alive() => {
                if timer.is_former() {
                    timer.complete(*tx.partition(), *id, &monster);
                    tx.put(&DROP_TIMER.key(id), &timer)?;
                    report.rewritten += 1;
                }
                let next = rules::next_drop_ms(&timer);
                if drops_due().get(tx, id)? != Some(next) {
                    drops_due().set(tx, id, next)?;
                    report.hints += 1;
                }
            }
            (Ok(Some(monster)), Err(error)) if monster.is_alive() => report.corrupt.push(error),
            // A corrupt monster may be alive. The sweep of the indexes reports its key.
            (Err(_), _) => {}
            (Ok(_), timer) => {
                drops::delete(tx, *id, TypeGuard::Off)?;
                report.timers += usize::from(!matches!(timer, Ok(None)));
            }
        }
    }
    Ok(report)
}

/// Removes cooldowns of removed monsters, and enters the others into their index.
pub(super) async fn markers(
    scope: &Scope<Tenant>,
    markers: &[(MonsterId, SkillId)],
    report: &mut SweepReport,
) -> Result<()> {
    let prefetched = |scope: Scope<Tenant>, (id, skill): &(MonsterId, SkillId)| {
        let marker = MONSTER_COOLDOWN.key(id, skill);
        let scope = scope.prefetch_exists(&MONSTER.key(id)).prefetch_exists(&marker);
        scope.prefetch(&marker, Read::ExpireTime).prefetch(&MONSTER_COOLDOWNS.key(id), score_of(skill))
    };
    in_transactions(scope, markers, prefetched, markers_transaction, report).await
}

fn markers_transaction(
    tx: &mut Tx<'_, Tenant>,
    markers: &[(MonsterId, SkillId)],
) -> hot::Result<SweepReport> {
    let owners: Vec<_> = markers.iter().map(|(id, _)| MONSTER.key(id)).collect();
    let mut report = SweepReport::default();
    for ((id, skill), lives) in markers.iter().zip(tx.exists_many(&owners)?) {
        if lives {
            report.hints += usize::from(cooldowns(*id).adopt(tx, skill)?);
        } else {
            report.cooldowns += usize::from(cooldowns(*id).clear(tx, skill)?);
        }
    }
    Ok(report)
}

/// Runs a transaction on several items at a time. If a corrupt value makes it fail, each item gets its own
/// transaction, so that one does not block the others.
async fn in_transactions<T: Copy + Send + 'static>(
    scope: &Scope<Tenant>,
    items: &[T],
    prefetched: impl Fn(Scope<Tenant>, &T) -> Scope<Tenant>,
    transaction: fn(&mut Tx<'_, Tenant>, &[T]) -> hot::Result<SweepReport>,
    report: &mut SweepReport,
) -> Result<()> {
    let run = async |some: &[T]| {
        let (scope, some) = (some.iter().fold(scope.clone(), &prefetched), some.to_vec());
        let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
            if guard == TypeGuard::On {
                delete_wrong_types(tx)?;
            }
            transaction(tx, &some)
        };
        type_guard::run(&scope, transaction).await
    };
    for some in items.chunks(MONSTERS_PER_TRANSACTION) {
        match run(some).await {
            Err(error) if error.is_corrupt() => {}
            found => {
                report.add(found?);
                continue;
            }
        }
        for one in some.chunks(1) {
            match run(one).await {
                Err(error) if error.is_corrupt() => report.corrupt.push(error),
                found => report.add(found?),
            }
        }
    }
    Ok(())
}

/// Removes the indexed cooldowns of removed monsters.
pub(super) async fn indexed_markers(
    scope: &Scope<Tenant>,
    ids: &[MonsterId],
    report: &mut SweepReport,
) -> Result<()> {
    for id in ids {
        let id = *id;
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            if tx.exists(&MONSTER.key(id))? { Ok(None) } else { cooldowns(id).clear_all(tx).map(Some) }
        };
        while let Some(cleared) = scope.transact(transaction).await? {
            report.cooldowns += cleared.count;
            if !cleared.more {
                break;
            }
        }
    }
    Ok(())
}

/// Removes our due queues if they have a wrong type. The running sweep fills them again.
fn delete_wrong_types(tx: &mut Tx<'_, Tenant>) -> hot::Result<()> {
    let (effects, timers) = (MONSTER_EFFECTS.key(), DROP_TIMERS.key());
    let (read_effects, read_timers) = (tx.zcard(&effects), tx.zcard(&timers));
    type_guard::delete_if_wrong_type(tx, &effects, read_effects)?;
    type_guard::delete_if_wrong_type(tx, &timers, read_timers).map(drop)
}

/// A read of a member's score.
pub(super) fn score_of(member: &impl Part) -> Read {
    let mut text = Vec::new();
    member.write(&mut text);
    Read::ZScore(text.into())
}
