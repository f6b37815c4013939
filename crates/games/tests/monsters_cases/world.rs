//! The context of a case: its own tenant, an external client, and functions that shift stored times.

use bytes::Bytes;
use emberkeep_games::monsters::*;
use emberkeep_games::world::{CharacterId, Field, Tenant};
use emberkeep_hot::command::{Expiry, Read, Reply, Write};
use emberkeep_hot::{Error as HotError, Scope, Store, Tx};
use emberkeep_schema::{Family, Key};
use std::time::Duration;
use uuid::Uuid;

pub const FIRST: u32 = 1_000_000_000;
pub const ALICE: CharacterId = CharacterId(1);
pub const BOB: CharacterId = CharacterId(2);

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A tenant of the case's own.
#[derive(Clone)]
pub struct World {
    pub monsters: Monsters,
    pub scope: Scope<Tenant>,
    pub tenant: Tenant,
    pub field: Field,
}

impl World {
    pub fn new(store: &Store) -> World {
        let tenant = Tenant(Uuid::new_v4());
        let field = Field { world: 0, channel: 1, map: 100_000_000, instance: Uuid::nil() };
        World { monsters: Monsters::new(store.clone()), scope: store.scope(tenant), tenant, field }
    }

    /// The same, with ids that rest.
    pub fn resting(store: &Store, rest: Duration) -> World {
        let world = World::new(store);
        World { monsters: world.monsters.clone().reuse_after(rest).unwrap(), ..world }
    }

    pub async fn spawn(&self, hp: u32) -> Monster {
        self.spawn_in(self.field, hp).await
    }

    pub async fn spawn_in(&self, field: Field, hp: u32) -> Monster {
        self.monsters.spawn(self.tenant, SpawnRequest::new(field, 100_100, hp)).await.unwrap()
    }

    pub async fn spawn_id(&self) -> u32 {
        self.spawn(10).await.id.0
    }

    pub async fn get(&self, id: MonsterId) -> Monster {
        self.monsters.get(self.tenant, id).await.expect("the monster is there")
    }

    pub async fn kill(&self, id: MonsterId) {
        assert!(self.monsters.damage(self.tenant, id, ALICE, i64::MAX).await.unwrap().killed);
    }

    pub async fn remove(&self, id: u32) -> bool {
        self.monsters.remove(self.tenant, MonsterId(id)).await.unwrap()
    }

    /// Ids that the field lists, in order.
    pub async fn listed(&self) -> Vec<u32> {
        self.listed_in(self.field).await
    }

    pub async fn listed_in(&self, field: Field) -> Vec<u32> {
        let found = self.monsters.in_field(self.tenant, field).await.unwrap();
        assert_eq!(found.corrupt, []);
        found.living.iter().map(|monster| monster.id.0).collect()
    }

    /// Members of a field's index, living or not.
    pub async fn indexed(&self, field: Field) -> Vec<u32> {
        self.scope.smembers(&field_key(&field)).await.unwrap().into_iter().map(|id| id.0).collect()
    }

    /// Released ids, the latest first.
    pub async fn free(&self) -> Vec<u32> {
        let free = self.scope.lrange(&MONSTER_ID_FREE.key(), 0, 900).await.unwrap();
        free.into_iter().map(|id| id.0).collect()
    }

    pub async fn poison(&self, id: MonsterId, value: i32, duration: u64, interval: u64) -> StatusEffect {
        let request = EffectRequest::new(BOB, rules::POISON, value, ms(duration)).every(ms(interval));
        self.monsters.apply_effect(self.tenant, id, request).await.unwrap().effect
    }

    pub async fn cool(&self, id: MonsterId, skill: u16) {
        self.monsters.start_cooldown(self.tenant, id, SkillId(skill), ms(60_000)).await.unwrap();
    }

    pub async fn is_cooling(&self, id: MonsterId, skill: u16) -> bool {
        self.monsters.is_cooling(self.tenant, id, SkillId(skill)).await.unwrap()
    }

    pub async fn register(&self, id: MonsterId, period: u64) -> DropTimer {
        let request = DropTimerRequest { period: ms(period), weapon_attack: 30 };
        self.monsters.register_drop_timer(self.tenant, id, request).await.unwrap()
    }

    /// When a monster's effects are due, by the due queue.
    pub async fn effects_due(&self, id: MonsterId) -> Option<i64> {
        self.scope.zscore(&MONSTER_EFFECTS.key(), &id).await.unwrap().map(|at| at as i64)
    }

