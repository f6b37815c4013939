//! Removal of monsters: one, those of a field, of a tenant, of all.

use super::*;
use bytes::Bytes;
use emberkeep_games::monsters::*;
use emberkeep_games::world::Field;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::{Error as HotError, Store};

impl World {
    /// A monster with everything that a monster can have.
    pub async fn spawn_laden(&self) -> MonsterId {
        let id = self.spawn(100).await.id;
        self.cool(id, 1).await;
        self.cool(id, 2).await;
        self.register(id, 60_000).await;
        self.poison(id, 1, 60_000, 1_000).await;
        id
    }

    /// What a crashed external service left: a timer and markers without a monster, a corrupt record, and a
    /// monster in a field whose index has a wrong type.
    async fn leave_external_rubbish(&self) {
        let missing = MonsterId(1_234_567_890);
        let end = self.scope.store().now().await.unwrap() + 600_000;
        let marker = MONSTER_COOLDOWN.key(missing, SkillId(9));
        self.external(&marker, Write::Set(Bytes::from_static(b"1"), Expiry::At(end))).await;
        self.external_set(&MONSTER_COOLDOWN.key(missing, SkillId(10)), "1").await;
        self.external_set(&DROP_TIMER.key(missing), "no timer at all").await;
        self.external_set(&MONSTER.key(MonsterId(1_234_567_891)), "no monster at all").await;
        let members = ["1234567890", "1234567891", "a word"].map(|text| Bytes::from(text.to_owned()));
        self.external(&field_key(&self.field), Write::SAdd(members.to_vec())).await;
        let corrupt = Field { map: 1, ..self.field };
        self.spawn_in(corrupt, 10).await;
        self.external_set(&field_key(&corrupt), "no set at all").await;
        self.external_set(&MONSTER_COOLDOWNS.key(missing), "no index at all").await;
    }
}

pub async fn a_removal_takes_everything_of_a_monster(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_laden().await;
    assert!(world.keys().await.len() >= 9, "{:?}", world.keys().await);
    let last = world.get(id).await;
    assert_eq!(world.monsters.take(world.tenant, id).await, Ok(Some(last)), "as it was at its end");
    assert_eq!(world.monsters.take(world.tenant, id).await, Ok(None));
    assert!(!world.remove(id.0).await);
    let left = world.keys().await;
    assert!(left.len() == 2 && left.iter().all(|key| key.contains("monster-ids")), "{left:?}");
    assert_eq!(world.free().await, [id.0]);
}

/// Hits, ticks and drops run during the removal. Nothing of the monster reappears.
pub async fn nothing_brings_a_removed_monster_back(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_laden().await;
    world.age_effects(id, 5_000).await;
    world.age_timer(id, 61_000).await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let world = world.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let _ = world.monsters.damage(world.tenant, id, ALICE, 1).await;
                let _ = world.monsters.start_cooldown(world.tenant, id, SkillId(3), ms(60_000)).await;
                let _ = world.monsters.record_drop_hit(world.tenant, id).await;
                world.monsters.run_due_effects(world.tenant, 10).await.unwrap();
                world.monsters.due_drops(world.tenant, 10).await.unwrap();
            }
        }));
    }
    assert!(world.remove(id.0).await);
    for task in tasks {
        task.await.unwrap();
    }
    let left = world.keys().await;
    assert!(left.len() == 2 && left.iter().all(|key| key.contains("monster-ids")), "{left:?}");
}

pub async fn a_field_is_destroyed_whole_and_others_stay(store: Store) {
    let world = World::new(&store);
    let (laden, plain) = (world.spawn_laden().await, world.spawn(10).await.id);
    let (corpse, stale) = (world.spawn(1).await.id, world.spawn(1).await.id);
    world.kill(corpse).await;
    world.external_del(&MONSTER.key(stale)).await;
    let elsewhere = Field { channel: 7, ..world.field };
    let stays = world.spawn_in(elsewhere, 10).await.id;
    world.cool(stays, 1).await;
    let corrupt = MonsterId(1_500_000_000);
    world.external_set(&MONSTER.key(corrupt), "{").await;
    let members = [corrupt, stays].map(|id| Bytes::from(id.to_string()));
    world.external(&field_key(&world.field), Write::SAdd(members.to_vec())).await;

    let mut destroyed = world.monsters.destroy_in_field(world.tenant, world.field).await.unwrap();
    let reported: Vec<MonsterId> = destroyed.monsters.iter().map(|monster| monster.id).collect();
    assert_eq!((reported, &destroyed.stopped), (destroyed.ids.clone(), &None));
    destroyed.ids.sort();
    assert_eq!(destroyed.ids, [laden, plain, corpse]);
    let [reported @ HotError::Corrupt { .. }] = &destroyed.corrupt[..] else { panic!("{destroyed:?}") };
    assert!(reported.to_string().contains(&world.name_of(&MONSTER.key(corrupt))), "{reported}");
    assert_eq!(world.indexed(world.field).await, [corrupt.0]);
    assert_eq!(world.listed_in(elsewhere).await, [stays.0]);
    assert!(world.is_cooling(stays, 1).await);
    assert_eq!((world.drop_due(laden).await, world.effects_due(laden).await), (None, None));
    let mut free = world.free().await;
    free.sort();
    assert_eq!(free, [laden.0, plain.0, corpse.0]);
    let again = world.monsters.destroy_in_field(world.tenant, world.field).await.unwrap();
    assert!(again.ids.is_empty());
}

