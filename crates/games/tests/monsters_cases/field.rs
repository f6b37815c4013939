//! The index of a field: who is in it, and nobody else.

use super::World;
use bytes::Bytes;
use emberkeep_games::monsters::{MONSTER, MonsterId, SpawnRequest, field_key};
use emberkeep_games::world::Field;
use emberkeep_hot::Store;
use emberkeep_hot::command::Write;

impl World {
    /// Members of a field's index, living or not.
    async fn indexed(&self, field: Field) -> Vec<u32> {
        let members = self.scope.transact(move |tx| tx.smembers(&field_key(&field))).await;
        members.unwrap().into_iter().map(|id| id.0).collect()
    }
}

pub async fn a_spawned_monster_is_in_its_record_and_in_its_field(store: Store) {
    let world = World::new(&store);
    let request = SpawnRequest {
        max_mp: 30,
        x: -120,
        y: 315,
        region: "GMS".into(),
        major_version: 83,
        ..SpawnRequest::new(world.field, 100_100, 77)
    };
    let monster = world.monsters.spawn(world.tenant, request).await.unwrap();
    assert_eq!((monster.hp, monster.max_hp, monster.mp, monster.x, monster.team), (77, 77, 30, -120, -1));
    assert_eq!(monster.field(), world.field);
    let tenant = monster.tenant.as_ref().unwrap();
    assert_eq!((tenant.id, tenant.region.as_str(), tenant.major_version), (world.tenant.0, "GMS", 83));
    assert_eq!(world.get(monster.id).await, monster);
    assert_eq!(world.monsters.in_field(world.tenant, world.field).await, Ok(vec![monster]));
}

pub async fn a_field_lists_its_own_monsters_only(store: Store) {
    let world = World::new(&store);
    let here = world.spawn_id().await;
    let elsewhere = Field { map: 7, ..world.field };
    let request = SpawnRequest::new(elsewhere, 1, 1);
    let other = world.monsters.spawn(world.tenant, request).await.unwrap().id.0;
    assert_eq!((world.listed().await, world.indexed(elsewhere).await), (vec![here], vec![other]));
    assert!(world.remove(here).await);
    assert!(world.listed().await.is_empty());
    assert!(world.indexed(world.field).await.is_empty());
}

pub async fn a_ghost_is_not_listed_and_is_pruned(store: Store) {
    let world = World::new(&store);
    let (ghost, living) = (world.spawn_id().await, world.spawn_id().await);
    world.foreign(&MONSTER.key(MonsterId(ghost)), Write::Del).await;
    assert_eq!(world.indexed(world.field).await, [ghost, living]);
    assert_eq!(world.listed().await, [living]);
    assert_eq!(world.indexed(world.field).await, [living]);
}

pub async fn an_index_entry_of_a_monster_elsewhere_is_pruned(store: Store) {
    let world = World::new(&store);
    let living = world.spawn_id().await;
    let elsewhere = Field { channel: 9, ..world.field };
    world.foreign(&field_key(&elsewhere), Write::SAdd(vec![Bytes::from(living.to_string())])).await;
    assert_eq!(world.monsters.in_field(world.tenant, elsewhere).await, Ok(vec![]));
    assert!(world.indexed(elsewhere).await.is_empty());
    assert_eq!(world.listed().await, [living]);
}
