//! Spawning: an id, a record, an index entry.

use super::cooldowns::cooldowns;
use super::*;
use crate::monsters::model::Monster;
use crate::type_guard::{self, TypeGuard};
use crate::world::{Field, REGION_BYTES_MAX, word_problem};
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::sequence::SearchProgress;
use emberkeep_primitives::{IdResult, index};

/// The parameters of a new monster. It starts with full health and mana.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnRequest {
    /// The field in which it appears.
    pub field: Field,
    /// The template: the kind of monster.
    pub template: u32,
    /// Full health, at least 1.
    pub max_hp: u32,
    /// Full mana, 0 or more.
    pub max_mp: u32,
    /// The horizontal position in the field.
    pub x: i16,
    /// The vertical position in the field.
    pub y: i16,
    /// The foothold on which it stands.
    pub fh: i16,
    /// The posture, as the game numbers it.
    pub stance: u8,
    /// The team; -1 means none.
    pub team: i8,
    /// Region of the tenant's client.
    pub region: String,
    /// Major version of the tenant's client.
    pub major_version: u16,
    /// Minor version of the tenant's client.
    pub minor_version: u16,
}

impl SpawnRequest {
    /// A monster without a team at the origin of a field. The other fields can be set afterwards.
    pub fn new(field: Field, template: u32, max_hp: u32) -> SpawnRequest {
        SpawnRequest {
            field,
            template,
            max_hp,
            max_mp: 0,
            x: 0,
            y: 0,
            fh: 0,
            stance: 0,
            team: -1,
            region: String::new(),
            major_version: 0,
            minor_version: 0,
        }
    }
}

impl Monsters {
    /// Spawns a monster: id, record and index in one transaction. It inherits nothing from an earlier monster
    /// with the same id, even if an external client deleted only that monster's record. An exception are
    /// cooldowns that another service started for the earlier one: they are cleared only after a
    /// [sweep](Monsters::sweep) has found them.
    pub fn spawn(&self, tenant: Tenant, request: SpawnRequest) -> Pending<'_, Result<Monster>> {
        Box::pin(async move {
            if request.max_hp == 0 {
                return Err(Error::invalid("max hp", "0, expected at least 1"));
            }
            if let Some(problem) = word_problem(&request.region, REGION_BYTES_MAX) {
                return Err(Error::invalid("region", problem));
            }
            let scope = self.ids().prefetched(self.scope(tenant, "monsters.spawn"));
            let mut search = self.ids().search();
            loop {
                let (request, ids) = (request.clone(), self.ids());
                match type_guard::run(&scope, move |tx, guard| spawn(tx, &request, &ids, guard)).await? {
                    SpawnAttempt::Done(monster) => return Ok(*monster),
                    SpawnAttempt::NotYet(looked) => search.go_on(looked)?,
                }
            }
        })
    }
}

/// The result of one transaction of a spawn.
enum SpawnAttempt {
    Done(Box<Monster>),
    NotYet(SearchProgress),
}

/// Takes an id, and writes record and index.
fn spawn(
    tx: &mut Tx<'_, Tenant>,
    request: &SpawnRequest,
    ids: &Ids,
    guard: TypeGuard,
) -> Result<SpawnAttempt> {
    let id = match ids.take(tx, |tx, id| is_taken(tx, *id))? {
        IdResult::Id(id) => id,
        IdResult::NotYet(looked) => return Ok(SpawnAttempt::NotYet(looked)),
    };
    remove::remove_deadlines(tx, id, guard)?;
    let monster = new_monster(*tx.partition(), id, request);
    tx.put(&MONSTER.key(id), &monster)?;
    index::enter::<ByField>(tx, &id, &monster)?;
    Ok(SpawnAttempt::Done(Box::new(monster)))
}

/// Whether an id cannot be used. Clears the cooldowns of one that can.
fn is_taken(tx: &mut Tx<'_, Tenant>, id: MonsterId) -> hot::Result<bool> {
    // Together: with single reads, a remote process would keep learning that other processes have taken the
    // id meanwhile. An index of cooldowns that cannot be read is removed below, so its error does not count.
    let (exists, _) = tx.together(|tx| {
        let cooldowns = tx.zrange_lossy(&MONSTER_COOLDOWNS.key(id), remove::indexed_cooldowns(), false);
        (tx.exists(&MONSTER.key(id)), Ok(cooldowns.ok()))
    })?;
    Ok(exists || cooldowns(id).clear_all(tx)?.more)
}

fn new_monster(tenant: Tenant, id: MonsterId, request: &SpawnRequest) -> Monster {
    let Field { world, channel, map, instance } = request.field;
    let (template, full) = (request.template, request.max_hp);
    Monster {
        tenant_id: Some(tenant.0),
        region: request.region.clone(),
        major_version: request.major_version,
        minor_version: request.minor_version,
        max_mp: request.max_mp,
        mp: request.max_mp,
        x: request.x,
        y: request.y,
        fh: request.fh,
        stance: request.stance,
        team: request.team,
        ..Monster::new(id, world, channel, map, instance, full, full, template)
    }
}
