//! Teardowns remove everything of one tenant, or of all.

use super::World;
use bytes::Bytes;
use emberkeep_games::reactors::{
    CreateRequest, REACTOR, REACTOR_COOLDOWN, REACTOR_COOLDOWNS, REACTOR_MAP, REACTOR_SPOTS, REACTORS_ALL,
    ReactorId, cooldown_key, cooldowns_key, field_key, spots_key,
};
use emberkeep_games::world::{Field, Tenant};
use emberkeep_hot::command::Write;
use emberkeep_hot::{self as hot, Store};
use emberkeep_schema::Family;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Reactors in two fields, an orphan, a stale entry, and cooldowns of both kinds.
async fn furnish(world: &World) {
    world.create_with_delay(1, 60_000).await;
    let cooling = world.create_with_delay(2, 60_000).await;
    world.reactors.destroy(world.tenant, cooling.id).await.unwrap();
    let upstairs = Field { channel: 2, ..world.field };
    let request = CreateRequest { field: upstairs, ..world.request(1) };
    world.reactors.create(world.tenant, request).await.unwrap();
    world.reactors.start_cooldown(world.tenant, upstairs, world.spot(9), MINUTE).await.unwrap();
    world.external_set(&cooldown_key(&upstairs, &world.spot(8)), "1").await;
    let orphan = world.create(3).await;
    let entry = vec![Bytes::from(orphan.id.to_string())];
    world.external(&field_key(&world.field), Write::SRem(entry)).await;
    let stale = world.create(4).await;
    world.external(&REACTOR.key(stale.id), Write::Del).await;
    world.external_create(5).await;
}

/// Keys of a family, of one tenant if they contain it.
async fn count<F: Family<Partition = Tenant>>(store: &Store, tenant: Option<Tenant>) -> usize {
    let (mut count, mut from) = (0, None);
    loop {
        let page = store.scan::<F>(from, 500).await.unwrap();
        count += page.keys.iter().filter(|(of, _)| tenant.is_none() || *of == tenant).count();
        from = page.next;
        if from.is_none() {
            return count;
        }
    }
}

/// Keys that contain their tenant.
async fn left(store: &Store, tenant: Option<Tenant>) -> [usize; 4] {
    [
        count::<REACTOR_MAP>(store, tenant).await,
        count::<REACTOR_COOLDOWN>(store, tenant).await,
        count::<REACTOR_COOLDOWNS>(store, tenant).await,
        count::<REACTOR_SPOTS>(store, tenant).await,
    ]
}

pub async fn after_a_teardown_neither_reactors_nor_cooldowns_are_left(store: Store) {
    let world = World::new(&store);
    furnish(&world).await;
    let report = world.reactors.teardown(world.tenant).await.unwrap();
    assert_eq!((report.reactors, report.cooldowns, report.corrupt.len()), (4, 3, 0));
    assert_eq!(left(&store, Some(world.tenant)).await, [0; 4]);
    assert!(world.reactors.all(world.tenant).await.unwrap().living.is_empty());
    for x in 1..=5 {
        world.create(x).await;
    }
    world.reactors.teardown(world.tenant).await.unwrap();
}

pub async fn a_teardown_leaves_other_tenants_alone(store: Store) {
    let (world, other_world) = (World::new(&store), World::new(&store));
    furnish(&world).await;
    furnish(&other_world).await;
    let before =
        (other_world.reactors.all(other_world.tenant).await, left(&store, Some(other_world.tenant)).await);
    let report = world.reactors.teardown(world.tenant).await.unwrap();
    assert_eq!(report.reactors, 4);
    let after =
        (other_world.reactors.all(other_world.tenant).await, left(&store, Some(other_world.tenant)).await);
    assert_eq!(after.0.unwrap().living, before.0.unwrap().living);
    assert_eq!(after.1, before.1);
    assert!(other_world.cools_down(2).await);
}

pub async fn a_teardown_leaves_and_names_what_does_not_say_whose_it_is(store: Store) {
    let world = World::new(&store);
    let corrupt = world.create(1).await;
    world.external_set(&REACTOR.key(corrupt.id), "{").await;
    let report = world.reactors.teardown(world.tenant).await.unwrap();
    let cluster = store.key_layout().topology() == emberkeep_schema::Topology::Cluster;
    let stored = world.stored(&REACTOR.key(corrupt.id)).await;
    if cluster {
        // On a Cluster the key contains the tenant.
        assert_eq!((report.corrupt.len(), report.reactors, stored), (0, 1, None));
    } else {
        let reported = report.corrupt.iter().map(ToString::to_string).collect::<String>();
        assert!(reported.contains(&format!("reactor:{}", corrupt.id)), "{reported}");
        assert_eq!(stored.as_deref(), Some("{"));
    }
    world.external(&REACTOR.key(corrupt.id), Write::Del).await;
}

pub async fn a_teardown_removes_a_corrupt_index_and_who_says_that_he_is_there(store: Store) {
    let world = World::new(&store);
    let upstairs = Field { channel: 2, ..world.field };
    let request = CreateRequest { field: upstairs, ..world.request(1) };
    let there = world.reactors.create(world.tenant, request).await.unwrap();
    world.create(1).await;
    world.reactors.start_cooldown(world.tenant, upstairs, world.spot(9), MINUTE).await.unwrap();
    world.external_set(&field_key(&upstairs), "no index").await;
    world.external_set(&spots_key(&upstairs), "no hash").await;
    world.external_set(&cooldowns_key(&upstairs), "no sorted set").await;
    let report = world.reactors.teardown(world.tenant).await.unwrap();
    assert_eq!((report.reactors, report.cooldowns, report.corrupt), (2, 1, vec![]));
    let [discarded @ hot::Error::WrongType { .. }] = &report.discarded[..] else {
        panic!("{:?}", report.discarded)
    };
    assert!(discarded.to_string().contains("reactors:map:"), "{discarded}");
    assert_eq!(left(&store, Some(world.tenant)).await, [0; 4]);
    assert!(!world.in_all(there.id).await);
}

pub async fn a_teardown_of_all_leaves_nothing_of_anybody(store: Store) {
    let (world, other_world) = (World::new(&store), World::new(&store));
    furnish(&world).await;
    furnish(&other_world).await;
    let corrupt = world.create(7).await;
    world.external_set(&REACTOR.key(corrupt.id), "{").await;
    world.external_add(&REACTORS_ALL.key(), "1234567890").await;
    let report = world.reactors.teardown_all().await.unwrap();
    assert!(report.reactors >= 9 && report.cooldowns >= 6 && report.corrupt.is_empty(), "{report:?}");
    assert_eq!(left(&store, None).await, [0; 4]);
    assert_eq!((count::<REACTOR>(&store, None).await, count::<REACTORS_ALL>(&store, None).await), (0, 0));
}

pub async fn ids_go_on_after_a_teardown(store: Store) {
    let world = World::new(&store);
    let before = world.create(1).await.id;
    world.reactors.teardown(world.tenant).await.unwrap();
    let after = world.create(1).await.id;
    assert_eq!(after, ReactorId(before.0 + 1), "a client may still know the last owner of an id");
}
