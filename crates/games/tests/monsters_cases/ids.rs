//! Ids: counted, reused, resting, never assigned twice.

use super::*;
use bytes::Bytes;
use emberkeep_games::monsters::{
    Error, MONSTER_ID_FREE, MONSTER_ID_NEXT, MONSTER_ID_RESTING, MonsterId, Monsters, SpawnRequest, limits,
};
use emberkeep_hot::command::Write;
use emberkeep_hot::{Error as HotError, Store};
use std::collections::HashSet;

pub async fn ids_are_counted_from_the_start_of_the_range(store: Store) {
    let world = World::new(&store);
    for expected in FIRST..FIRST + 3 {
        assert_eq!(world.spawn_id().await, expected);
    }
    assert_eq!(world.stored(&MONSTER_ID_NEXT.key()).await.as_deref(), Some("1000000002"));
}

pub async fn the_id_that_was_released_last_is_handed_out_first(store: Store) {
    let world = World::new(&store);
    let (first, second) = (world.spawn_id().await, world.spawn_id().await);
    assert!(world.remove(first).await && world.remove(second).await);
    assert_eq!(world.free().await, [second, first]);
    assert_eq!(world.spawn_id().await, second);
    assert_eq!(world.spawn_id().await, first);
    assert_eq!(world.spawn_id().await, FIRST + 2);
}

pub async fn spawns_at_the_same_time_get_different_ids(store: Store) {
    let world = World::new(&store);
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let world = world.clone();
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..20 {
                ids.push(world.spawn_id().await);
            }
            ids
        }));
    }
    let mut ids = Vec::new();
    for task in tasks {
        ids.extend(task.await.unwrap());
    }
    assert_eq!(ids.len(), ids.iter().collect::<HashSet<_>>().len());
    ids.sort();
    assert_eq!(world.listed().await, ids);
}

pub async fn a_lost_counter_hands_out_no_living_id(store: Store) {
    let world = World::new(&store);
    // More than one transaction examines.
    for _ in 0..150 {
        world.spawn_id().await;
    }
    world.external_del(&MONSTER_ID_NEXT.key()).await;
    assert_eq!(world.spawn_id().await, FIRST + 150);
}

pub async fn a_counter_outside_of_the_range_re_enters_it(store: Store) {
    let world = World::new(&store);
    for (counter, expected) in
        [("7", FIRST), ("-3", FIRST + 1), ("99999999999", FIRST + 2), ("2000000000", FIRST + 3)]
    {
        world.external_set(&MONSTER_ID_NEXT.key(), counter).await;
        assert_eq!(world.spawn_id().await, expected, "after {counter}");
    }
    world.external_set(&MONSTER_ID_NEXT.key(), "1999999999").await;
    assert_eq!(world.spawn_id().await, 2_000_000_000);
    assert_eq!(world.spawn_id().await, FIRST + 4);
}

pub async fn a_counter_that_is_no_number_is_an_error_that_names_its_key(store: Store) {
    let world = World::new(&store);
    world.external_set(&MONSTER_ID_NEXT.key(), "soon").await;
    let error = world.monsters.spawn(world.tenant, SpawnRequest::new(world.field, 1, 1)).await.unwrap_err();
    assert!(matches!(&error, Error::Store(HotError::Corrupt { .. })), "{error:?}");
    assert!(error.to_string().contains(&world.name_of(&MONSTER_ID_NEXT.key())), "{error}");
    assert_eq!(world.stored(&MONSTER_ID_NEXT.key()).await.as_deref(), Some("soon"));
    assert!(world.listed().await.is_empty());
}

pub async fn rubbish_in_the_free_list_is_dropped(store: Store) {
    let world = World::new(&store);
    let living = world.spawn_id().await;
    let rubbish = [living.to_string(), "12".into(), "".into(), "a word".into(), "0999999999".into()];
    let rubbish = rubbish.into_iter().map(Bytes::from).collect();
    world.external(&MONSTER_ID_FREE.key(), Write::RPush(rubbish)).await;
    assert_eq!(world.spawn_id().await, living + 1);
    assert_eq!(world.free().await, [0; 0]);
    assert_eq!(world.get(MonsterId(living)).await.hp, 10);
}

pub async fn of_many_removals_one_wins_and_the_id_is_released_once(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_id().await;
    let mut removals = Vec::new();
    for _ in 0..16 {
        let world = world.clone();
        removals.push(tokio::spawn(async move { world.remove(id).await }));
    }
    let mut wins = 0;
    for removal in removals {
        wins += u32::from(removal.await.unwrap());
    }
    assert_eq!(wins, 1);
    assert_eq!(world.free().await, [id]);
    assert!(world.listed().await.is_empty());
}

pub async fn an_id_rests_before_it_comes_back(store: Store) {
    let world = World::resting(&store, ms(60_000));
    let id = world.spawn_id().await;
    assert!(world.remove(id).await);
    assert_eq!(world.free().await, [0; 0]);
    assert_eq!(world.spawn_id().await, id + 1);
    world.age_rest(id, 59_000).await;
    assert_eq!(world.spawn_id().await, id + 2);
    world.age_rest(id, 1_000).await;
    assert_eq!(world.spawn_id().await, id);
    assert_eq!(world.spawn_id().await, id + 3);
}

pub async fn a_lost_counter_hands_out_no_resting_id(store: Store) {
    let world = World::resting(&store, ms(60_000));
    let id = world.spawn_id().await;
    assert!(world.remove(id).await);
    world.external_del(&MONSTER_ID_NEXT.key()).await;
    assert_eq!(world.spawn_id().await, id + 1);
}

pub async fn a_rest_over_the_limit_is_refused(store: Store) {
    let refused = Monsters::new(store).reuse_after(limits::REUSE_AFTER_MAX + ms(1)).err();
    assert!(matches!(refused, Some(Error::Invalid { what: "rest", .. })), "{refused:?}");
}

pub async fn a_lost_rest_brings_no_id_back_early(store: Store) {
    let world = World::resting(&store, ms(60_000));
    let id = world.spawn_id().await;
    assert!(world.remove(id).await);
    world.external_del(&MONSTER_ID_RESTING.key()).await;
    assert_eq!(world.spawn_id().await, id + 1);
}
