//! Cases that need a manual clock: the exact millisecond, and restarts.

use super::*;
use emberkeep_games::monsters::{Error, Monsters, SkillId, SpawnRequest};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error as HotError, Store};
use std::path::Path;
use std::sync::Arc;

const START: i64 = 1_700_000_000_000;

fn open(clock: &ManualClock, data: Option<&Path>) -> Store {
    let options = Embedded::builder().clock(Clock::Manual(clock.clone()));
    let options = match data {
        Some(folder) => options.data(folder),
        None => options,
    };
    Store::new(Arc::new(options.open().unwrap()))
}

pub async fn deadlines_are_met_to_the_millisecond() {
    let clock = ManualClock::at(START);
    let world = World::resting(&open(&clock, None), ms(300));
    let id = world.spawn(100).await.id;
    world.monsters.start_cooldown(world.tenant, id, SkillId(1), ms(100)).await.unwrap();
    world.poison(id, 5, 200, 100).await;
    world.register(id, 100).await;
    let due = async || {
        let effects = world.monsters.run_due_effects(world.tenant, 10).await.unwrap().done;
        let drops = world.monsters.due_drops(world.tenant, 10).await.unwrap().done;
        (effects.iter().map(|run| run.hp).collect::<Vec<_>>(), drops.len())
    };
    clock.set(START + 99);
    assert_eq!((due().await, world.is_cooling(id, 1).await), ((vec![], 0), true));
    let left = world.monsters.cooldown_remaining(world.tenant, id, SkillId(1)).await;
    assert_eq!(left, Ok(Some(ms(1))));
    clock.set(START + 100);
    assert_eq!((due().await, world.is_cooling(id, 1).await), ((vec![95], 1), true));
    // A key lives through its last millisecond, as on a server.
    clock.set(START + 101);
    assert!(!world.is_cooling(id, 1).await);
    clock.set(START + 200);
    assert_eq!(due().await, (vec![90], 1));
    assert!(world.get(id).await.effects.is_empty());
    assert!(world.remove(id.0).await);
    clock.set(START + 499);
    assert_ne!(world.spawn(1).await.id, id);
    clock.set(START + 500);
    assert_eq!(world.spawn(1).await.id, id);
}

/// A restarted process finds what became due meanwhile, and hands it out once.
pub async fn timers_survive_a_restart(folder: &Path) {
    let clock = ManualClock::at(START);
    let store = open(&clock, Some(folder));
    let world = World::new(&store);
    let id = world.spawn(100).await.id;
    world.poison(id, 5, 60_000, 1_000).await;
    world.register(id, 1_000).await;
    world.cool(id, 1).await;
    store.close().await.unwrap();
    drop(store);
    clock.advance(10_000);
    let store = open(&clock, Some(folder));
    let world = World { monsters: Monsters::new(store.clone()), scope: store.scope(world.tenant), ..world };
    let ran = world.monsters.run_due_effects(world.tenant, 10).await.unwrap().done;
    assert_eq!((ran[0].hp, ran[0].ticks[0].count), (50, 10));
    assert_eq!(world.monsters.due_drops(world.tenant, 10).await.unwrap().done.len(), 1);
    assert!(world.is_cooling(id, 1).await);
    assert_eq!(world.monsters.run_due_effects(world.tenant, 10).await.unwrap().done, []);
    assert_eq!(world.monsters.due_drops(world.tenant, 10).await.unwrap().done, []);
}

/// An unreachable store is never read as "not on cooldown", "no monster" or "nothing due".
pub async fn a_store_that_cannot_be_asked_is_an_error() {
    let store = open(&ManualClock::at(START), None);
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    store.close().await.unwrap();
    let (monsters, tenant) = (&world.monsters, world.tenant);
    let closed = Err(Error::Store(HotError::Closed));
    assert_eq!(monsters.is_cooling(tenant, id, SkillId(1)).await.map(drop), closed);
    assert_eq!(monsters.get(tenant, id).await.map(drop), closed);
    assert_eq!(monsters.in_field(tenant, world.field).await.map(drop), closed);
    assert_eq!(monsters.damage(tenant, id, ALICE, 1).await.map(drop), closed);
    assert_eq!(monsters.due_drops(tenant, 10).await.map(drop), closed);
    assert_eq!(monsters.run_due_effects(tenant, 10).await.map(drop), closed);
    let request = SpawnRequest::new(world.field, 1, 1);
    assert_eq!(monsters.spawn(tenant, request).await.map(drop), closed);
    assert_eq!(monsters.remove(tenant, id).await.map(drop), closed);
    assert_eq!(monsters.sweep().turn().await.map(drop), closed);
    assert_eq!(monsters.teardown(tenant).await.map(drop), closed);
}