pub async fn a_field_of_more_than_a_transaction_reads_is_listed_and_destroyed(store: Store) {
    const MONSTERS: usize = 1_100;
    let world = World::new(&store);
    for _ in 0..MONSTERS {
        world.spawn_id().await;
    }
    assert_eq!(world.listed().await.len(), MONSTERS);
    // Two concurrent calls: each monster is removed by one of them.
    let (one, other) = tokio::join!(
        world.monsters.destroy_in_field(world.tenant, world.field),
        world.monsters.destroy_in_field(world.tenant, world.field),
    );
    assert_eq!(one.unwrap().ids.len() + other.unwrap().ids.len(), MONSTERS);
    let free = world.scope.llen(&MONSTER_ID_FREE.key()).await;
    assert_eq!((world.listed().await.len(), free), (0, Ok(MONSTERS)));
}

/// Only the id keys of a tenant are left.
impl World {
    pub async fn assert_torn_down(&self) {
        let left = self.keys().await;
        assert!(left.iter().all(|key| key.contains("atlas:monster-ids:")), "{left:?}");
    }
}

pub async fn a_teardown_leaves_nothing_of_a_tenant_and_others_alone(store: Store) {
    let (world, other) = (World::new(&store), World::new(&store));
    for _ in 0..40 {
        world.spawn_laden().await;
    }
    world.leave_external_rubbish().await;
    let stays = other.spawn_laden().await;
    let before = other.keys().await;
    let report = world.monsters.teardown(world.tenant).await.unwrap();
    assert_eq!((report.monsters, report.cooldowns, report.corrupt), (42, 82, vec![]));
    let [discarded @ HotError::WrongType { .. }] = &report.discarded[..] else {
        panic!("{:?}", report.discarded)
    };
    let corrupt = field_key(&Field { map: 1, ..world.field });
    assert!(discarded.to_string().contains(&world.name_of(&corrupt)), "{discarded}");
    world.assert_torn_down().await;
    assert_eq!(world.monsters.teardown(world.tenant).await, Ok(TeardownReport::default()));
    assert_eq!(other.keys().await, before);
    assert_eq!(other.listed().await, [stays.0]);
    // Ids continue, and nothing else reappears.
    let free = world.free().await;
    let id = world.spawn(10).await.id;
    assert_eq!(id.0, free[0]);
    assert!(!world.is_cooling(id, 1).await);
}

pub async fn a_teardown_lets_ids_rest(store: Store) {
    let world = World::resting(&store, ms(60_000));
    let ids = [world.spawn_laden().await, world.spawn_laden().await];
    assert_eq!(world.monsters.teardown(world.tenant).await.unwrap().monsters, 2);
    let left = world.keys().await;
    assert!(left.len() == 2 && left.iter().all(|key| key.contains("monster-ids")), "{left:?}");
    assert_eq!(world.spawn_id().await, ids[1].0 + 1);
}

pub async fn a_teardown_of_all_leaves_nothing_of_any_tenant(store: Store) {
    let worlds = [World::new(&store), World::new(&store), World::new(&store)];
    for world in &worlds[..2] {
        world.spawn_laden().await;
        world.leave_external_rubbish().await;
    }
    // Only the id keys of the third are left.
    let id = worlds[2].spawn_id().await;
    assert!(worlds[2].remove(id).await);
    let report = worlds[0].monsters.teardown_all().await.unwrap();
    assert!(report.monsters >= 6 && report.cooldowns >= 8 && report.discarded.len() >= 2, "{report:?}");
    assert_eq!(report.corrupt, []);
    for world in &worlds {
        world.assert_torn_down().await;
    }
}
