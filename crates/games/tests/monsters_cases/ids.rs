//! Ids: counted, recycled, never given twice.

use super::World;
use bytes::Bytes;
use emberkeep_games::monsters::{MONSTER_ID_FREE, MONSTER_ID_NEXT, MonsterId, SpawnRequest};
use emberkeep_hot::command::Write;
use emberkeep_hot::{Error, Store};
use std::collections::HashSet;

const FIRST: u32 = 1_000_000_000;

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
    assert_eq!(world.spawn_id().await, second);
    assert_eq!(world.spawn_id().await, first);
    assert_eq!(world.spawn_id().await, FIRST + 2);
}

pub async fn spawns_at_the_same_time_get_different_ids(store: Store) {
    let world = World::new(&store);
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let (monsters, tenant, field) = (world.monsters.clone(), world.tenant, world.field);
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..20 {
                ids.push(monsters.spawn(tenant, SpawnRequest::new(field, 1, 1)).await.unwrap().id.0);
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
    // More than one step looks at.
    for _ in 0..150 {
        world.spawn_id().await;
    }
    world.foreign(&MONSTER_ID_NEXT.key(), Write::Del).await;
    assert_eq!(world.spawn_id().await, FIRST + 150);
}

pub async fn a_counter_outside_of_the_range_re_enters_it(store: Store) {
    let world = World::new(&store);
    for (counter, expected) in
        [("7", FIRST), ("-3", FIRST + 1), ("99999999999", FIRST + 2), ("2000000000", FIRST + 3)]
    {
        world.foreign_set(&MONSTER_ID_NEXT.key(), counter).await;
        assert_eq!(world.spawn_id().await, expected, "after {counter}");
    }
    world.foreign_set(&MONSTER_ID_NEXT.key(), "1999999999").await;
    assert_eq!(world.spawn_id().await, 2_000_000_000);
    assert_eq!(world.spawn_id().await, FIRST + 4);
}

pub async fn a_counter_that_is_no_number_is_an_error_that_names_its_key(store: Store) {
    let world = World::new(&store);
    world.foreign_set(&MONSTER_ID_NEXT.key(), "soon").await;
    let error = world.monsters.spawn(world.tenant, SpawnRequest::new(world.field, 1, 1)).await.unwrap_err();
    let key = MONSTER_ID_NEXT.key().to_text(store.naming(), &world.tenant);
    assert!(matches!(&error, emberkeep_games::monsters::Error::Store(Error::Corrupt { .. })), "{error:?}");
    assert!(error.to_string().contains(&key), "{error}");
    assert_eq!(world.stored(&MONSTER_ID_NEXT.key()).await.as_deref(), Some("soon"));
    assert!(world.listed().await.is_empty());
}

pub async fn rubbish_in_the_free_list_is_dropped(store: Store) {
    let world = World::new(&store);
    let living = world.spawn_id().await;
    let rubbish = [living.to_string(), "12".into(), "".into(), "a word".into(), "0999999999".into()];
    let rubbish = rubbish.into_iter().map(Bytes::from).collect();
    world.foreign(&MONSTER_ID_FREE.key(), Write::RPush(rubbish)).await;
    assert_eq!(world.spawn_id().await, living + 1);
    let left = world.scope.transact(|tx| tx.llen(&MONSTER_ID_FREE.key())).await;
    assert_eq!(left, Ok(0));
    assert_eq!(world.get(MonsterId(living)).await.hp, 10);
}
