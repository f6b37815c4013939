//! Due effects: ticks, expiry, and the one caller that gets them.

use super::*;
use emberkeep_games::monsters::{EffectsRun, MONSTER, MONSTER_EFFECTS, MonsterId, Monsters, rules};
use emberkeep_hot::{Error as HotError, Store};

impl World {
    async fn run_due(&self, limit: usize) -> Vec<EffectsRun> {
        let due = self.monsters.run_due_effects(self.tenant, limit).await.unwrap();
        assert_eq!(due.corrupt, []);
        due.done
    }
}

fn ticks(runs: &[EffectsRun]) -> u64 {
    runs.iter().flat_map(|run| &run.ticks).map(|tick| tick.count).sum()
}

pub async fn ticks_are_damage_credited_to_who_cast_the_effect(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(100).await.id;
    let effect = world.poison(id, 4, 60_000, 1_000).await;
    assert_eq!(world.run_due(10).await, []);
    world.age_effects(id, 3_500).await;
    let ran = world.run_due(10).await;
    let [run] = &ran[..] else { panic!("{ran:?}") };
    assert_eq!((run.id, run.field, run.hp, ticks(&ran)), (id, world.field, 88, 3));
    assert_eq!((run.ticks[0].effect.id, run.ticks[0].damage), (effect.id, 12));
    // Whole intervals: the remaining half second counts for the next tick.
    assert_eq!(run.ticks[0].effect.last_tick_ms, effect.created_at_ms - 3_500 + 3_000);
    assert_eq!(world.effects_due(id).await, Some(effect.created_at_ms - 3_500 + 4_000));
    assert_eq!(world.run_due(10).await, []);
    assert_eq!(world.monsters.damage_leader(world.tenant, id).await, Ok(Some((BOB, 12))));
}

pub async fn poison_leaves_the_last_point_of_health(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.poison(id, 1_000, 60_000, 1_000).await;
    world.age_effects(id, 5_000).await;
    let ran = world.monsters.tick_effects(world.tenant, id).await.unwrap();
    assert_eq!((ran.hp, ran.ticks[0].count, ran.ticks[0].damage), (1, 5, 9));
    assert!(world.monsters.damage(world.tenant, id, ALICE, 1).await.unwrap().killed);
}

pub async fn an_effect_that_ended_leaves_after_its_last_tick(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(100).await.id;
    let effect = world.poison(id, 4, 3_000, 1_000).await;
    world.age_effects(id, 600_000).await;
    let ran = world.run_due(10).await;
    assert_eq!((ran[0].hp, ticks(&ran), ran[0].expired[0].id), (88, 3, effect.id));
    assert!(world.get(id).await.effects.is_empty());
    assert_eq!(world.effects_due(id).await, None);
}

/// Every process asks for due work; each item goes to one of them.
pub async fn each_tick_is_handed_to_one_caller(store: Store) {
    let world = World::new(&store);
    let mut ids = Vec::new();
    for _ in 0..40 {
        let id = world.spawn(1_000_000).await.id;
        world.poison(id, 1, 600_000, 1_000).await;
        world.age_effects(id, 7_000).await;
        ids.push(id);
    }
    let mut tasks = Vec::new();
    for caller in 0..8 {
        let (world, ids) = (world.clone(), ids.clone());
        tasks.push(tokio::spawn(async move {
            if caller % 2 == 0 {
                return ticks(&world.run_due(100).await);
            }
            let mut sum = 0;
            for id in ids {
                let ran = world.monsters.tick_effects(world.tenant, id).await.unwrap();
                sum += ran.ticks.iter().map(|tick| tick.count).sum::<u64>();
            }
            sum
        }));
    }
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    // The server's clock advances by itself: what was handed out must equal what is stored, and cover what
    // was due.
    let mut written = 0;
    for id in ids {
        let monster = world.get(id).await;
        written += u64::from(monster.max_hp - monster.hp);
        let effect = &monster.effects[0];
        assert_eq!(
            effect.last_tick_ms - effect.created_at_ms,
            i64::from(monster.max_hp - monster.hp) * 1_000
        );
    }
    assert_eq!(sum, written);
    assert!(sum >= 40 * 7, "{sum}");
}

pub async fn at_most_the_limit_is_run_and_the_longest_overdue_first(store: Store) {
    let world = World::new(&store);
    let mut ids = Vec::new();
    for overdue in [5_000, 9_000, 7_000] {
        let id = world.spawn(100).await.id;
        world.poison(id, 1, 1_000, 0).await;
        world.age_effects(id, overdue).await;
        ids.push(id);
    }
    assert_eq!(world.run_due(0).await, []);
    let order = [world.run_due(1).await, world.run_due(1).await, world.run_due(5).await];
    let order: Vec<MonsterId> = order.iter().flatten().map(|run| run.id).collect();
    assert_eq!(order, [ids[1], ids[2], ids[0]]);
}

