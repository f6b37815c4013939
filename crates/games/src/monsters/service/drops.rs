//! Drop timers of friendly monsters.

use super::*;
use crate::monsters::limits::DROP_PERIOD_MAX;
use crate::monsters::model::DropTimer;
use crate::monsters::rules;
use crate::type_guard::{self, TypeGuard};
use emberkeep_hot::engine::Pending;

/// The parameters of a drop timer. Template, field and health come from the monster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTimerRequest {
    /// Time between two drops, in whole milliseconds, at least one.
    pub period: Duration,
    /// The attack of the monster; game servers use it to choose the drop.
    pub weapon_attack: u32,
}

/// A due drop, handed to one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropDue {
    /// The monster that drops.
    pub id: MonsterId,
    /// Its timer, already advanced to the next drop.
    pub timer: DropTimer,
}

impl Monsters {
    /// Registers a drop timer for a living monster. Replaces an earlier one.
    pub fn register_drop_timer(
        &self,
        tenant: Tenant,
        id: MonsterId,
        request: DropTimerRequest,
    ) -> Pending<'_, Result<DropTimer>> {
        Box::pin(async move {
            let period = request.period;
            if period.as_millis() == 0 || period > DROP_PERIOD_MAX {
                let problem = format!("{period:?}, expected 1 ms to {DROP_PERIOD_MAX:?}");
                return Err(Error::invalid("drop period", problem));
            }
            self.scope(tenant, "monsters.register_drop_timer")
                .transact(move |tx| {
                    let monster = existing(tx, id)?;
                    rules::living(&monster)?;
                    let timer = timer_of(tenant, id, &monster, request, tx.now());
                    write(tx, id, &timer)?;
                    Ok(timer)
                })
                .await
        })
    }

    /// Removes a drop timer; `false` if there was none. The monster need not exist, so that leftovers can be
    /// removed.
    pub fn unregister_drop_timer(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
                let exists = tx.exists(&DROP_TIMER.key(id))?;
                if exists {
                    delete(tx, id, guard)?;
                }
                Ok(exists)
            };
            type_guard::run(&self.scope(tenant, "monsters.unregister_drop_timer"), transaction).await
        })
    }

    /// The drop timer of a monster, if it has one.
    pub fn drop_timer(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<Option<DropTimer>>> {
        Box::pin(async move { Ok(self.store.scope(tenant).get(&DROP_TIMER.key(id)).await?) })
    }

    /// Records a hit, which postpones the next drop to one period from now.
    pub fn record_drop_hit(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<DropTimer>> {
        Box::pin(async move {
            self.scope(tenant, "monsters.record_drop_hit")
                .transact(move |tx| {
                    let timer = of_present(tx, id, |tx| tx.get(&DROP_TIMER.key(id)))?;
                    let mut timer = timer.ok_or(Error::NoDropTimer { id })?;
                    if timer.is_former() {
                        timer.complete(tenant, id, &existing(tx, id)?);
                    }
                    rules::record_hit(&mut timer, tx.now());
                    write(tx, id, &timer)?;
                    Ok(timer)
                })
                .await
        })
    }

    /// The due drops of a tenant, the longest overdue first. Examines at most `limit` timers. Each drop is
    /// handed to one caller among all processes, and its timer is advanced in the same transaction. Timers of
    /// dead or removed monsters are deleted on the way.
    pub fn due_drops(&self, tenant: Tenant, limit: usize) -> Pending<'_, Result<Due<DropDue>>> {
        Box::pin(async move {
            due::in_transactions(self.scope(tenant, "monsters.due_drops"), limit, drop_due).await
        })
    }
}

fn timer_of(
    tenant: Tenant,
    id: MonsterId,
    monster: &Monster,
    request: DropTimerRequest,
    now_ms: i64,
) -> DropTimer {
    // In range: the period is limited to days.
    let period_ms = request.period.as_millis() as i64;
    let mut timer = DropTimer {
        weapon_attack: request.weapon_attack,
        max_hp: monster.max_hp,
        last_drop_at_ms: now_ms,
        ..DropTimer::new(monster.template, monster.field().into(), period_ms)
    };
    timer.complete(tenant, id, monster);
    timer
}

/// One transaction of [`Monsters::due_drops`].
fn drop_due(tx: &mut Tx<'_, Tenant>, limit: usize) -> hot::Result<due::DueBatch<DropDue>> {
    let mut batch = due::DueBatch::default();
    let ids: Vec<MonsterId> = drops_due().due(tx, limit)?.into_iter().map(|(id, _)| id).collect();
    let timers: Vec<_> = ids.iter().map(|id| DROP_TIMER.key(id)).collect();
    let monsters: Vec<_> = ids.iter().map(|id| MONSTER.key(id)).collect();
    batch.count = ids.len();
    let (timers, monsters) = tx.together(|tx| (tx.get_each(&timers), tx.get_each(&monsters)))?;
    let found = timers.into_iter().zip(monsters);
    for (id, (timer, monster)) in ids.into_iter().zip(found) {
        match (timer, monster) {
            (Err(error), _) | (_, Err(error)) if error.is_corrupt() => {
                // The sweep enters it again when the record is readable.
                tx.zrem(&DROP_TIMERS.key(), &id)?;
                batch.due.corrupt.push(error);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
            (Ok(Some(mut timer)), Ok(Some(monster))) if monster.is_alive() => {
                if rules::drop_if_due(&mut timer, tx.now()) {
                    timer.complete(*tx.partition(), id, &monster);
                    tx.put(&DROP_TIMER.key(id), &timer)?;
                    batch.due.done.push(DropDue { id, timer: timer.clone() });
                }
                drops_due().set(tx, &id, rules::next_drop_ms(&timer))?;
            }
            // The due queue was read above, so it has the right type.
            (Ok(_), Ok(_)) => delete(tx, id, TypeGuard::Off)?,
        }
    }
    Ok(batch)
}

/// Writes a timer and its entry in the due queue.
fn write(tx: &mut Tx<'_, Tenant>, id: MonsterId, timer: &DropTimer) -> hot::Result<()> {
    tx.put(&DROP_TIMER.key(id), timer)?;
    drops_due().set(tx, &id, rules::next_drop_ms(timer))
}

/// Removes a timer, if there is one.
pub(super) fn delete(tx: &mut Tx<'_, Tenant>, id: MonsterId, guard: TypeGuard) -> hot::Result<()> {
    tx.del(&DROP_TIMER.key(id))?;
    if guard.allows(|| tx.zscore(&DROP_TIMERS.key(), &id))? {
        tx.zrem(&DROP_TIMERS.key(), &id)?;
    }
    Ok(())
}
