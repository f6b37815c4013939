//! Cooldowns of a monster's skills. Their markers expire by themselves, and are removed with the monster.

use super::*;
use crate::monsters::limits::COOLDOWN_MAX;
use crate::monsters::model::SkillId;
use crate::monsters::rules;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::Cooldowns;
use emberkeep_schema::Key;

/// The cooldowns of one monster.
pub(super) fn cooldowns(
    id: MonsterId,
) -> Cooldowns<MONSTER_COOLDOWNS, impl Fn(&SkillId) -> Key<MONSTER_COOLDOWN> + Clone> {
    Cooldowns::new(MONSTER_COOLDOWNS.key(id), move |skill: &SkillId| MONSTER_COOLDOWN.key(id, skill))
}

impl Monsters {
    /// Starts or restarts the cooldown of a skill: at least 1 ms, at most [`COOLDOWN_MAX`].
    pub fn start_cooldown(
        &self,
        tenant: Tenant,
        id: MonsterId,
        skill: SkillId,
        time: Duration,
    ) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            if time.is_zero() || time > COOLDOWN_MAX {
                let problem = format!("{time:?}, expected more than 0 and at most {COOLDOWN_MAX:?}");
                return Err(Error::invalid("cooldown", problem));
            }
            self.scope(tenant, "monsters.start_cooldown")
                .transact(move |tx| {
                    rules::living(&existing(tx, id)?)?;
                    Ok(cooldowns(id).start(tx, &skill, time)?)
                })
                .await
        })
    }

    /// Whether a skill is on cooldown.
    pub fn is_cooling(&self, tenant: Tenant, id: MonsterId, skill: SkillId) -> Pending<'_, Result<bool>> {
        Box::pin(async move { Ok(self.cooldown_remaining(tenant, id, skill).await?.is_some()) })
    }

    /// The remaining cooldown; `None` if the skill is available. [`Duration::MAX`] if another service set a
    /// marker without a TTL.
    pub fn cooldown_remaining(
        &self,
        tenant: Tenant,
        id: MonsterId,
        skill: SkillId,
    ) -> Pending<'_, Result<Option<Duration>>> {
        Box::pin(async move {
            self.scope(tenant, "monsters.cooldown_remaining")
                .read(move |tx| of_present(tx, id, |tx| cooldowns(id).remaining(tx, &skill)))
                .await
        })
    }

    /// Ends one cooldown; `false` if there was none.
    pub fn clear_cooldown(&self, tenant: Tenant, id: MonsterId, skill: SkillId) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            self.scope(tenant, "monsters.clear_cooldown")
                .transact(move |tx| {
                    of_present(tx, id, |tx| tx.exists(&MONSTER_COOLDOWN.key(id, skill)))?;
                    Ok(cooldowns(id).clear(tx, &skill)?)
                })
                .await
        })
    }

    /// Ends all indexed cooldowns of a monster and returns their number: those that were started here, and
    /// those of other services that a sweep has found. Does not scan.
    pub fn clear_cooldowns(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<usize>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "monsters.clear_cooldowns");
            let mut count = 0;
            loop {
                let transaction = move |tx: &mut Tx<'_, Tenant>| {
                    present(tx, id)?;
                    Ok::<_, Error>(cooldowns(id).clear_all(tx)?)
                };
                let cleared = scope.transact(transaction).await?;
                count += cleared.count;
                if !cleared.more {
                    return Ok(count);
                }
            }
        })
    }
}
