//! Updates: on the version that was read, or not at all.

use super::World;
use emberkeep_games::reactors::{Error, Reactor};
use emberkeep_hot::Store;

pub async fn an_update_changes_and_stamps(store: Store) {
    let world = World::new(&store);
    let before = world.external_create(1).await;
    let before = world.get(before).await;
    let next = Reactor { state: 1, event_state: 4, name: "renamed".into(), ..before.clone() };
    let updated = world.reactors.update(world.tenant, &before, next.clone()).await.unwrap();
    assert!(updated.update_time.ms() > before.update_time.ms());
    assert_eq!(updated, Reactor { update_time: updated.update_time.clone(), ..next });
    assert_eq!(world.get(before.id).await, updated);
}

pub async fn an_update_of_what_changed_meanwhile_is_a_conflict_that_shows_it(store: Store) {
    let world = World::new(&store);
    let before = world.create(1).await;
    let current = world.reactors.hit(world.tenant, before.id, super::HERO, 0).await.unwrap().reactor;
    let next = Reactor { event_state: 7, ..before.clone() };
    let refused = world.reactors.update(world.tenant, &before, next).await;
    assert_eq!(refused, Err(Error::Conflict { current: Box::new(current.clone()) }));
    assert_eq!(world.get(before.id).await, current);
    // The reactor in the error can be used for the next attempt.
    let next = Reactor { event_state: 7, ..current.clone() };
    assert_eq!(world.reactors.update(world.tenant, &current, next).await.unwrap().event_state, 7);
}

pub async fn of_64_updates_of_one_reading_one_wins(store: Store) {
    let world = World::new(&store);
    let before = world.create(1).await;
    let results = world
        .at_once(64, |world, task| {
            let before = before.clone();
            async move {
                let next = Reactor { event_state: task as u8 + 1, ..before.clone() };
                world.reactors.update(world.tenant, &before, next).await
            }
        })
        .await;
    let won: Vec<&Reactor> = results.iter().flatten().collect();
    assert_eq!(won.len(), 1, "{results:?}");
    let lost = Err(Error::Conflict { current: Box::new(won[0].clone()) });
    assert_eq!(results.iter().filter(|result| **result == lost).count(), 63, "{results:?}");
    assert_eq!(world.get(before.id).await, *won[0]);
}

pub async fn updates_by_closure_are_all_made(store: Store) {
    let world = World::new(&store);
    let id = world.create(1).await.id;
    let results = world
        .at_once(64, move |world, _| async move {
            world.reactors.update_with(world.tenant, id, |reactor| reactor.event_state += 1).await
        })
        .await;
    let mut before: Vec<u8> = results.into_iter().map(|result| result.unwrap().event_state).collect();
    before.sort();
    assert_eq!(before, (1..=64).collect::<Vec<_>>());
    assert_eq!(world.get(id).await.event_state, 64);
}

pub async fn an_update_moves_no_reactor(store: Store) {
    let world = World::new(&store);
    let before = world.create(1).await;
    let changes: [fn(&mut Reactor); 5] = [
        |reactor| reactor.id.0 += 1,
        |reactor| reactor.tenant.id = uuid::Uuid::max(),
        |reactor| reactor.map += 1,
        |reactor| reactor.x += 1,
        |reactor| reactor.classification = 0,
    ];
    for change in changes {
        let mut next = before.clone();
        change(&mut next);
        let refused = world.reactors.update(world.tenant, &before, next).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { what: "update", .. }), "{refused:?}");
        let refused = world.reactors.update_with(world.tenant, before.id, change).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { what: "update", .. }), "{refused:?}");
    }
    assert_eq!(world.get(before.id).await, before);
}