    /// When a monster's drop is due, by the due queue.
    pub async fn drop_due(&self, id: MonsterId) -> Option<i64> {
        self.scope.zscore(&DROP_TIMERS.key(), &id).await.unwrap().map(|at| at as i64)
    }
}

/// Functions that shift stored times into the past.
impl World {
    /// Makes a monster's effects older, as if time had passed.
    pub async fn age_effects(&self, id: MonsterId, by: i64) {
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            let mut monster = tx.get(&MONSTER.key(id))?.expect("the monster is there");
            for effect in &mut monster.effects {
                effect.created_at_ms -= by;
                effect.expires_at_ms -= by;
                effect.last_tick_ms -= if effect.last_tick_ms > 0 { by } else { 0 };
            }
            if let Some(at) = tx.zscore(&MONSTER_EFFECTS.key(), &id)? {
                tx.zadd(&MONSTER_EFFECTS.key(), &id, at - by as f64)?;
            }
            tx.put(&MONSTER.key(id), &monster)
        };
        self.scope.transact::<(), HotError, _>(transaction).await.unwrap();
    }

    /// Makes a monster's drop timer older.
    pub async fn age_timer(&self, id: MonsterId, by: i64) {
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            let mut timer = tx.get(&DROP_TIMER.key(id))?.expect("the timer is there");
            timer.last_drop_at_ms -= by;
            timer.last_hit_at_ms -= if timer.last_hit_at_ms > 0 { by } else { 0 };
            if let Some(at) = tx.zscore(&DROP_TIMERS.key(), &id)? {
                tx.zadd(&DROP_TIMERS.key(), &id, at - by as f64)?;
            }
            tx.put(&DROP_TIMER.key(id), &timer)
        };
        self.scope.transact::<(), HotError, _>(transaction).await.unwrap();
    }

    /// Shortens the rest of an id.
    pub async fn age_rest(&self, id: u32, by: i64) {
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            let at = tx.zscore(&MONSTER_ID_RESTING.key(), &MonsterId(id))?.expect("the id rests");
            tx.zadd(&MONSTER_ID_RESTING.key(), &MonsterId(id), at - by as f64)
        };
        self.scope.transact::<(), HotError, _>(transaction).await.unwrap();
    }
}

/// A service in another language: no types, no policies.
impl World {
    fn raw<F: Family<Partition = Tenant>>(&self, key: &Key<F>) -> Bytes {
        Bytes::from(self.name_of(key))
    }

    pub fn name_of<F: Family<Partition = Tenant>>(&self, key: &Key<F>) -> String {
        key.to_text(self.scope.store().key_layout(), &self.tenant)
    }

    pub async fn external<F: Family<Partition = Tenant>>(&self, key: &Key<F>, write: Write) {
        let key = self.raw(key);
        let transaction = move |tx: &mut Tx<'_, Tenant>| tx.raw_write(key.clone(), write.clone());
        self.scope.transact::<(), HotError, _>(transaction).await.unwrap();
    }

    pub async fn external_set<F: Family<Partition = Tenant>>(&self, key: &Key<F>, text: &str) {
        self.external(key, Write::Set(Bytes::from(text.to_owned()), Expiry::Never)).await;
    }

    pub async fn external_del<F: Family<Partition = Tenant>>(&self, key: &Key<F>) {
        self.external(key, Write::Del).await;
    }

    /// The bytes at a key.
    pub async fn stored<F: Family<Partition = Tenant>>(&self, key: &Key<F>) -> Option<String> {
        let replies = self.scope.store().engine().read_many(vec![(self.raw(key), Read::Get)]).await.unwrap();
        match &replies[0] {
            Reply::Blob(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            _ => None,
        }
    }

    /// All keys of the tenant in the store, without those of the engine.
    pub async fn keys(&self) -> Vec<String> {
        let (engine, pattern) = (self.scope.store().engine(), format!("*{}*", self.tenant));
        let (mut keys, mut from) = (std::collections::BTreeSet::new(), None);
        loop {
            let page = engine.scan(from, pattern.as_bytes(), 1_000).await.unwrap();
            keys.extend(page.keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let own = |key: &String| key.contains("ember:r:") || key.contains("ember:turn:");
        keys.into_iter().filter(|key| !own(key)).collect()
    }
}
