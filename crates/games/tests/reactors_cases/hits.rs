//! Hits: each one counts, or fails with `NotFound`.

use super::{HERO, World, states};
use emberkeep_games::reactors::{CreateRequest, Error, Event, Outcome, REACTOR, cooldown_key};
use emberkeep_games::world::CharacterId;
use emberkeep_hot::Store;
use emberkeep_hot::command::Write;
use std::time::Duration;

pub async fn hits_walk_the_states_and_the_last_one_triggers(store: Store) {
    let world = World::new(&store);
    let reactor = world.create(1).await;
    let first = world.reactors.hit(world.tenant, reactor.id, HERO, 0).await.unwrap();
    assert_eq!((first.character, first.skill, first.outcome), (HERO, 0, Outcome::Advanced { from: 0 }));
    assert_eq!(first.reactor.state, 1);
    assert_eq!(world.get(reactor.id).await, first.reactor);
    let last = world.reactors.hit(world.tenant, reactor.id, CharacterId(2), 9).await.unwrap();
    assert_eq!(
        (last.character, last.skill, last.outcome),
        (CharacterId(2), 9, Outcome::Triggered { cooldown: None })
    );
    assert_eq!(last.reactor, first.reactor);
    let late = world.reactors.hit(world.tenant, reactor.id, HERO, 0).await;
    assert_eq!(late, Err(Error::NotFound { id: reactor.id }));
    assert!(world.indexed().await.is_empty() && !world.in_all(reactor.id).await);
}

pub async fn the_skill_chooses_the_way(store: Store) {
    let world = World::new(&store);
    let mut request = world.request(1);
    let event = |skills: &[u32], next| Event { skills: skills.to_vec().into(), next, ..Event::default() };
    request.data.states = [
        (0, vec![event(&[1001, 1002], 1), event(&[2001], 2)].into()),
        (1, vec![event(&[], -1)].into()),
        (2, vec![event(&[], 0)].into()),
    ]
    .into_iter()
    .collect();
    let id = world.reactors.create(world.tenant, request).await.unwrap().id;
    let mut found = Vec::new();
    for skill in [2001, 0, 1002] {
        found.push(world.reactors.hit(world.tenant, id, HERO, skill).await.unwrap().reactor.state);
    }
    assert_eq!(found, [2, 0, 1]);
    let end = world.reactors.hit(world.tenant, id, HERO, 0).await.unwrap();
    assert_eq!(end.outcome, Outcome::Triggered { cooldown: None });
}

pub async fn a_hit_stamps_the_time(store: Store) {
    let world = World::new(&store);
    let id = world.external_create(1).await;
    let before = store.now().await.unwrap();
    let hit = world.reactors.hit(world.tenant, id, HERO, 0).await.unwrap();
    assert!(hit.reactor.update_time.ms().unwrap() >= before - 1_000);
    let stamp = hit.reactor.update_time.to_string();
    assert!(stamp.len() == "2024-02-29T23:59:59.007Z".len() && stamp.ends_with('Z'), "{stamp}");
    assert!(world.stored(&REACTOR.key(id)).await.unwrap().contains(&stamp));
}

pub async fn hits_at_the_same_time_each_advance_or_lose(store: Store) {
    const STATES: i8 = 24;
    let world = World::new(&store);
    let mut request = world.request(1);
    request.data.states = states(STATES);
    let id = world.reactors.create(world.tenant, request).await.unwrap().id;
    let hits = world
        .at_once(64, move |world, task| async move {
            world.reactors.hit(world.tenant, id, CharacterId(task), 0).await
        })
        .await;
    let (mut left, mut triggered, mut late) = (Vec::new(), 0, 0);
    for hit in hits {
        match hit.map(|hit| hit.outcome) {
            Ok(Outcome::Advanced { from }) => left.push(from),
            Ok(Outcome::Triggered { .. }) => triggered += 1,
            Ok(outcome @ Outcome::Stayed { .. }) => panic!("{outcome:?} by default"),
            Err(error) => {
                assert_eq!(error, Error::NotFound { id });
                late += 1;
            }
        }
    }
    left.sort();
    assert_eq!(left, (0..STATES - 1).collect::<Vec<_>>(), "each state is left once, none is jumped over");
    assert_eq!((triggered, late), (1, 64 - i32::from(STATES)));
}

pub async fn a_hit_that_triggers_starts_the_cooldown(store: Store) {
    let world = World::new(&store);
    let request = CreateRequest { delay_ms: 60_000, data: Default::default(), ..world.request(1) };
    let id = world.reactors.create(world.tenant, request).await.unwrap().id;
    let now = store.now().await.unwrap();
    let hit = world.reactors.hit(world.tenant, id, HERO, 0).await.unwrap();
    assert_eq!(hit.outcome, Outcome::Triggered { cooldown: Some(Duration::from_secs(60)) });
    let marker = cooldown_key(&world.field, &world.spot(1));
    let end = world.scope.deadline_of(&marker).await.unwrap().expect("the marker ends");
    assert!((now + 59_000..now + 70_000).contains(&end), "{end} at {now}");
    let again = world.reactors.create(world.tenant, world.request(1)).await;
    assert!(matches!(again, Err(Error::OnCooldown { .. })), "{again:?}");
}

pub async fn a_reactor_that_vanished_between_two_calls_is_not_found(store: Store) {
    let world = World::new(&store);
    let reactor = world.create(1).await;
    let id = reactor.id;
    world.external(&REACTOR.key(id), Write::Del).await;
    let gone = Error::NotFound { id };
    assert_eq!(world.reactors.get(world.tenant, id).await, Err(gone.clone()));
    assert_eq!(world.reactors.hit(world.tenant, id, HERO, 0).await, Err(gone.clone()));
    assert_eq!(world.reactors.update(world.tenant, &reactor, reactor.clone()).await, Err(gone.clone()));
    assert_eq!(world.reactors.update_with(world.tenant, id, |r| r.state = 1).await, Err(gone.clone()));
    assert_eq!(world.reactors.destroy(world.tenant, id).await, Err(gone));
    assert_eq!(world.stored(&REACTOR.key(id)).await, None, "it was not written back");
}
