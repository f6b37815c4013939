//! Healing, mana, control.

use super::*;
use emberkeep_games::monsters::{
    DropTimerRequest, EffectRequest, Error, Healing, ManaUse, Position, SkillId, SpawnRequest,
};
use emberkeep_games::world::CharacterId;
use emberkeep_hot::Store;

pub async fn healing_stops_at_the_full_health(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.monsters.damage(world.tenant, id, ALICE, 8).await.unwrap();
    assert_eq!(world.monsters.heal(world.tenant, id, 3).await, Ok(Healing { actual: 3, hp: 5 }));
    assert_eq!(world.monsters.heal(world.tenant, id, i64::MAX).await, Ok(Healing { actual: 5, hp: 10 }));
    assert_eq!(world.monsters.heal(world.tenant, id, 1).await, Ok(Healing { actual: 0, hp: 10 }));
    // The damage entries stay.
    assert_eq!(world.monsters.damage_leader(world.tenant, id).await, Ok(Some((ALICE, 8))));
}

pub async fn a_corpse_is_not_healed_and_does_nothing(store: Store) {
    let world = World::new(&store);
    let (monsters, tenant, id) = (&world.monsters, world.tenant, world.spawn(10).await.id);
    world.kill(id).await;
    let corpse = world.get(id).await;
    let dead = Err(Error::AlreadyDead { id });
    assert_eq!(monsters.heal(tenant, id, 5).await.map(drop), dead);
    assert_eq!(monsters.use_mp(tenant, id, 5).await.map(drop), dead);
    assert_eq!(monsters.control(tenant, id, ALICE).await.map(drop), dead);
    assert_eq!(monsters.move_to(tenant, id, Position::default()).await, dead);
    assert_eq!(monsters.move_to_field(tenant, id, world.field, Position::default()).await.map(drop), dead);
    assert_eq!(monsters.start_cooldown(tenant, id, SkillId(1), ms(10)).await, dead);
    let request = DropTimerRequest { period: ms(10), weapon_attack: 1 };
    assert_eq!(monsters.register_drop_timer(tenant, id, request).await.map(drop), dead);
    let request = EffectRequest::new(BOB, "STUN", 1, ms(10));
    assert_eq!(monsters.apply_effect(tenant, id, request).await.map(drop), dead);
    assert_eq!(world.get(id).await, corpse);
    assert_eq!(world.listed().await, [id.0]);
}

pub async fn mana_is_clamped(store: Store) {
    let world = World::new(&store);
    let request = SpawnRequest { max_mp: 30, ..SpawnRequest::new(world.field, 1, 1) };
    let id = world.monsters.spawn(world.tenant, request).await.unwrap().id;
    assert_eq!(world.monsters.use_mp(world.tenant, id, 12).await, Ok(ManaUse { actual: 12, mp: 18 }));
    assert_eq!(world.monsters.use_mp(world.tenant, id, i64::MAX).await, Ok(ManaUse { actual: 18, mp: 0 }));
    assert_eq!(world.monsters.use_mp(world.tenant, id, 1).await, Ok(ManaUse { actual: 0, mp: 0 }));
    assert_eq!(world.get(id).await.mp, 0);
}

pub async fn control_changes_hands_and_only_its_holder_releases_it(store: Store) {
    let world = World::new(&store);
    let (monsters, tenant, id) = (&world.monsters, world.tenant, world.spawn(10).await.id);
    assert_eq!(monsters.control(tenant, id, ALICE).await, Ok(CharacterId(0)));
    assert_eq!(monsters.control(tenant, id, BOB).await, Ok(ALICE));
    // Alice's client has left the field and reports it late.
    assert_eq!(monsters.release_control(tenant, id, ALICE).await, Ok(false));
    assert_eq!(world.get(id).await.controller, BOB);
    assert_eq!(monsters.release_control(tenant, id, BOB).await, Ok(true));
    assert_eq!(monsters.release_control(tenant, id, BOB).await, Ok(false));
    assert_eq!(world.get(id).await.controller, CharacterId(0));
    let refused = monsters.control(tenant, id, CharacterId(0)).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid { what: "controller", .. }), "{refused:?}");
}

pub async fn of_many_releases_one_wins(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.monsters.control(world.tenant, id, ALICE).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let world = world.clone();
        tasks.push(tokio::spawn(async move {
            world.monsters.release_control(world.tenant, id, ALICE).await.unwrap()
        }));
    }
    let mut wins = 0;
    for task in tasks {
        wins += u32::from(task.await.unwrap());
    }
    assert_eq!(wins, 1);
}
