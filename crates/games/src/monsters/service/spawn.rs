//! Birth: an id, a record, a place in a field.

use super::cooldowns::cooldowns;
use super::*;
use crate::care::{self, Keys};
use crate::monsters::model::{DamageEntries, Monster};
use crate::world::{CharacterId, Field, REGION_BYTES_MAX, word_problem};
use emberkeep_hot::command::{RawKey, Read};
use emberkeep_primitives::sequence::SearchProgress;
use emberkeep_primitives::{IdResult, index};
use emberkeep_schema::{Array, Extra, KeyLayout};

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

impl Monsters {
    /// Brings a monster into a field: id, record and index in one transaction. It inherits nothing that is known of an earlier
    /// monster of the same id, also if an external client deleted that one's record and nothing else. Cooldowns that another
    /// service started for that one are known after a [sweep](Monsters::sweep), and until then the new one has them.
    pub async fn spawn(&self, tenant: Tenant, request: SpawnRequest) -> Result<Monster> {
        if request.max_hp == 0 {
            return Err(Error::invalid("max hp", "0, expected at least 1"));
        }
        if let Some(problem) = word_problem(&request.region, REGION_BYTES_MAX) {
            return Err(Error::invalid("region", problem));
        }
        let scope = self.ids().prefetched(self.scope(tenant));
        let mut search = self.ids().search();
        loop {
            let layout = self.store.key_layout().clone();
            let birth = Birth { request: request.clone(), ids: self.ids(), layout };
            match care::run(&scope, move |tx, keys| birth.transaction(tx, keys)).await? {
                Spawned::Monster(monster) => return Ok(*monster),
                Spawned::NotYet(looked) => search.go_on(looked)?,
            }
        }
    }
}

/// What one transaction of a spawn came to.
enum Spawned {
    Monster(Box<Monster>),
    NotYet(SearchProgress),
}

/// What a transaction of a spawn needs.
#[derive(Clone)]
struct Birth {
    request: SpawnRequest,
    ids: Ids,
    layout: KeyLayout,
}

impl Birth {
    /// Takes an id, and writes record and index under it.
    fn transaction(&self, tx: &mut Tx<'_, Tenant>, keys: Keys) -> Result<Spawned> {
        let id = match self.ids.take(tx, |tx, id| self.is_taken(tx, *id))? {
            IdResult::Id(id) => id,
            IdResult::NotYet(looked) => return Ok(Spawned::NotYet(looked)),
        };
        remove::forget(tx, id, keys)?;
        let monster = born(*tx.partition(), id, &self.request);
        tx.put(&MONSTER.key(id), &monster)?;
        index::enter::<ByField>(tx, &id, &monster)?;
        Ok(Spawned::Monster(Box::new(monster)))
    }

    /// Whether an id cannot be handed out. One that can has no cooldowns afterwards.
    fn is_taken(&self, tx: &mut Tx<'_, Tenant>, id: MonsterId) -> hot::Result<bool> {
        self.look_together(tx, id)?;
        if tx.exists(&MONSTER.key(id))? {
            return Ok(true);
        }
        Ok(cooldowns(id).clear_all(tx)?.more)
    }

    /// Asks for all that the decision about an id needs in one round trip. One by one, an engine that is far away would
    /// learn about an id that others have taken meanwhile, again and again.
    fn look_together(&self, tx: &mut Tx<'_, Tenant>, id: MonsterId) -> hot::Result<()> {
        let (layout, tenant) = (&self.layout, *tx.partition());
        let record = RawKey::from(MONSTER.key(id).to_text(layout, &tenant));
        let cooldowns = RawKey::from(MONSTER_COOLDOWNS.key(id).to_text(layout, &tenant));
        tx.raw_read_many(&[(record, Read::Exists), (cooldowns, remove::known_cooldowns())]).map(drop)
    }
}

/// The new monster.
fn born(tenant: Tenant, id: MonsterId, request: &SpawnRequest) -> Monster {
    Monster {
        id,
        tenant_id: Some(tenant.0),
        region: request.region.clone(),
        major_version: request.major_version,
        minor_version: request.minor_version,
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
        damage: DamageEntries::default(),
        effects: Array::default(),
        extra: Extra::default(),
    }
}
