//! Destruction of reactors: complete, and by one caller.

use super::{World, ids_of};
use emberkeep_games::reactors::{
    CreateRequest, Destruction, Error, REACTOR, REACTOR_SPOTS, Reactors, cooldown_key, cooldowns_key,
    field_key, spots_key,
};
use emberkeep_games::world::Field;
use emberkeep_hot::Store;
use std::time::Duration;

pub async fn a_destroyed_reactor_leaves_nothing_but_its_cooldown(store: Store) {
    let world = World::new(&store);
    let (reactor, other) = (world.create_with_delay(1, 60_000).await, world.create(2).await);
    let now = store.now().await.unwrap();
    let destroyed = world.reactors.destroy(world.tenant, reactor.id).await.unwrap();
    let cooldown = Some(Duration::from_secs(60));
    assert_eq!(destroyed, Destruction { reactor: reactor.clone(), cooldown });
    assert_eq!(world.stored(&REACTOR.key(reactor.id)).await, None);
    assert_eq!(world.indexed().await, [other.id]);
    assert!(!world.in_all(reactor.id).await && world.in_all(other.id).await);
    let remembered = world.scope.hgetall(&spots_key(&world.field)).await.unwrap();
    assert_eq!(remembered, [(other.id, other.spot())]);
    let end = world.scope.deadline_of(&cooldown_key(&world.field, &reactor.spot())).await.unwrap();
    assert!(end.is_some_and(|end| (now + 59_000..now + 70_000).contains(&end)), "{end:?} at {now}");
}

pub async fn without_a_delay_nothing_cools_down(store: Store) {
    let world = World::new(&store);
    let reactor = world.create(1).await;
    let destroyed = world.reactors.destroy(world.tenant, reactor.id).await.unwrap();
    assert_eq!(destroyed.cooldown, None);
    assert!(!world.cools_down(1).await);
    world.create(1).await;
}

pub async fn of_64_destructions_one_wins(store: Store) {
    let world = World::new(&store);
    let reactor = world.create_with_delay(1, 60_000).await;
    let id = reactor.id;
    let results = world
        .at_once(64, move |world, _| async move { world.reactors.destroy(world.tenant, id).await })
        .await;
    let won: Vec<&Destruction> = results.iter().flatten().collect();
    assert_eq!(won.iter().map(|destroyed| &destroyed.reactor).collect::<Vec<_>>(), [&reactor]);
    let lost = results.iter().filter(|result| **result == Err(Error::NotFound { id })).count();
    assert_eq!(lost, 63, "{results:?}");
}

pub async fn a_destroyed_field_is_empty_and_nothing_in_it_cools_down(store: Store) {
    let world = World::new(&store);
    let (first, second) =
        (world.create_with_delay(1, 60_000).await, world.create_with_delay(2, 60_000).await);
    let external = world.get(world.external_create(3).await).await;
    let earlier = world.create_with_delay(4, 60_000).await;
    world.reactors.destroy(world.tenant, earlier.id).await.unwrap();
    assert!(world.cools_down(4).await);
    let destroyed = world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
    assert_eq!(ids_of(&destroyed.reactors), ids_of(&[first, second, external]));
    assert_eq!((destroyed.cooldowns, destroyed.corrupt.len()), (1, 0));
    assert!(world.indexed().await.is_empty());
    for x in 1..=4 {
        assert!(!world.cools_down(x).await, "spot {x}");
        world.create(x).await;
    }
}

pub async fn a_field_is_destroyed_alone(store: Store) {
    let world = World::new(&store);
    let other_field = Field { map: 7, ..world.field };
    let request = CreateRequest { field: other_field, delay_ms: 60_000, ..world.request(1) };
    let stays = world.reactors.create(world.tenant, request.clone()).await.unwrap();
    let cooling = CreateRequest { x: 2, ..request };
    let cooling = world.reactors.create(world.tenant, cooling).await.unwrap();
    world.reactors.destroy(world.tenant, cooling.id).await.unwrap();
    let other_world = world.elsewhere();
    let other_reactor = other_world.create(1).await;
    world.create(1).await;
    world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
    assert_eq!(world.get(stays.id).await, stays);
    assert_eq!(other_world.get(other_reactor.id).await, other_reactor);
    let left = world.reactors.cooldown_remaining(world.tenant, other_field, cooling.spot()).await.unwrap();
    assert!(left.is_some());
}

