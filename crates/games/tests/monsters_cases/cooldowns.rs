//! Cooldowns: their duration, their removal with the monster, and no inheritance.

use super::*;
use bytes::Bytes;
use emberkeep_games::monsters::{
    Error, MONSTER, MONSTER_COOLDOWN, MONSTER_COOLDOWNS, MonsterId, SkillId, limits,
};
use emberkeep_hot::Store;
use emberkeep_hot::command::{Expiry, Write};
use std::time::Duration;

pub async fn a_skill_cools_down_until_its_marker_ends(store: Store) {
    let world = World::new(&store);
    let (monsters, tenant, id) = (&world.monsters, world.tenant, world.spawn(10).await.id);
    assert_eq!(monsters.cooldown_remaining(tenant, id, SkillId(126)).await, Ok(None));
    let before = store.now().await.unwrap();
    monsters.start_cooldown(tenant, id, SkillId(126), ms(60_000)).await.unwrap();
    assert!(world.is_cooling(id, 126).await && !world.is_cooling(id, 127).await);
    let left = monsters.cooldown_remaining(tenant, id, SkillId(126)).await.unwrap().unwrap();
    assert!(left > ms(50_000) && left <= ms(60_100), "{left:?}");
    // The marker is a documented key and expires by itself.
    let end = world.scope.deadline_of(&MONSTER_COOLDOWN.key(id, SkillId(126))).await.unwrap().unwrap();
    assert!((before + 59_900..before + 70_000).contains(&end), "{before} {end}");
    // A restarted cooldown lasts longer.
    monsters.start_cooldown(tenant, id, SkillId(126), ms(120_000)).await.unwrap();
    assert!(monsters.cooldown_remaining(tenant, id, SkillId(126)).await.unwrap().unwrap() > ms(60_000));
}

pub async fn cooldowns_are_cleared_one_by_one_or_all(store: Store) {
    let world = World::new(&store);
    let (monsters, tenant) = (&world.monsters, world.tenant);
    let (id, other) = (world.spawn(10).await.id, world.spawn(10).await.id);
    for skill in 1..=4 {
        world.cool(id, skill).await;
        world.cool(other, skill).await;
    }
    assert_eq!(monsters.clear_cooldown(tenant, id, SkillId(2)).await, Ok(true));
    assert_eq!(monsters.clear_cooldown(tenant, id, SkillId(2)).await, Ok(false));
    assert!(!world.is_cooling(id, 2).await && world.is_cooling(id, 3).await);
    assert_eq!(monsters.clear_cooldowns(tenant, id).await, Ok(3));
    assert_eq!(monsters.clear_cooldowns(tenant, id).await, Ok(0));
    for skill in 1..=4 {
        assert!(!world.is_cooling(id, skill).await && world.is_cooling(other, skill).await);
    }
}

pub async fn a_cooldown_of_nothing_or_of_too_long_is_refused(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    for time in [Duration::ZERO, limits::COOLDOWN_MAX + ms(1), Duration::MAX] {
        let error = world.monsters.start_cooldown(world.tenant, id, SkillId(1), time).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { what: "cooldown", .. }), "{error:?}");
    }
    world.monsters.start_cooldown(world.tenant, id, SkillId(1), limits::COOLDOWN_MAX).await.unwrap();
    assert!(world.is_cooling(id, 1).await);
}

pub async fn a_marker_of_another_service_counts(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let end = store.now().await.unwrap() + 60_000;
    let marker = MONSTER_COOLDOWN.key(id, SkillId(5));
    world.external(&marker, Write::Set(Bytes::from_static(b"1"), Expiry::At(end))).await;
    assert!(world.is_cooling(id, 5).await);
    world.external_set(&MONSTER_COOLDOWN.key(id, SkillId(6)), "any text").await;
    let endless = world.monsters.cooldown_remaining(world.tenant, id, SkillId(6)).await;
    assert_eq!(endless, Ok(Some(Duration::MAX)));
    assert_eq!(world.monsters.clear_cooldown(world.tenant, id, SkillId(6)).await, Ok(true));
    assert!(!world.is_cooling(id, 6).await);
}

pub async fn a_recycled_id_inherits_no_cooldown_of_the_one_that_was_removed(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.cool(id, 7).await;
    world.cool(id, 8).await;
    assert!(world.remove(id.0).await);
    assert_eq!(world.spawn(10).await.id, id);
    assert!(!world.is_cooling(id, 7).await && !world.is_cooling(id, 8).await);
    assert_eq!(world.monsters.clear_cooldowns(world.tenant, id).await, Ok(0));
}

/// An external client deleted only the record, and the id is assigned again.
pub async fn a_recycled_id_inherits_nothing_of_one_that_was_deleted(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.cool(id, 7).await;
    world.register(id, 1).await;
    world.poison(id, 1, 1_000, 100).await;
    world.age_timer(id, 5_000).await;
    world.age_effects(id, 5_000).await;
    world.external_del(&MONSTER.key(id)).await;
    world.external_del(&emberkeep_games::monsters::MONSTER_ID_NEXT.key()).await;
    assert_eq!(world.spawn(10).await.id, id);
    assert!(!world.is_cooling(id, 7).await);
    assert_eq!(world.monsters.drop_timer(world.tenant, id).await, Ok(None));
    assert_eq!((world.drop_due(id).await, world.effects_due(id).await), (None, None));
    assert_eq!(world.monsters.due_drops(world.tenant, 10).await.unwrap().done, []);
}

pub async fn more_cooldowns_than_a_transaction_clears_go_with_their_monster(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let markers: Vec<_> = (0..300).map(SkillId).collect();
    let transaction = move |tx: &mut emberkeep_hot::Tx<'_, _>| {
        for skill in &markers {
            tx.put_for(&MONSTER_COOLDOWN.key(id, skill), &1, ms(60_000))?;
            let end = tx.now() + 60_000;
            tx.zadd(&MONSTER_COOLDOWNS.key(id), skill, end as f64)?;
        }
        Ok::<_, emberkeep_hot::Error>(())
    };
    world.scope.transact(transaction).await.unwrap();
    let before = world.keys().await;
    assert!(before.len() > 300, "{}", before.len());
    assert!(world.remove(id.0).await);
    let left = world.keys().await;
    assert!(left.len() == 2 && left.iter().all(|key| key.contains("monster-ids")), "{left:?}");
    assert_eq!(world.free().await, [id.0]);
}

pub async fn cooldowns_of_tenants_are_their_own(store: Store) {
    let (world, other) = (World::new(&store), World::new(&store));
    let (id, same) = (world.spawn(10).await.id, other.spawn(10).await.id);
    assert_eq!(id, same);
    world.cool(id, 1).await;
    assert!(!other.is_cooling(MonsterId(same.0), 1).await);
    assert_eq!(other.monsters.clear_cooldowns(other.tenant, same).await, Ok(0));
    assert!(world.is_cooling(id, 1).await);
}
