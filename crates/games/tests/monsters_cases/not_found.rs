//! Monsters that do not exist: another tenant's, a removed one, an id that was never assigned.

use super::*;
use emberkeep_games::monsters::{
    DropTimerRequest, EffectRequest, Error, MONSTER, MonsterId, Position, SkillId, TeardownReport,
};
use emberkeep_games::world::Tenant;
use emberkeep_hot::Store;
use uuid::Uuid;

/// Every call fails with `NotFound`.
async fn is_nowhere(world: &World, tenant: Tenant, id: MonsterId) {
    let (monsters, none) = (&world.monsters, Err(Error::NotFound { id }));
    assert_eq!(monsters.get(tenant, id).await.map(drop), none);
    assert_eq!(monsters.damage(tenant, id, ALICE, 1).await.map(drop), none);
    assert_eq!(monsters.damage_over_time(tenant, id, ALICE, 1).await.map(drop), none);
    assert_eq!(monsters.damage_leader(tenant, id).await.map(drop), none);
    assert_eq!(monsters.heal(tenant, id, 1).await.map(drop), none);
    assert_eq!(monsters.use_mp(tenant, id, 1).await.map(drop), none);
    assert_eq!(monsters.move_to(tenant, id, Position::default()).await, none);
    assert_eq!(monsters.move_to_field(tenant, id, world.field, Position::default()).await.map(drop), none);
    assert_eq!(monsters.control(tenant, id, ALICE).await.map(drop), none);
    assert_eq!(monsters.release_control(tenant, id, ALICE).await.map(drop), none);
    let poison = EffectRequest::new(BOB, "POISON", 1, ms(10));
    assert_eq!(monsters.apply_effect(tenant, id, poison).await.map(drop), none);
    assert_eq!(monsters.cancel_effect(tenant, id, Uuid::nil()).await.map(drop), none);
    assert_eq!(monsters.cancel_status(tenant, id, "POISON").await.map(drop), none);
    assert_eq!(monsters.cancel_effects(tenant, id).await.map(drop), none);
    assert_eq!(monsters.tick_effects(tenant, id).await.map(drop), none);
    assert_eq!(monsters.start_cooldown(tenant, id, SkillId(1), ms(10)).await, none);
    assert_eq!(monsters.is_cooling(tenant, id, SkillId(1)).await.map(drop), none);
    assert_eq!(monsters.cooldown_remaining(tenant, id, SkillId(1)).await.map(drop), none);
    assert_eq!(monsters.clear_cooldown(tenant, id, SkillId(1)).await.map(drop), none);
    assert_eq!(monsters.clear_cooldowns(tenant, id).await.map(drop), none);
    let drops = DropTimerRequest { period: ms(10), weapon_attack: 1 };
    assert_eq!(monsters.register_drop_timer(tenant, id, drops).await.map(drop), none);
    assert_eq!(monsters.drop_timer(tenant, id).await, Ok(None));
    assert_eq!(monsters.record_drop_hit(tenant, id).await.map(drop), none);
    assert_eq!(monsters.unregister_drop_timer(tenant, id).await, Ok(false));
    assert_eq!(monsters.remove(tenant, id).await, Ok(false));
}

pub async fn a_monster_of_another_tenant_is_not_found(store: Store) {
    let (world, stranger) = (World::new(&store), World::new(&store));
    let id = world.spawn(10).await.id;
    world.cool(id, 1).await;
    world.register(id, 1).await;
    world.poison(id, 1, 60_000, 1).await;
    world.age_timer(id, 1_000).await;
    let before = world.get(id).await;
    is_nowhere(&world, stranger.tenant, id).await;
    assert_eq!(stranger.listed().await, [0; 0]);
    assert_eq!(world.monsters.due_drops(stranger.tenant, 100).await.unwrap().done, []);
    assert_eq!(world.monsters.run_due_effects(stranger.tenant, 100).await.unwrap().done, []);
    assert!(world.monsters.destroy_in_field(stranger.tenant, world.field).await.unwrap().ids.is_empty());
    assert_eq!(world.monsters.teardown(stranger.tenant).await, Ok(TeardownReport::default()));
    assert_eq!(world.get(id).await, before);
    assert!(world.is_cooling(id, 1).await);
    assert_eq!(world.monsters.due_drops(world.tenant, 100).await.unwrap().done.len(), 1);
    assert_eq!(stranger.keys().await, [""; 0]);
}

pub async fn a_monster_that_vanished_between_two_calls_is_not_found(store: Store) {
    let world = World::new(&store);
    let (removed, deleted) = (world.spawn(10).await.id, world.spawn(10).await.id);
    for id in [removed, deleted] {
        world.monsters.damage(world.tenant, id, ALICE, 1).await.unwrap();
    }
    assert!(world.remove(removed.0).await);
    world.external_del(&MONSTER.key(deleted)).await;
    is_nowhere(&world, world.tenant, removed).await;
    is_nowhere(&world, world.tenant, deleted).await;
}

pub async fn an_id_out_of_range_is_not_found(store: Store) {
    let world = World::new(&store);
    for id in [0, 1, 999_999_999, 2_000_000_001, u32::MAX] {
        is_nowhere(&world, world.tenant, MonsterId(id)).await;
    }
    assert_eq!(world.keys().await, [""; 0]);
}
