//! Drop timers: handed to one caller, postponed by hits, removed with their monster.

use super::*;
use emberkeep_games::monsters::{
    DROP_TIMER, DROP_TIMERS, DropTimerRequest, Error, MONSTER, MonsterId, limits,
};
use emberkeep_hot::{Error as HotError, Store};
use std::time::Duration;

impl World {
    async fn due(&self, limit: usize) -> Vec<MonsterId> {
        let due = self.monsters.due_drops(self.tenant, limit).await.unwrap();
        assert_eq!(due.corrupt, []);
        due.done.iter().map(|drop| drop.id).collect()
    }

    async fn timer(&self, id: MonsterId) -> emberkeep_games::monsters::DropTimer {
        self.monsters.drop_timer(self.tenant, id).await.unwrap().expect("the timer is there")
    }
}

pub async fn a_timer_is_stored_in_the_names_that_others_read(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(77).await.id;
    let timer = world.register(id, 15_000).await;
    let expected = format!(
        concat!(
            r#"{{"tenantId":"{}","tenantRegion":"","tenantMajorVersion":0,"tenantMinorVersion":0,"uniqueId":{},"#,
            r#""monsterId":100100,"field":{{"worldId":0,"channelId":1,"mapId":100000000,"#,
            r#""instance":"00000000-0000-0000-0000-000000000000"}},"dropPeriodMs":15000,"weaponAttack":30,"#,
            r#""maxHp":77,"lastDropAtMs":{},"lastHitAtMs":0}}"#,
        ),
        world.tenant, id, timer.last_drop_at_ms
    );
    assert_eq!(world.stored(&DROP_TIMER.key(id)).await, Some(expected));
    assert_eq!(world.drop_due(id).await, Some(timer.last_drop_at_ms + 15_000));
}

pub async fn a_drop_comes_after_its_period_once_and_again(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.register(id, 60_000).await;
    assert_eq!(world.due(10).await, []);
    for _ in 0..2 {
        world.age_timer(id, 61_000).await;
        assert_eq!(world.due(10).await, [id]);
        assert_eq!(world.due(10).await, []);
        assert_eq!(world.drop_due(id).await, Some(world.timer(id).await.last_drop_at_ms + 60_000));
    }
}

pub async fn a_hit_puts_the_next_drop_off(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.register(id, 60_000).await;
    world.age_timer(id, 50_000).await;
    let timer = world.monsters.record_drop_hit(world.tenant, id).await.unwrap();
    assert!(timer.last_hit_at_ms >= timer.last_drop_at_ms + 50_000, "{timer:?}");
    assert_eq!(world.drop_due(id).await, Some(timer.last_hit_at_ms + 60_000));
    world.age_timer(id, 20_000).await;
    assert_eq!(world.due(10).await, []);
    world.age_timer(id, 50_000).await;
    assert_eq!(world.due(10).await, [id]);
    // The hit was before this drop: the next drop is due one period after the drop.
    let timer = world.timer(id).await;
    assert_eq!(world.drop_due(id).await, Some(timer.last_drop_at_ms + 60_000));
}

pub async fn each_drop_is_handed_to_one_caller(store: Store) {
    let world = World::new(&store);
    let mut ids = Vec::new();
    for _ in 0..50 {
        let id = world.spawn(10).await.id;
        world.register(id, 60_000).await;
        world.age_timer(id, 61_000).await;
        ids.push(id);
    }
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let world = world.clone();
        tasks.push(tokio::spawn(async move { world.due(100).await }));
    }
    let mut handed = Vec::new();
    for task in tasks {
        handed.extend(task.await.unwrap());
    }
    handed.sort();
    assert_eq!(handed, ids);
}

pub async fn a_timer_is_unregistered_once(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.register(id, 60_000).await;
    world.age_timer(id, 61_000).await;
    assert_eq!(world.monsters.unregister_drop_timer(world.tenant, id).await, Ok(true));
    assert_eq!(world.monsters.unregister_drop_timer(world.tenant, id).await, Ok(false));
    assert_eq!((world.due(10).await, world.drop_due(id).await), (vec![], None));
    assert_eq!(world.monsters.record_drop_hit(world.tenant, id).await, Err(Error::NoDropTimer { id }));
}

pub async fn a_timer_of_a_dead_monster_goes_with_it(store: Store) {
    let world = World::new(&store);
    let (dead, removed, deleted) =
        (world.spawn(10).await.id, world.spawn(10).await.id, world.spawn(10).await.id);
    for id in [dead, removed, deleted] {
        world.register(id, 60_000).await;
        world.age_timer(id, 61_000).await;
    }
    world.kill(dead).await;
    assert!(world.remove(removed.0).await);
    for id in [dead, removed] {
        assert_eq!((world.stored(&DROP_TIMER.key(id)).await, world.drop_due(id).await), (None, None));
    }
    world.external_del(&MONSTER.key(deleted)).await;
    assert_eq!(world.due(10).await, []);
    for id in [dead, removed, deleted] {
        assert_eq!((world.stored(&DROP_TIMER.key(id)).await, world.drop_due(id).await), (None, None));
    }
}

pub async fn a_period_of_nothing_or_of_too_long_is_refused(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    for period in [Duration::ZERO, Duration::from_nanos(1), limits::DROP_PERIOD_MAX + ms(1), Duration::MAX] {
        let request = DropTimerRequest { period, weapon_attack: 1 };
        let error = world.monsters.register_drop_timer(world.tenant, id, request).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { what: "drop period", .. }), "{error:?}");
    }
    assert_eq!(world.monsters.drop_timer(world.tenant, id).await, Ok(None));
}

pub async fn a_corrupt_timer_does_not_stop_the_others(store: Store) {
    let world = World::new(&store);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = world.spawn(10).await.id;
        world.register(id, 60_000).await;
        world.age_timer(id, 61_000).await;
        ids.push(id);
    }
    world.external_set(&DROP_TIMER.key(ids[1]), "[]").await;
    let due = world.monsters.due_drops(world.tenant, 10).await.unwrap();
    assert_eq!(due.done.iter().map(|drop| drop.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
    let [reported @ HotError::Corrupt { .. }] = &due.corrupt[..] else { panic!("{:?}", due.corrupt) };
    assert!(reported.to_string().contains(&world.name_of(&DROP_TIMER.key(ids[1]))), "{reported}");
    assert_eq!(world.due(10).await, []);
}

/// Another service recorded a hit; our due queue still has the old time.
pub async fn a_hit_that_another_service_noted_counts(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let timer = world.register(id, 60_000).await;
    world.scope.transact(move |tx| tx.zadd(&DROP_TIMERS.key(), &id, 1.0)).await.unwrap();
    let hit = timer.last_drop_at_ms + 30_000;
    let noted = world.stored(&DROP_TIMER.key(id)).await.unwrap();
    let noted = noted.replace(r#""lastHitAtMs":0}"#, &format!(r#""lastHitAtMs":{hit},"luck":[]}}"#));
    world.external_set(&DROP_TIMER.key(id), &noted).await;
    assert_eq!(world.due(10).await, []);
    assert_eq!(world.drop_due(id).await, Some(hit + 60_000));
    world.age_timer(id, 100_000).await;
    assert_eq!(world.due(10).await, [id]);
    let stored = world.stored(&DROP_TIMER.key(id)).await.unwrap();
    assert!(stored.ends_with(r#","luck":[]}"#), "{stored}");
}
