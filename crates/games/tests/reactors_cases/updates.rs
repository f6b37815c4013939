//! Updates: on what was read, or not at all.

use super::World;
use emberkeep_games::reactors::{Error, Reactor};
use emberkeep_hot::Store;

pub async fn an_update_changes_and_stamps(store: Store) {
    let world = World::new(&store);
    let seen = world.external_create(1).await;
    let seen = world.get(seen).await;
    let next = Reactor { state: 1, event_state: 4, name: "renamed".into(), ..seen.clone() };
    let updated = world.reactors.update(world.tenant, &seen, next.clone()).await.unwrap();
    assert!(updated.update_time.ms() > seen.update_time.ms());
    assert_eq!(updated, Reactor { update_time: updated.update_time.clone(), ..next });
    assert_eq!(world.get(seen.id).await, updated);
}

pub async fn an_update_of_what_changed_meanwhile_is_a_conflict_that_shows_it(store: Store) {
    let world = World::new(&store);
    let seen = world.create(1).await;
    let current = world.reactors.hit(world.tenant, seen.id, super::HERO, 0).await.unwrap().reactor;
    let next = Reactor { event_state: 7, ..seen.clone() };
    let refused = world.reactors.update(world.tenant, &seen, next).await;
    assert_eq!(refused, Err(Error::Conflict { current: Box::new(current.clone()) }));
    assert_eq!(world.get(seen.id).await, current);
    // What the error shows is good for the next try.
    let next = Reactor { event_state: 7, ..current.clone() };
    assert_eq!(world.reactors.update(world.tenant, &current, next).await.unwrap().event_state, 7);
}

pub async fn of_64_updates_of_one_reading_one_wins(store: Store) {
    let world = World::new(&store);
    let seen = world.create(1).await;
    let results = world
        .at_once(64, |world, task| {
            let seen = seen.clone();
            async move {
                let next = Reactor { event_state: task as u8 + 1, ..seen.clone() };
                world.reactors.update(world.tenant, &seen, next).await
            }
        })
        .await;
    let won: Vec<&Reactor> = results.iter().flatten().collect();
    assert_eq!(won.len(), 1, "{results:?}");
    let lost = Err(Error::Conflict { current: Box::new(won[0].clone()) });
    assert_eq!(results.iter().filter(|result| **result == lost).count(), 63, "{results:?}");
    assert_eq!(world.get(seen.id).await, *won[0]);
}

pub async fn updates_by_closure_are_all_made(store: Store) {
    let world = World::new(&store);
    let id = world.create(1).await.id;
    let results = world
        .at_once(64, move |world, _| async move {
            world.reactors.update_with(world.tenant, id, |reactor| reactor.event_state += 1).await
        })
        .await;
    let mut seen: Vec<u8> = results.into_iter().map(|result| result.unwrap().event_state).collect();
    seen.sort();
    assert_eq!(seen, (1..=64).collect::<Vec<_>>());
    assert_eq!(world.get(id).await.event_state, 64);
}

pub async fn an_update_moves_no_reactor(store: Store) {
    let world = World::new(&store);
    let seen = world.create(1).await;
    let changes: [fn(&mut Reactor); 5] = [
        |reactor| reactor.id.0 += 1,
        |reactor| reactor.tenant.id = uuid::Uuid::max(),
        |reactor| reactor.map += 1,
        |reactor| reactor.x += 1,
        |reactor| reactor.classification = 0,
    ];
    for change in changes {
        let mut next = seen.clone();
        change(&mut next);
        let refused = world.reactors.update(world.tenant, &seen, next).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { what: "update", .. }), "{refused:?}");
        let refused = world.reactors.update_with(world.tenant, seen.id, change).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { what: "update", .. }), "{refused:?}");
    }
    assert_eq!(world.get(seen.id).await, seen);
}