pub async fn an_empty_field_leaves_no_key_behind(store: Store) {
    let world = World::new(&store);
    world.create(1).await;
    world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
    let field = &world.field;
    let spots = REACTOR_SPOTS.key(field.world, field.channel, field.map, field.instance);
    assert!(!world.scope.exists(&spots).await.unwrap());
    let again = world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
    assert_eq!(again, Default::default());
}

pub async fn corrupt_keys_stop_no_end(store: Store) {
    let world = World::new(&store);
    let [first, second, third, last] = [1, 2, 3, 4].map(|x| world.create_with_delay(x, 60_000));
    let (first, second, third, last) = (first.await, second.await, third.await, last.await);
    let field = &world.field;
    world.external_set(&spots_key(field), "no hash").await;
    world.external_set(&cooldowns_key(field), "no sorted set").await;
    let destroyed = world.reactors.destroy(world.tenant, first.id).await.unwrap();
    assert_eq!(destroyed.cooldown, Some(Duration::from_secs(60)));
    assert!(world.cools_down(1).await && !world.in_all(first.id).await);
    // A hit that triggers destroys too; the last state of a box has no next state.
    for _ in 0..2 {
        world.reactors.hit(world.tenant, second.id, super::HERO, 0).await.unwrap();
    }
    assert_eq!(world.listed().await, [third.id, last.id]);
    // The index itself has a wrong type: the field cannot be listed, but a reactor can be destroyed by its
    // id.
    world.external_set(&field_key(field), "no set").await;
    world.reactors.destroy(world.tenant, third.id).await.unwrap();
    assert!(world.cools_down(3).await);
    let reported = world.reactors.destroy_in_field(world.tenant, *field).await.unwrap_err().to_string();
    assert!(reported.contains("reactors:map:"), "{reported}");
    world.reactors.teardown(world.tenant).await.unwrap();
    assert_eq!(world.reactors.get(world.tenant, last.id).await, Err(Error::NotFound { id: last.id }));
}

pub async fn a_field_with_corrupt_hints_is_destroyed(store: Store) {
    let world = World::new(&store);
    world.create(1).await;
    world
        .reactors
        .start_cooldown(world.tenant, world.field, world.spot(2), Duration::from_secs(60))
        .await
        .unwrap();
    world.external_set(&spots_key(&world.field), "no hash").await;
    world.external_set(&cooldowns_key(&world.field), "no sorted set").await;
    // The sweep indexes the cooldown again.
    assert_eq!(super::sweeps::sweep(&world).await.cooldowns, 1);
    world.external_set(&spots_key(&world.field), "no hash").await;
    let destroyed = world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
    assert_eq!((destroyed.reactors.len(), destroyed.cooldowns, destroyed.stopped), (1, 1, None));
    assert!(!world.cools_down(2).await);
}

/// Both processes compete for each spot, and for the destruction of its reactor.
pub async fn of_two_processes_one_creates_and_one_destroys(one: Store, other: Store) {
    const SPOTS: i16 = 40;
    let world = World::new(&one);
    let twin = World {
        reactors: Reactors::new(other.clone()),
        store: other.clone(),
        scope: other.scope(world.tenant),
        ..world.clone()
    };
    let (mut created, mut destroyed) = (0, 0);
    for x in 0..SPOTS {
        let (mine, theirs) = tokio::join!(
            world.reactors.create(world.tenant, world.request(x)),
            twin.reactors.create(twin.tenant, twin.request(x)),
        );
        let (winner, loser) = if mine.is_ok() { (mine, theirs) } else { (theirs, mine) };
        let id = winner.unwrap().id;
        assert_eq!(loser, Err(Error::SpotTaken { id }));
        created += 1;
        let (mine, theirs) =
            tokio::join!(world.reactors.destroy(world.tenant, id), twin.reactors.destroy(twin.tenant, id),);
        let lost =
            [mine, theirs].into_iter().filter(|outcome| *outcome == Err(Error::NotFound { id })).count();
        assert_eq!(lost, 1, "reactor {id}");
        destroyed += 1;
    }
    assert_eq!((created, destroyed, world.indexed().await), (SPOTS, SPOTS, vec![]));
}
