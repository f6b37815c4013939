//! Status effects: applied, cancelled, and run when their time comes.

use super::*;
use crate::monsters::model::StatusEffect;
use crate::monsters::rules::{self, EffectRequest, EffectSelector, Tick};
use crate::world::Field;
use uuid::Uuid;

/// An effect that weighs on a monster from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEffect {
    /// The effect.
    pub effect: StatusEffect,
    /// Those that it drove out.
    pub replaced: Vec<StatusEffect>,
}

/// What time did to one monster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectsRun {
    /// The monster.
    pub id: MonsterId,
    /// Where it is.
    pub field: Field,
    /// Health left: never 0 by this.
    pub hp: u32,
    /// Ticks that came due, handed to this caller only.
    pub ticks: Vec<Tick>,
    /// Effects that ended.
    pub expired: Vec<StatusEffect>,
}

impl Monsters {
    /// Puts an effect on a monster, and says which ones it drove out: see [`rules::apply`].
    pub async fn apply_effect(
        &self,
        tenant: Tenant,
        id: MonsterId,
        request: EffectRequest,
    ) -> Result<AppliedEffect> {
        request.check()?;
        self.scope(tenant)
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
    }

    /// Takes one effect off a monster; `None` if it does not bear it any more.
    pub async fn cancel_effect(
        &self,
        tenant: Tenant,
        id: MonsterId,
        effect: Uuid,
    ) -> Result<Option<StatusEffect>> {
        Ok(self.cancel(tenant, id, EffectSelector::Effect(effect)).await?.pop())
    }

    /// Takes all effects with a status of this name off a monster.
    pub async fn cancel_status(
        &self,
        tenant: Tenant,
        id: MonsterId,
        status: &str,
    ) -> Result<Vec<StatusEffect>> {
        self.cancel(tenant, id, EffectSelector::Status(status.to_owned())).await
    }

    /// Takes all effects off a monster.
    pub async fn cancel_effects(&self, tenant: Tenant, id: MonsterId) -> Result<Vec<StatusEffect>> {
        self.cancel(tenant, id, EffectSelector::All).await
    }

    async fn cancel(
        &self,
        tenant: Tenant,
        id: MonsterId,
        which: EffectSelector,
    ) -> Result<Vec<StatusEffect>> {
        self.scope(tenant)
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

    /// Runs the ticks of one monster that are due, and takes off the effects that ended. Each tick is handed to one
    /// caller only. Nothing happens to a corpse.
    pub async fn tick_effects(&self, tenant: Tenant, id: MonsterId) -> Result<EffectsRun> {
        let poison = self.poison;
        self.scope(tenant)
            .transact(move |tx| {
                let mut monster = existing(tx, id)?;
                Ok(run(tx, id, &mut monster, poison)?)
            })
            .await
    }

    /// Does the same for the monsters of a tenant whose time has come, the longest overdue first, at most `limit` of
    /// them. Nothing is walked: an index knows when each is due. Several processes may call it; none gets what
    /// another one got. Monsters to whom nothing happened are not in the answer.
    pub async fn run_due_effects(&self, tenant: Tenant, limit: usize) -> Result<Due<EffectsRun>> {
        let poison = self.poison;
        due::in_transactions(self.scope(tenant), limit, move |tx, limit| run_due(tx, limit, poison)).await
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
            // The sweep puts it back when somebody has mended the record.
            Err(error) if error.is_corrupt() => {
                tx.zrem(&MONSTER_EFFECTS.key(), &id)?;
                batch.due.corrupt.push(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(batch)
}

/// Lets time pass over a monster's effects.
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

/// Writes a monster whose effects changed, together with when they are due.
fn write(tx: &mut Tx<'_, Tenant>, id: MonsterId, monster: &mut Monster) -> hot::Result<()> {
    put(tx, id, monster)?;
    schedule(tx, id, monster)
}

/// Says when something happens to a monster's effects next. Not compared with what stands there: a word that is said
/// again changes nothing, and a read would make transactions of other monsters wait for each other.
pub(super) fn schedule(tx: &mut Tx<'_, Tenant>, id: MonsterId, monster: &Monster) -> hot::Result<()> {
    match rules::next_due_ms(monster) {
        Some(at) => effects_due().set(tx, &id, at),
        None => tx.zrem(&MONSTER_EFFECTS.key(), &id),
    }
}
