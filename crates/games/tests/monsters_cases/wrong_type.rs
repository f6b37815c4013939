//! Keys of a wrong type prevent neither spawns nor removals.

use super::*;
use emberkeep_games::monsters::*;
use emberkeep_games::world::Field;
use emberkeep_hot::{Error as HotError, Store};

impl World {
    /// Writes strings in the place of the keys that the monsters of a tenant share, except the counter.
    async fn make_shared_wrong(&self) {
        self.external_set(&MONSTER_EFFECTS.key(), "no set").await;
        self.external_set(&DROP_TIMERS.key(), "no set").await;
        self.external_set(&MONSTER_ID_FREE.key(), "no list").await;
        self.external_set(&MONSTER_ID_RESTING.key(), "no set").await;
    }
}

pub async fn a_corrupt_cooldown_index_stops_no_removal_and_no_spawn(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_laden().await;
    world.external_set(&MONSTER_COOLDOWNS.key(id), "no index").await;
    // A new cooldown creates the index again. The sweep finds earlier ones.
    world.cool(id, 3).await;
    assert_eq!(world.monsters.clear_cooldowns(world.tenant, id).await, Ok(1));
    world.external_set(&MONSTER_COOLDOWNS.key(id), "no index").await;
    assert_eq!(world.monsters.clear_cooldown(world.tenant, id, SkillId(2)).await, Ok(true));
    world.external_set(&MONSTER_COOLDOWNS.key(id), "no index").await;
    assert!(world.remove(id.0).await);
    assert_eq!(world.stored(&MONSTER_COOLDOWNS.key(id)).await, None);
    world.external_set(&MONSTER_COOLDOWNS.key(id), "no index").await;
    assert_eq!(world.spawn(10).await.id, id);
    assert_eq!(world.stored(&MONSTER_COOLDOWNS.key(id)).await, None);
}

pub async fn corrupt_deadlines_stop_no_spawn_no_kill_and_no_removal(store: Store) {
    let world = World::new(&store);
    let (first, second, stays) =
        (world.spawn_laden().await, world.spawn_laden().await, world.spawn_laden().await);
    let (drop, effects) = (world.drop_due(stays).await, world.effects_due(stays).await);
    world.external_set(&MONSTER_EFFECTS.key(), "no set").await;
    world.external_set(&DROP_TIMERS.key(), "no set").await;
    world.kill(first).await;
    assert_eq!(world.stored(&DROP_TIMER.key(first)).await, None);
    assert!(world.remove(first.0).await && world.remove(second.0).await);
    assert_eq!(world.monsters.unregister_drop_timer(world.tenant, second).await, Ok(false));
    assert_eq!(world.spawn(10).await.id, second);
    // Calls for due work fail until a sweep has rebuilt the sets.
    let reported = world.monsters.run_due_effects(world.tenant, 10).await.unwrap_err().to_string();
    assert!(reported.contains(&world.name_of(&MONSTER_EFFECTS.key())), "{reported}");
    world.sweep().await;
    assert_eq!((world.drop_due(stays).await, world.effects_due(stays).await), (drop, effects));
}

pub async fn an_id_that_cannot_be_released_stops_no_removal(store: Store) {
    for world in [World::new(&store), World::resting(&store, ms(60_000))] {
        let (one, many) = (world.spawn_laden().await, [world.spawn_id().await, world.spawn_id().await]);
        world.make_shared_wrong().await;
        assert!(world.remove(one.0).await);
        let destroyed = world.monsters.destroy_in_field(world.tenant, world.field).await.unwrap();
        assert_eq!((destroyed.ids.len(), destroyed.stopped), (many.len(), None));
        // The owner of the key is unknown: it stays, and a spawn fails with its name.
        assert_eq!(world.stored(&MONSTER_ID_FREE.key()).await.as_deref(), Some("no list"));
        let request = SpawnRequest::new(world.field, 1, 1);
        let reported = world.monsters.spawn(world.tenant, request).await.unwrap_err();
        assert!(matches!(&reported, Error::Store(HotError::WrongType { .. })), "{reported:?}");
        world.monsters.teardown(world.tenant).await.unwrap();
    }
}

pub async fn damage_that_no_hits_add_up_to_is_a_corrupt_monster(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let mut json: serde_json::Value =
        serde_json::from_str(&world.stored(&MONSTER.key(id)).await.unwrap()).unwrap();
    json["damageEntries"] = serde_json::json!([{"characterId": 7, "damage": u64::MAX}]);
    world.external_set(&MONSTER.key(id), &json.to_string()).await;
    let reported = world.monsters.get(world.tenant, id).await.unwrap_err();
    assert!(matches!(&reported, Error::Store(HotError::Corrupt { .. })), "{reported:?}");
    assert!(reported.to_string().contains(&world.name_of(&MONSTER.key(id))), "{reported}");
}

pub async fn a_field_whose_index_is_corrupt_can_be_cleared(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_laden().await;
    let (elsewhere, index) = (Field { map: 7, ..world.field }, field_key(&world.field));
    let fine = world.spawn_in(elsewhere, 10).await.id;
    world.external_set(&index, "no set").await;
    assert!(world.remove(id.0).await);
    assert_eq!(world.stored(&index).await.as_deref(), Some("no set"));
    assert_eq!(world.listed_in(elsewhere).await, [fine.0]);
    world.external_del(&index).await;
}

pub async fn a_teardown_leaves_nothing_whatever_is_corrupt(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_laden().await;
    for _ in 0..40 {
        world.spawn_id().await;
    }
    world.external_set(&MONSTER_COOLDOWNS.key(id), "no index").await;
    world.external_set(&DROP_TIMER.key(MonsterId(1_234_567_890)), "of no monster").await;
    world.external_set(&field_key(&world.field), "no set").await;
    world.external_set(&MONSTER.key(MonsterId(1_500_000_000)), "{").await;
    world.make_shared_wrong().await;
    let report = world.monsters.teardown(world.tenant).await.unwrap();
    assert_eq!((report.monsters, report.cooldowns, report.discarded.len()), (42, 2, 3), "{report:?}");
    assert_eq!(report.corrupt, []);
    world.assert_torn_down().await;
    assert_eq!(world.spawn(1).await.id.0, FIRST + 41, "the counter can be read, and goes on");
}
