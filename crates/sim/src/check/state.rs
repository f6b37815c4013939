//! What the store holds of the game's tenants, after one full scan.

use super::reader::Reader;
use super::scan::KeyScan;
use crate::plan::Plan;
use emberkeep::games::monsters::{
    DROP_TIMER, DROP_TIMERS, DropTimer, MONSTER, MONSTER_COOLDOWN, MONSTER_COOLDOWNS, MONSTER_EFFECTS,
    MONSTER_ID_FREE, MONSTER_ID_NEXT, MONSTER_ID_RESTING, MONSTER_MAP, Monster,
};
use emberkeep::games::reactors::{
    REACTOR, REACTOR_COOLDOWN, REACTOR_COOLDOWNS, REACTOR_MAP, REACTOR_SPOTS, REACTORS_ALL, Reactor, Spot,
};
use emberkeep::games::world::{Field, Tenant};
use emberkeep::hot::command::{RawKey, Read, Reply};
use emberkeep::hot::{Result, Store, show};
use emberkeep::schema::{Declaration, Family};
use std::collections::HashSet;

/// Keys that one read asks for.
const PAGE: usize = 500;

/// Everything. Each thing stands beside the number of its tenant.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreState {
    pub(super) monsters: Vec<(u16, Monster)>,
    /// Entries of the fields' indexes.
    pub(super) in_fields: Vec<(u16, Field, u32)>,
    /// Ids that were counted out last.
    pub(super) counted: Vec<(u16, i64)>,
    pub(super) free: Vec<(u16, u32)>,
    pub(super) timers: Vec<(u16, u32, DropTimer)>,
    /// Skills that cool down: monster and skill.
    pub(super) cooling: Vec<(u16, u32, u16)>,
    pub(super) reactors: Vec<(u16, Reactor)>,
    pub(super) reactors_in_fields: Vec<(u16, Field, u32)>,
    /// Entries of the index of all reactors; on one server it does not say whose they are.
    pub(super) in_all: Vec<(Option<u16>, u32)>,
    /// Reactors of other tenants, where ids are one for all.
    pub(super) strange_reactors: HashSet<u32>,
    pub(super) cooling_spots: Vec<(u16, Field, Spot)>,
    pub(super) auxiliary: AuxiliaryIndexes,
    pub(super) keys: Vec<KeyState>,
    pub(super) corrupt: Vec<String>,
    pub(super) undeclared: Vec<String>,
    /// Whether the store holds no other tenant's keys of these families.
    pub(super) alone: bool,
    /// The engine's time when all was read.
    pub(super) now_ms: i64,
}

/// What stands under `ember:`, beside the keys of the documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuxiliaryIndexes {
    pub(super) resting: Vec<(u16, u32)>,
    /// When something happens to which monster's effects.
    pub(super) effects: Vec<(u16, u32, i64)>,
    /// When which monster drops something.
    pub(super) drops: Vec<(u16, u32, i64)>,
    /// Monster, skill, end of the cooldown.
    pub(super) cooling: Vec<(u16, u32, u16, i64)>,
    /// Which reactor stands where.
    pub(super) spots: Vec<(u16, Field, u32, Spot)>,
    pub(super) cooling_spots: Vec<(u16, Field, Spot, i64)>,
}

/// A key and its end.
#[derive(Clone, Debug)]
pub(crate) struct KeyState {
    pub(super) text: String,
    /// `None` = the engine's own.
    pub(super) family: Option<&'static Declaration>,
    /// Milliseconds since 1970; -1 = never.
    pub(super) deadline_ms: i64,
}

impl StoreState {
    pub(crate) async fn read(store: &Store, plan: &Plan) -> Result<StoreState> {
        let scan = KeyScan::read(store, plan).await?;
        let mut reader = Reader { store, plan, scan: &scan, corrupt: Vec::new() };
        let mut state = StoreState::default();
        state.read_monsters(&mut reader).await?;
        state.read_reactors(&mut reader).await?;
        state.auxiliary = AuxiliaryIndexes::read(&mut reader).await?;
        state.corrupt = reader.corrupt;
        state.read_keys(store, &scan).await?;
        state.alone = scan.strangers == 0 && state.strange_reactors.is_empty();
        state.undeclared = scan.undeclared.into_iter().collect();
        state.now_ms = store.now().await?;
        Ok(state)
    }

    async fn read_monsters(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let texts = reader.texts::<MONSTER, _>().await?;
        self.monsters =
            texts.into_iter().filter_map(|(tenant, _, monster)| Some((tenant?, monster))).collect();
        for (tenant, index, ids) in with_tenant(reader.sets::<MONSTER_MAP, _>().await?) {
            let (world, channel, map, instance) = MONSTER_MAP.parts(&index);
            let field = Field { world, channel, map, instance };
            self.in_fields.extend(ids.into_iter().map(|id| (tenant, field, id.0)));
        }
        for (tenant, _, next) in with_tenant(reader.texts::<MONSTER_ID_NEXT, _>().await?) {
            self.counted.push((tenant, next));
        }
        for (tenant, _, free) in with_tenant(reader.lists::<MONSTER_ID_FREE, _>().await?) {
            self.free.extend(free.into_iter().map(|id| (tenant, id.0)));
        }
        for (tenant, key, timer) in with_tenant(reader.texts::<DROP_TIMER, _>().await?) {
            self.timers.push((tenant, DROP_TIMER.parts(&key).0.0, timer));
        }
        for (tenant, key, _) in with_tenant(reader.texts::<MONSTER_COOLDOWN, _>().await?) {
            let (id, skill) = MONSTER_COOLDOWN.parts(&key);
            self.cooling.push((tenant, id.0, skill.0));
        }
        Ok(())
    }