pub async fn a_corpse_suffers_no_more(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    world.poison(id, 1, 60_000, 1_000).await;
    world.age_effects(id, 5_000).await;
    world.kill(id).await;
    let corpse = world.get(id).await;
    assert_eq!(world.run_due(10).await, []);
    assert_eq!((world.get(id).await, world.effects_due(id).await), (corpse, None));
    assert_eq!(world.monsters.tick_effects(world.tenant, id).await.unwrap().ticks, []);
}

pub async fn a_deadline_without_its_monster_is_dropped(store: Store) {
    let world = World::new(&store);
    let (gone, early) = (world.spawn(10).await.id, world.spawn(10).await.id);
    for id in [gone, early] {
        world.poison(id, 1, 60_000, 1_000).await;
        world.scope.transact(move |tx| tx.zadd(&MONSTER_EFFECTS.key(), &id, 1.0)).await.unwrap();
    }
    world.external_del(&MONSTER.key(gone)).await;
    assert_eq!(world.run_due(10).await, []);
    // A due queue with a too early time: nothing happens, and the time is corrected.
    assert_eq!(world.effects_due(gone).await, None);
    assert_eq!(world.effects_due(early).await, rules::next_due_ms(&world.get(early).await));
}

pub async fn a_corrupt_record_does_not_stop_the_effects_of_others(store: Store) {
    let world = World::new(&store);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = world.spawn(100).await.id;
        world.poison(id, 1, 60_000, 1_000).await;
        world.age_effects(id, 5_000).await;
        ids.push(id);
    }
    let whole = world.stored(&MONSTER.key(ids[1])).await.unwrap();
    world.external_set(&MONSTER.key(ids[1]), "no monster").await;
    let due = world.monsters.run_due_effects(world.tenant, 10).await.unwrap();
    assert_eq!(due.done.iter().map(|run| run.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
    let [reported @ HotError::Corrupt { .. }] = &due.corrupt[..] else { panic!("{:?}", due.corrupt) };
    assert!(reported.to_string().contains(&world.name_of(&MONSTER.key(ids[1]))), "{reported}");
    assert_eq!(world.run_due(10).await, []);
    // Once the record is readable, it continues.
    world.external_set(&MONSTER.key(ids[1]), &whole).await;
    world.sweep().await;
    let ran = world.run_due(10).await;
    assert!(ran.len() == 1 && ran[0].id == ids[1] && ticks(&ran) >= 5, "{ran:?}");
}

/// Two processes ask for ticks and drops at the same time, while other calls change the monsters.
pub async fn two_processes_share_what_is_due(one: Store, other: Store) {
    let world = World::new(&one);
    let twin =
        World { monsters: Monsters::new(other.clone()), scope: other.scope(world.tenant), ..world.clone() };
    let mut ids = Vec::new();
    for _ in 0..60 {
        let id = world.spawn(1_000_000).await.id;
        world.poison(id, 1, 3_600_000, 600_000).await;
        world.age_effects(id, 1_300_000).await;
        world.register(id, 600_000).await;
        world.age_timer(id, 700_000).await;
        ids.push(id);
    }
    let mut tasks = Vec::new();
    for worker in [world.clone(), twin.clone(), world.clone(), twin] {
        tasks.push(tokio::spawn(async move {
            let drops = worker.monsters.due_drops(worker.tenant, 100).await.unwrap().done;
            (ticks(&worker.run_due(100).await), drops.into_iter().map(|drop| drop.id).collect::<Vec<_>>())
        }));
    }
    let hitter = world.clone();
    let hits = tokio::spawn(async move {
        for id in ids.iter().cycle().take(200) {
            hitter.monsters.damage(hitter.tenant, *id, ALICE, 1).await.unwrap();
        }
        ids
    });
    let (mut ticked, mut dropped) = (0, Vec::new());
    for task in tasks {
        let (ticks, drops) = task.await.unwrap();
        ticked += ticks;
        dropped.extend(drops);
    }
    let ids = hits.await.unwrap();
    dropped.sort();
    assert_eq!((ticked, &dropped), (120, &ids));
    let mut lost = 0;
    for id in ids {
        lost += 1_000_000 - world.get(id).await.hp;
    }
    assert_eq!(lost, 120 + 200);
}
