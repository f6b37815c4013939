//! Status effects: applied, cancelled, and run when they are due.

use super::*;
use crate::monsters::model::StatusEffect;
use crate::monsters::rules::{self, EffectRequest, EffectSelector, Tick};
use crate::world::Field;
use emberkeep_hot::engine::Pending;
use uuid::Uuid;

/// An effect that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEffect {
    /// The effect as it is stored, with its new id.
    pub effect: StatusEffect,
    /// The effects that it replaced.
    pub replaced: Vec<StatusEffect>,
}

/// The due ticks and expired effects of one monster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectsRun {
    /// The monster that has or had the effects.
    pub id: MonsterId,
    /// The field of the monster.
    pub field: Field,
    /// Remaining health: ticks never take the last point.
    pub hp: u32,
    /// Due ticks. No other caller gets them.
    pub ticks: Vec<Tick>,
    /// Effects that expired, which were removed.
    pub expired: Vec<StatusEffect>,
}

impl Monsters {
    /// Applies an effect to a monster and returns the effects that it replaced: see [`rules::apply`].
    pub fn apply_effect(
        &self,
        tenant: Tenant,
        id: MonsterId,
        request: EffectRequest,
    ) -> Pending<'_, Result<AppliedEffect>> {
        Box::pin(async move {
            request.check()?;
            self.scope(tenant, "monsters.apply_effect")
                .transact(move |tx| {
                    let mut monster = existing(tx, id)?;
                    let number = Uuid::from_u64_pair(tx.random(), tx.random());
                    let number = uuid::Builder::from_random_bytes(number.into_bytes()).into_uuid();
                    let effect = request.effect(number, tx.now());
                    let replaced = rules::apply(&mut monster, effect.clone())?;
                    write(tx, id, &mut monster)?;
                    Ok(AppliedEffect { effect, replaced })
                })
                .await
        })
    }

    /// Removes one effect; `None` if the monster does not have it.
    pub fn cancel_effect(
        &self,
        tenant: Tenant,
        id: MonsterId,
        effect: Uuid,
    ) -> Pending<'_, Result<Option<StatusEffect>>> {
        Box::pin(async move { Ok(self.cancel(tenant, id, EffectSelector::Effect(effect)).await?.pop()) })
    }

    /// Removes all effects with a status of this name.
    pub fn cancel_status<'a>(
        &'a self,
        tenant: Tenant,
        id: MonsterId,
        status: &'a str,
    ) -> Pending<'a, Result<Vec<StatusEffect>>> {
        Box::pin(async move { self.cancel(tenant, id, EffectSelector::Status(status.to_owned())).await })
    }

    /// Removes and returns all effects of a monster, dead or alive.
    pub fn cancel_effects(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<Vec<StatusEffect>>> {
        Box::pin(async move { self.cancel(tenant, id, EffectSelector::All).await })
    }

    async fn cancel(
        &self,
        tenant: Tenant,
        id: MonsterId,
        which: EffectSelector,
    ) -> Result<Vec<StatusEffect>> {
        self.scope(tenant, "monsters.cancel_effects")
            .transact(move |tx| {
                let mut monster = existing(tx, id)?;
                let gone = rules::cancel(&mut monster, &which);
                if !gone.is_empty() {
                    write(tx, id, &mut monster)?;
                }
                Ok(gone)
            })
            .await
    }

    /// Runs the due ticks of one monster and removes its expired effects. Each tick is handed to one caller.
    /// Does nothing on a dead monster.
    pub fn tick_effects(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<EffectsRun>> {
        Box::pin(async move {
            let poison = self.poison;
            self.scope(tenant, "monsters.tick_effects")
                .transact(move |tx| {
                    let mut monster = existing(tx, id)?;
                    Ok(run(tx, id, &mut monster, poison)?)
                })
                .await
        })
    }

    /// Does the same for the monsters of a tenant that are due, the longest overdue first, at most `limit` of
    /// them. They are found in a due queue, without a scan. Several processes can call it; each tick goes to
    /// one of them. Monsters without due ticks or expired effects are not in the result.
    pub fn run_due_effects(&self, tenant: Tenant, limit: usize) -> Pending<'_, Result<Due<EffectsRun>>> {
        Box::pin(async move {
            let poison = self.poison;
            due::in_transactions(self.scope(tenant, "monsters.run_due_effects"), limit, move |tx, limit| {
                run_due(tx, limit, poison)
            })
            .await
        })
    }
}

/// One transaction of [`Monsters::run_due_effects`].
fn run_due(
    tx: &mut Tx<'_, Tenant>,
    limit: usize,
    poison: PoisonRule,
) -> hot::Result<due::DueBatch<EffectsRun>> {
    let mut batch = due::DueBatch::default();
    let ids: Vec<MonsterId> = effects_due().due(tx, limit)?.into_iter().map(|(id, _)| id).collect();
    let keys: Vec<_> = ids.iter().map(|id| MONSTER.key(id)).collect();
    batch.count = ids.len();
    for (id, monster) in ids.into_iter().zip(tx.get_each(&keys)?) {
        match monster {
            Ok(Some(mut monster)) => {
                let ran = run(tx, id, &mut monster, poison)?;
                if !(ran.ticks.is_empty() && ran.expired.is_empty()) {
                    batch.due.done.push(ran);
                }
            }
            Ok(None) => tx.zrem(&MONSTER_EFFECTS.key(), &id)?,
            // The sweep enters it again when the record is readable.
            Err(error) if error.is_corrupt() => {
                tx.zrem(&MONSTER_EFFECTS.key(), &id)?;
                batch.due.corrupt.push(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(batch)
}

/// Runs the due ticks of a monster.
fn run(
    tx: &mut Tx<'_, Tenant>,
    id: MonsterId,
    monster: &mut Monster,
    poison: PoisonRule,
) -> hot::Result<EffectsRun> {
    let advance = rules::advance(monster, tx.now(), poison);
    if advance.changed {
        put(tx, id, monster)?;
    }
    schedule(tx, id, monster)?;
    let (field, hp) = (monster.field(), monster.hp);
    Ok(EffectsRun { id, field, hp, ticks: advance.ticks, expired: advance.expired })
}

/// Writes a monster whose effects changed, and its entry in the due queue.
fn write(tx: &mut Tx<'_, Tenant>, id: MonsterId, monster: &mut Monster) -> hot::Result<()> {
    put(tx, id, monster)?;
    schedule(tx, id, monster)
}

/// Writes the entry of the due queue. It is not compared with the stored one: writing the same value changes
/// nothing, and a read would make transactions of other monsters conflict.
pub(super) fn schedule(tx: &mut Tx<'_, Tenant>, id: MonsterId, monster: &Monster) -> hot::Result<()> {
    match rules::next_due_ms(monster) {
        Some(at) => effects_due().set(tx, &id, at),
        None => tx.zrem(&MONSTER_EFFECTS.key(), &id),
    }
}
