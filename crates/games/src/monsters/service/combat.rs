//! Hits, healing, mana, and who moves a monster.

use super::*;
use crate::monsters::rules::{self, Healing, Hit, ManaUse};
use crate::type_guard::{self, TypeGuard};
use crate::world::CharacterId;

impl Monsters {
    /// A monster, dead ones that were not removed included.
    pub async fn get(&self, tenant: Tenant, id: MonsterId) -> Result<Monster> {
        self.scope(tenant).get(&MONSTER.key(id)).await?.ok_or(Error::NotFound { id })
    }

    /// Hits a monster. `amount` must be at least 1; more than the health that is left kills. Exactly one caller ever
    /// gets `killed`; to all later ones it is [`AlreadyDead`](Error::AlreadyDead).
    pub async fn damage(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
        amount: i64,
    ) -> Result<Hit> {
        let amount = positive("damage", amount)?;
        let transaction = move |tx: &mut Tx<'_, Tenant>, guard| strike(tx, id, character, amount, guard);
        type_guard::run(&self.scope(tenant), transaction).await
    }

    /// Hurts a monster as poison does: never takes the last point of health. `amount` must be at least 1.
    pub async fn damage_over_time(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
        amount: i64,
    ) -> Result<Hit> {
        let amount = positive("damage", amount)?;
        let rule = move |monster: &mut Monster| {
            let hit = rules::drain(monster, character, amount)?;
            Ok(if hit.actual == 0 { Change::Leave(hit) } else { Change::Put(hit) })
        };
        self.update(tenant, id, rule).await
    }

    /// Who did most damage in sum, and how much; of equals, who hit first. `None` if nobody hit it.
    pub async fn damage_leader(&self, tenant: Tenant, id: MonsterId) -> Result<Option<(CharacterId, u64)>> {
        let monster = self.get(tenant, id).await?;
        Ok(rules::damage_leader(&monster.damage))
    }

    /// Heals a monster, up to its full health. `amount` must be at least 1. A corpse stays one.
    pub async fn heal(&self, tenant: Tenant, id: MonsterId, amount: i64) -> Result<Healing> {
        let amount = positive("healing", amount)?;
        let rule = move |monster: &mut Monster| {
            let healed = rules::heal(monster, amount)?;
            Ok(if healed.actual == 0 { Change::Leave(healed) } else { Change::Put(healed) })
        };
        self.update(tenant, id, rule).await
    }

    /// Takes mana, as much of `amount` as is left. `amount` must be at least 1.
    pub async fn use_mp(&self, tenant: Tenant, id: MonsterId, amount: i64) -> Result<ManaUse> {
        let amount = positive("mana", amount)?;
        let rule = move |monster: &mut Monster| {
            let used = rules::use_mp(monster, amount)?;
            Ok(if used.actual == 0 { Change::Leave(used) } else { Change::Put(used) })
        };
        self.update(tenant, id, rule).await
    }

    /// Gives control of a monster to a character, and says who had it before (0 = nobody).
    pub async fn control(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
    ) -> Result<CharacterId> {
        let rule = move |monster: &mut Monster| {
            let former = rules::control(monster, character)?;
            Ok(if former == character { Change::Leave(former) } else { Change::Put(former) })
        };
        self.update(tenant, id, rule).await
    }

    /// Ends a character's control. Only the controller's own release counts: `false` = somebody else has it by now, and
    /// keeps it.
    pub async fn release_control(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
    ) -> Result<bool> {
        let rule = move |monster: &mut Monster| {
            let released = rules::release_control(monster, character);
            Ok(if released { Change::Put(true) } else { Change::Leave(false) })
        };
        self.update(tenant, id, rule).await
    }
}

/// One hit.
fn strike(
    tx: &mut Tx<'_, Tenant>,
    id: MonsterId,
    character: CharacterId,
    amount: u64,
    guard: TypeGuard,
) -> Result<Hit> {
    let mut monster = existing(tx, id)?;
    let hit = rules::strike(&mut monster, character, amount)?;
    put(tx, id, &mut monster)?;
    if hit.killed {
        // The dead drop nothing more.
        super::drops::forget(tx, id, guard)?;
    }
    Ok(hit)
}
