//! The index of a field: its monsters, and no others.

use super::*;
use bytes::Bytes;
use emberkeep_games::monsters::{DROP_TIMER, MONSTER, MonsterId, Position, SpawnRequest, field_key};
use emberkeep_games::world::{CharacterId, Field};
use emberkeep_hot::command::Write;
use emberkeep_hot::{Error as HotError, Store};

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
    assert_eq!(
        (monster.tenant_id, monster.region.as_str(), monster.major_version),
        (Some(world.tenant.0), "GMS", 83)
    );
    assert_eq!(world.get(monster.id).await, monster);
    let found = world.monsters.in_field(world.tenant, world.field).await.unwrap();
    assert_eq!((found.living, found.corrupt), (vec![monster], vec![]));
}

pub async fn a_field_lists_its_own_monsters_only(store: Store) {
    let world = World::new(&store);
    let here = world.spawn_id().await;
    let elsewhere = Field { map: 7, ..world.field };
    let other = world.spawn_in(elsewhere, 1).await.id.0;
    assert_eq!((world.listed().await, world.indexed(elsewhere).await), (vec![here], vec![other]));
    assert!(world.remove(here).await);
    assert!(world.listed().await.is_empty());
    assert!(world.indexed(world.field).await.is_empty());
}

pub async fn a_field_of_any_size_is_read_in_pages(store: Store) {
    let world = World::new(&store);
    let mut spawned = Vec::new();
    for _ in 0..40 {
        spawned.push(world.spawn_id().await);
    }
    let stale = spawned.remove(7);
    world.external_del(&MONSTER.key(MonsterId(stale))).await;
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let page = world.monsters.field_page(world.tenant, world.field, from, 10).await.unwrap();
        assert!(page.listing.corrupt.is_empty());
        found.extend(page.listing.living.iter().map(|monster| monster.id.0));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, spawned);
    assert_eq!(world.indexed(world.field).await, spawned, "the stale entry is out of the index");
}

pub async fn a_stale_entry_is_not_listed_and_is_pruned(store: Store) {
    let world = World::new(&store);
    let (stale, living) = (world.spawn_id().await, world.spawn_id().await);
    world.external_del(&MONSTER.key(MonsterId(stale))).await;
    assert_eq!(world.indexed(world.field).await, [stale, living]);
    assert_eq!(world.listed().await, [living]);
    assert_eq!(world.indexed(world.field).await, [living]);
}

pub async fn an_index_entry_of_a_monster_elsewhere_is_pruned(store: Store) {
    let world = World::new(&store);
    let living = world.spawn_id().await;
    let elsewhere = Field { channel: 9, ..world.field };
    world.external(&field_key(&elsewhere), Write::SAdd(vec![Bytes::from(living.to_string())])).await;
    assert_eq!(world.listed_in(elsewhere).await, [0; 0]);
    assert!(world.indexed(elsewhere).await.is_empty());
    assert_eq!(world.listed().await, [living]);
}

pub async fn a_corrupt_record_does_not_hide_the_others(store: Store) {
    let world = World::new(&store);
    let ids = [world.spawn_id().await, world.spawn_id().await, world.spawn_id().await];
    let corrupt = MONSTER.key(MonsterId(ids[1]));
    world.external_set(&corrupt, r#"{"uniqueId":"#).await;
    let found = world.monsters.in_field(world.tenant, world.field).await.unwrap();
    assert_eq!(found.living.iter().map(|monster| monster.id.0).collect::<Vec<_>>(), [ids[0], ids[2]]);
    let [reported @ HotError::Corrupt { .. }] = &found.corrupt[..] else { panic!("{:?}", found.corrupt) };
    assert!(reported.to_string().contains(&world.name_of(&corrupt)), "{reported}");
    // Unchanged, also in the index.
    assert_eq!(world.indexed(world.field).await, ids);
    assert_eq!(world.stored(&corrupt).await.as_deref(), Some(r#"{"uniqueId":"#));
}

pub async fn a_member_that_is_no_id_does_not_hide_the_others(store: Store) {
    let world = World::new(&store);
    let living = world.spawn_id().await;
    let rubbish = ["a word", "007", ""].map(|text| Bytes::from(text.to_owned()));
    world.external(&field_key(&world.field), Write::SAdd(rubbish.to_vec())).await;
    assert_eq!(world.listed().await, [living]);
    assert_eq!(world.indexed(world.field).await, [living]);
}

pub async fn a_monster_moves_within_its_field(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_id().await;
    let to = Position { x: -32_768, y: 32_767, fh: Some(-5), stance: Some(4) };
    world.monsters.move_to(world.tenant, MonsterId(id), to).await.unwrap();
    let monster = world.get(MonsterId(id)).await;
    assert_eq!((monster.x, monster.y, monster.fh, monster.stance), (to.x, to.y, -5, 4));
    // Fields that a move does not contain stay.
    world
        .monsters
        .move_to(world.tenant, MonsterId(id), Position { x: 1, ..Position::default() })
        .await
        .unwrap();
    let monster = world.get(MonsterId(id)).await;
    assert_eq!((monster.x, monster.y, monster.fh, monster.stance), (1, 0, -5, 4));
    assert_eq!(world.listed().await, [id]);
}

pub async fn a_monster_moves_to_another_field_whole(store: Store) {
    let world = World::new(&store);
    let (stays, id) = (world.spawn_id().await, world.spawn(10).await.id);
    world.register(id, 60_000).await;
    world.monsters.control(world.tenant, id, ALICE).await.unwrap();
    let there = Field { map: 200_000_000, ..world.field };
    let to = Position { x: 5, ..Position::default() };
    let moved = world.monsters.move_to_field(world.tenant, id, there, to).await.unwrap();
    assert_eq!((moved.field(), moved.x, moved.controller), (there, 5, CharacterId(0)));
    assert_eq!(world.get(id).await, moved);
    assert_eq!((world.indexed(world.field).await, world.indexed(there).await), (vec![stays], vec![id.0]));
    assert_eq!((world.listed().await, world.listed_in(there).await), (vec![stays], vec![id.0]));
    let timer = world.monsters.drop_timer(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(timer.field.field(), there);
    // Without a timer none appears.
    world.monsters.move_to_field(world.tenant, MonsterId(stays), there, to).await.unwrap();
    assert_eq!(world.stored(&DROP_TIMER.key(MonsterId(stays))).await, None);
    assert_eq!(world.indexed(world.field).await, [0; 0]);
}

pub async fn a_monster_that_many_move_is_in_one_field(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let fields = [1, 2, 3, 4].map(|map| Field { map, ..world.field });
    let mut tasks = Vec::new();
    for field in fields {
        let world = world.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let to = Position::default();
                world.monsters.move_to_field(world.tenant, id, field, to).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut indexed = world.indexed(world.field).await;
    for field in fields {
        indexed.extend(world.indexed(field).await);
    }
    assert_eq!(indexed, [id.0]);
    assert_eq!(world.listed_in(world.get(id).await.field()).await, [id.0]);
}
