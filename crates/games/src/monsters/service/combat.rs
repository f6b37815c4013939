//! Hits, healing, mana, and control.

use super::*;
use crate::monsters::rules::{self, Healing, Hit, ManaUse};
use crate::type_guard::{self, TypeGuard};
use crate::world::CharacterId;
use emberkeep_hot::engine::Pending;

impl Monsters {
    /// Reads a monster, dead or alive.
    pub fn get(&self, tenant: Tenant, id: MonsterId) -> Pending<'_, Result<Monster>> {
        Box::pin(async move {
            self.store.scope(tenant).get(&MONSTER.key(id)).await?.ok_or(Error::NotFound { id })
        })
    }

    /// Hits a monster. `amount` must be at least 1; more than the remaining health kills. Exactly one caller
    /// ever gets `killed`; later hits fail with [`AlreadyDead`](Error::AlreadyDead).
    pub fn damage(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
        amount: i64,
    ) -> Pending<'_, Result<Hit>> {
        Box::pin(async move {
            let amount = positive("damage", amount)?;
            let transaction = move |tx: &mut Tx<'_, Tenant>, guard| strike(tx, id, character, amount, guard);
            type_guard::run(&self.scope(tenant, "monsters.damage"), transaction).await
        })
    }

    /// Does damage like poison: never takes the last point of health. `amount` must be at least 1.
    pub fn damage_over_time(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
        amount: i64,
    ) -> Pending<'_, Result<Hit>> {
        Box::pin(async move {
            let amount = positive("damage", amount)?;
            let rule = move |monster: &mut Monster| {
                let hit = rules::drain(monster, character, amount)?;
                Ok(put_if(hit.actual > 0, hit))
            };
            self.update("monsters.damage_over_time", tenant, id, rule).await
        })
    }

    /// The damage leader and its total; of equals, the one that hit first. `None` if no character did damage.
    pub fn damage_leader(
        &self,
        tenant: Tenant,
        id: MonsterId,
    ) -> Pending<'_, Result<Option<(CharacterId, u64)>>> {
        Box::pin(async move {
            let monster = self.get(tenant, id).await?;
            Ok(rules::damage_leader(&monster.damage))
        })
    }

    /// Heals a monster, up to its full health. `amount` must be at least 1. Fails on a dead monster.
    pub fn heal(&self, tenant: Tenant, id: MonsterId, amount: i64) -> Pending<'_, Result<Healing>> {
        Box::pin(async move {
            let amount = positive("healing", amount)?;
            let rule = move |monster: &mut Monster| {
                let healing = rules::heal(monster, amount)?;
                Ok(put_if(healing.actual > 0, healing))
            };
            self.update("monsters.heal", tenant, id, rule).await
        })
    }

    /// Takes as much of `amount` as is left. `amount` must be at least 1.
    pub fn use_mp(&self, tenant: Tenant, id: MonsterId, amount: i64) -> Pending<'_, Result<ManaUse>> {
        Box::pin(async move {
            let amount = positive("mana", amount)?;
            let rule = move |monster: &mut Monster| {
                let used = rules::use_mp(monster, amount)?;
                Ok(put_if(used.actual > 0, used))
            };
            self.update("monsters.use_mp", tenant, id, rule).await
        })
    }

    /// Gives control of a monster to a character and returns the previous controller (0 if none).
    pub fn control(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
    ) -> Pending<'_, Result<CharacterId>> {
        Box::pin(async move {
            let rule = move |monster: &mut Monster| {
                let former = rules::control(monster, character)?;
                Ok(put_if(former != character, former))
            };
            self.update("monsters.control", tenant, id, rule).await
        })
    }

    /// Ends a character's control; `false` if another character has the control by now.
    pub fn release_control(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
    ) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let rule = move |monster: &mut Monster| {
                let released = rules::release_control(monster, character);
                Ok(put_if(released, released))
            };
            self.update("monsters.release_control", tenant, id, rule).await
        })
    }
}

/// Writes the record only if the rule changed it.
fn put_if<T>(changed: bool, result: T) -> Change<T> {
    if changed { Change::Put(result) } else { Change::Leave(result) }
}

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
        // A dead monster drops nothing more.
        super::drops::delete(tx, id, guard)?;
    }
    Ok(hit)
}
