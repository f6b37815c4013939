//! The operations on monsters. Each is one atomic step; the rules are applied inside it.

use super::model::{Monster, MonsterId};
use super::rules::{self, Hit};
use super::schema::{MONSTER, field_key, ids};
use crate::world::{CharacterId, Field, Tenant, TenantFields};
use emberkeep_hot::command::Read;
use emberkeep_hot::{self as hot, Store, Tx};
use emberkeep_primitives::{Exhausted, Taken, id_pool::Looked};
use emberkeep_schema::{Array, Extra, Key};

/// The result of an operation on monsters.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on monsters failed. Nothing was changed, unless the store says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that makes no sense.
    #[error("invalid {what}: {problem}")]
    Invalid {
        /// What.
        what: &'static str,
        /// What it was and what was expected.
        problem: String,
    },
    /// Every id of the tenant is in use.
    #[error("no id for a new monster: {0}")]
    Exhausted(#[from] Exhausted),
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

/// What a new monster is like. It starts with full health and mana.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnRequest {
    /// Where.
    pub field: Field,
    /// What kind of monster.
    pub template: u32,
    /// Full health, at least 1.
    pub max_hp: u32,
    /// Full mana.
    pub max_mp: u32,
    /// Where in the field.
    pub x: i16,
    /// Where in the field.
    pub y: i16,
    /// On which foothold.
    pub fh: i16,
    /// How it stands.
    pub stance: u8,
    /// Its team; -1 is none.
    pub team: i8,
    /// Region of the tenant's client.
    pub region: String,
    /// Major version of the tenant's client.
    pub major_version: u16,
    /// Minor version of the tenant's client.
    pub minor_version: u16,
}

impl SpawnRequest {
    /// A monster of this kind and health, of no team, at the origin of a field. The rest can be set.
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

/// The monsters of a store. Cheap to clone.
#[derive(Clone)]
pub struct Monsters {
    store: Store,
}

impl Monsters {
    /// The monsters of a store.
    pub fn new(store: Store) -> Monsters {
        Monsters { store }
    }

    /// Brings a monster into a field: id, record and index in one step.
    pub async fn spawn(&self, tenant: Tenant, request: SpawnRequest) -> Result<Monster> {
        if request.max_hp == 0 {
            return Err(Error::Invalid { what: "max hp", problem: "0, expected at least 1".into() });
        }
        let scope = ids().announced(self.store.scope(tenant));
        let mut search = ids().search();
        loop {
            let request = request.clone();
            match scope.transact(move |tx| spawn(tx, &request)).await? {
                Spawned::Monster(monster) => return Ok(*monster),
                Spawned::NotYet(looked) => search.go_on(looked)?,
            }
        }
    }

    /// A monster, dead ones that were not removed included.
    pub async fn get(&self, tenant: Tenant, id: MonsterId) -> Result<Option<Monster>> {
        Ok(self.store.scope(tenant).get(&MONSTER.key(id)).await?)
    }

    /// The monsters of a field. Index entries without a monster of this field are not returned, and are removed.
    pub async fn in_field(&self, tenant: Tenant, field: Field) -> Result<Vec<Monster>> {
        let scope = self.store.scope(tenant);
        let index = field_key(&field);
        let ids = scope.transact(move |tx| tx.smembers(&index)).await?;
        let keys: Vec<Key<MONSTER>> = ids.iter().map(|id| MONSTER.key(id)).collect();
        let found = scope.get_many(&keys).await?;
        let (mut here, mut gone) = (Vec::new(), Vec::new());
        for (id, monster) in ids.into_iter().zip(found) {
            match monster {
                Some(monster) if monster.field() == field => here.push(monster),
                _ => gone.push(id),
            }
        }
        if !gone.is_empty() {
            self.prune(tenant, field, gone).await?;
        }
        Ok(here)
    }

    /// Hits a monster. `amount` must be at least 1.
    pub async fn damage(
        &self,
        tenant: Tenant,
        id: MonsterId,
        character: CharacterId,
        amount: i64,
    ) -> Result<Hit> {
        let amount = match u64::try_from(amount) {
            Ok(amount) if amount > 0 => amount,
            _ => {
                let problem = format!("{amount}, expected at least 1");
                return Err(Error::Invalid { what: "damage", problem });
            }
        };
        let key = MONSTER.key(id);
        self.store
            .scope(tenant)
            .transact(move |tx| {
                let Some(mut monster) = tx.get(&key)? else { return Ok(Hit::NotFound) };
                let hit = rules::strike(&mut monster, character, amount);
                if hit != Hit::AlreadyDead {
                    tx.put(&key, &monster)?;
                }
                Ok(hit)
            })
            .await
    }

    /// Removes a monster, dead or alive: record, index and id in one step. `true` for the one caller whose step
    /// removed it.
    pub async fn remove(&self, tenant: Tenant, id: MonsterId) -> Result<bool> {
        let key = MONSTER.key(id);
        self.store
            .scope(tenant)
            .transact(move |tx| {
                let Some(monster) = tx.get(&key)? else { return Ok(false) };
                tx.del(&key)?;
                tx.srem(&field_key(&monster.field()), &id)?;
                ids().release(tx, &id)?;
                Ok(true)
            })
            .await
    }

    /// Removes entries from a field's index whose monster is still not there: ids are used again, so what was
    /// gone a moment ago is looked at once more in the step that removes it.
    async fn prune(&self, tenant: Tenant, field: Field, gone: Vec<MonsterId>) -> Result<()> {
        let scope = self.store.scope(tenant);
        let scope = gone.iter().fold(scope, |scope, id| scope.announce(&MONSTER.key(id), Read::Get));
        scope
            .transact(move |tx| {
                for id in &gone {
                    if tx.get(&MONSTER.key(id))?.is_none_or(|monster| monster.field() != field) {
                        tx.srem(&field_key(&field), id)?;
                    }
                }
                Ok(())
            })
            .await
    }
}

/// What one step of a spawn came to.
enum Spawned {
    Monster(Box<Monster>),
    NotYet(Looked),
}

/// Takes an id, and writes record and index under it.
fn spawn(tx: &mut Tx<'_, Tenant>, request: &SpawnRequest) -> Result<Spawned> {
    let id = match ids().take(tx, |tx, id| tx.exists(&MONSTER.key(id)))? {
        Taken::Id(id) => id,
        Taken::NotYet(looked) => return Ok(Spawned::NotYet(looked)),
    };
    let monster = born(*tx.partition(), id, request);
    tx.put(&MONSTER.key(id), &monster)?;
    tx.sadd(&field_key(&request.field), &id)?;
    Ok(Spawned::Monster(Box::new(monster)))
}

/// The new monster.
fn born(tenant: Tenant, id: MonsterId, request: &SpawnRequest) -> Monster {
    Monster {
        id,
        tenant: Some(TenantFields {
            id: tenant.0,
            region: request.region.clone(),
            major_version: request.major_version,
            minor_version: request.minor_version,
            extra: Extra::default(),
        }),
        world: request.field.world,
        channel: request.field.channel,
        map: request.field.map,
        instance: request.field.instance,
        template: request.template,
        max_hp: request.max_hp,
        hp: request.max_hp,
        max_mp: request.max_mp,
        mp: request.max_mp,
        controller: CharacterId::default(),
        x: request.x,
        y: request.y,
        fh: request.fh,
        stance: request.stance,
        team: request.team,
        damage: Array::default(),
        effects: Array::default(),
        extra: Extra::default(),
    }
}
