//! Ids: counted, wrapped, never assigned while in use.

use super::{World, ids_of};
use emberkeep_games::reactors::{CreateRequest, Error, REACTOR_ID_NEXT, ReactorId};
use emberkeep_hot::command::Write;
use emberkeep_hot::{self as hot, Store};
use std::collections::HashSet;

const FIRST: u32 = 1_000_000_001;
const LAST: u32 = 2_000_000_000;

pub async fn ids_are_counted_up_from_the_counter(store: Store) {
    let world = World::new(&store);
    world.external_set(&REACTOR_ID_NEXT.key(), "1500000000").await;
    for expected in [1_500_000_001, 1_500_000_002] {
        assert_eq!(world.create(expected as i16).await.id, ReactorId(expected));
    }
    assert_eq!(world.reactors.allocate_id(world.tenant).await, Ok(ReactorId(1_500_000_003)));
    assert_eq!(world.stored(&REACTOR_ID_NEXT.key()).await.as_deref(), Some("1500000003"));
}

pub async fn the_counter_wraps_and_passes_over_the_living(store: Store) {
    let world = World::new(&store);
    world.external_set(&REACTOR_ID_NEXT.key(), "1999999998").await;
    let before = [world.create(1).await.id, world.create(2).await.id, world.create(3).await.id];
    assert_eq!((before[0].0, before[1].0), (LAST - 1, LAST));
    assert!(before[2].0 >= FIRST && before[2].0 < LAST - 1, "{before:?}");
    // After the wrap, the two at the end are in use.
    world.external_set(&REACTOR_ID_NEXT.key(), "1999999998").await;
    let after = world.create(4).await.id;
    assert!(after.0 > before[2].0 && after.0 < LAST - 1, "{after} after {before:?}");
    assert_eq!(world.listed().await.len(), 4);
    for x in 1..=4 {
        assert!(world.reactors.create(world.tenant, world.request(x)).await.is_err());
    }
    world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
}

pub async fn a_lost_counter_hands_out_no_living_id(store: Store) {
    let world = World::new(&store);
    world.external(&REACTOR_ID_NEXT.key(), Write::Del).await;
    let mut before = Vec::new();
    // More than one transaction examines.
    for x in 0..100 {
        before.push(world.create(x).await);
    }
    world.external(&REACTOR_ID_NEXT.key(), Write::Del).await;
    let after = world.create(100).await;
    let living = ids_of(&before);
    assert!(!living.contains(&after.id) && after.id.0 >= FIRST, "{} of {living:?}", after.id);
    assert_eq!(world.listed().await.len(), 101);
    world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
}

pub async fn a_counter_outside_of_the_range_re_enters_it(store: Store) {
    let world = World::new(&store);
    for (x, counter) in ["7", "-3", "99999999999", "2000000000", "1000000000"].into_iter().enumerate() {
        world.external_set(&REACTOR_ID_NEXT.key(), counter).await;
        let id = world.create(x as i16).await.id.0;
        assert!((FIRST..=LAST).contains(&id), "{id} after {counter}");
    }
    world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
}

pub async fn a_counter_that_is_text_is_an_error_that_names_its_key(store: Store) {
    let world = World::new(&store);
    world.external_set(&REACTOR_ID_NEXT.key(), "soon").await;
    let error = world.reactors.create(world.tenant, world.request(1)).await.unwrap_err();
    assert!(matches!(&error, Error::Store(hot::Error::Corrupt { .. })), "{error:?}");
    assert!(error.to_string().contains("reactors:next_id"), "{error}");
    assert!(world.reactors.allocate_id(world.tenant).await.is_err());
    assert_eq!(world.stored(&REACTOR_ID_NEXT.key()).await.as_deref(), Some("soon"));
    assert!(world.indexed().await.is_empty());
    world.external(&REACTOR_ID_NEXT.key(), Write::Del).await;
}

pub async fn an_allocated_id_is_used_once(store: Store) {
    let world = World::new(&store);
    let id = world.reactors.allocate_id(world.tenant).await.unwrap();
    let request = |x| CreateRequest { id: Some(id), ..world.request(x) };
    assert_eq!(world.reactors.create(world.tenant, request(1)).await.unwrap().id, id);
    let again = world.reactors.create(world.tenant, request(2)).await.unwrap_err();
    assert!(matches!(again, Error::Invalid { what: "id", .. }), "{again:?}");
    assert_eq!(world.get(id).await.x, 1);
    assert_eq!(world.listed().await, [id]);
}

pub async fn an_id_out_of_range_is_refused_and_never_found(store: Store) {
    let world = World::new(&store);
    for id in [0, 1, FIRST - 1, LAST + 1, u32::MAX].map(ReactorId) {
        let request = CreateRequest { id: Some(id), ..world.request(1) };
        let error = world.reactors.create(world.tenant, request).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { what: "id", .. }), "{error:?}");
        assert_eq!(world.reactors.get(world.tenant, id).await, Err(Error::NotFound { id }));
        assert_eq!(world.reactors.destroy(world.tenant, id).await, Err(Error::NotFound { id }));
    }
    assert!(world.indexed().await.is_empty());
}

pub async fn ids_that_are_allocated_at_once_differ(store: Store) {
    let world = World::new(&store);
    let ids =
        world.at_once(64, |world, _| async move { world.reactors.allocate_id(world.tenant).await }).await;
    let ids: HashSet<ReactorId> = ids.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids.len(), 64);
}