    async fn read_reactors(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        for (_, _, reactor) in reader.texts::<REACTOR, _>().await? {
            match reader.plan.number_of(Tenant(reactor.tenant.id)) {
                Some(tenant) => self.reactors.push((tenant, reactor)),
                None => drop(self.strange_reactors.insert(reactor.id.0)),
            }
        }
        for (tenant, index, ids) in with_tenant(reader.sets::<REACTOR_MAP, _>().await?) {
            let (world, channel, map, instance) = REACTOR_MAP.parts(&index);
            let field = Field { world, channel, map, instance };
            self.reactors_in_fields.extend(ids.into_iter().map(|id| (tenant, field, id.0)));
        }
        for (tenant, _, ids) in reader.sets::<REACTORS_ALL, _>().await? {
            self.in_all.extend(ids.into_iter().map(|id| (tenant, id.0)));
        }
        for (tenant, key, _) in with_tenant(reader.texts::<REACTOR_COOLDOWN, _>().await?) {
            let (world, channel, map, instance, classification, x, y) = REACTOR_COOLDOWN.parts(&key);
            let field = Field { world, channel, map, instance };
            self.cooling_spots.push((tenant, field, Spot { classification, x, y }));
        }
        Ok(())
    }

    /// The ends of all keys but of other tenants' reactors, whose keys do not say whose they are.
    async fn read_keys(&mut self, store: &Store, scan: &KeyScan) -> Result<()> {
        let ours: HashSet<u32> = self.reactors.iter().map(|(_, reactor)| reactor.id.0).collect();
        let is_ours = |raw: &RawKey| match REACTOR::parse(store.key_layout(), raw) {
            Some((_, key)) => ours.contains(&REACTOR.parts(&key).0.0),
            None => true,
        };
        let declared = scan.declared.iter().filter(|(raw, _)| is_ours(raw));
        let declared = declared.map(|(raw, family)| (raw, Some(*family)));
        let all: Vec<_> = declared.chain(scan.engine.iter().map(|raw| (raw, None))).collect();
        for page in all.chunks(PAGE) {
            let reads = page.iter().map(|(raw, _)| ((*raw).clone(), Read::ExpireTime)).collect();
            for ((raw, family), reply) in page.iter().zip(store.engine().read_many(reads).await?) {
                // A key that is gone by now had an end, and it came.
                if let Reply::Int(deadline_ms @ -1..) = reply {
                    self.keys.push(KeyState { text: show(raw), family: *family, deadline_ms });
                }
            }
        }
        Ok(())
    }
}

impl AuxiliaryIndexes {
    async fn read(reader: &mut Reader<'_>) -> Result<AuxiliaryIndexes> {
        let mut auxiliary = AuxiliaryIndexes::default();
        for (tenant, _, ids) in with_tenant(reader.times::<MONSTER_ID_RESTING, _>().await?) {
            auxiliary.resting.extend(ids.into_iter().map(|(id, _)| (tenant, id.0)));
        }
        for (tenant, _, due) in with_tenant(reader.times::<MONSTER_EFFECTS, _>().await?) {
            auxiliary.effects.extend(due.into_iter().map(|(id, at)| (tenant, id.0, at)));
        }
        for (tenant, _, due) in with_tenant(reader.times::<DROP_TIMERS, _>().await?) {
            auxiliary.drops.extend(due.into_iter().map(|(id, at)| (tenant, id.0, at)));
        }
        for (tenant, key, skills) in with_tenant(reader.times::<MONSTER_COOLDOWNS, _>().await?) {
            let id = MONSTER_COOLDOWNS.parts(&key).0.0;
            auxiliary.cooling.extend(skills.into_iter().map(|(skill, end)| (tenant, id, skill.0, end)));
        }
        for (tenant, key, spots) in with_tenant(reader.hashes::<REACTOR_SPOTS, _, _>().await?) {
            let (world, channel, map, instance) = REACTOR_SPOTS.parts(&key);
            let field = Field { world, channel, map, instance };
            auxiliary.spots.extend(spots.into_iter().map(|(id, spot)| (tenant, field, id.0, spot)));
        }
        for (tenant, key, spots) in with_tenant(reader.times::<REACTOR_COOLDOWNS, _>().await?) {
            let (world, channel, map, instance) = REACTOR_COOLDOWNS.parts(&key);
            let field = Field { world, channel, map, instance };
            auxiliary.cooling_spots.extend(spots.into_iter().map(|(spot, end)| (tenant, field, spot, end)));
        }
        Ok(auxiliary)
    }
}

/// Keys that name their tenant, as those of these families do.
fn with_tenant<K, V>(found: Vec<(Option<u16>, K, V)>) -> impl Iterator<Item = (u16, K, V)> {
    found.into_iter().filter_map(|(tenant, key, value)| Some((tenant?, key, value)))
}
