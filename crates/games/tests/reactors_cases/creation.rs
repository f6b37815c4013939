//! Creation: one reactor per spot.

use super::{BOX, World, states};
use emberkeep_games::reactors::limits::{DATA_BYTES_MAX, DELAY_MS_MAX, NAME_BYTES_MAX};
use emberkeep_games::reactors::{
    CreateRequest, Error, REACTOR, REACTOR_ID_NEXT, Reactor, ReactorData, ReactorId, Result, Spot, field_key,
};
use emberkeep_games::world::{Field, REGION_BYTES_MAX, Tenant};
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::{self as hot, Store, Tx};
use std::collections::HashSet;
use uuid::Uuid;

pub async fn a_created_reactor_is_in_its_record_and_in_both_indexes(store: Store) {
    let world = World::new(&store);
    let request = CreateRequest {
        name: "gate".into(),
        state: 1,
        event_state: 2,
        delay_ms: 3_000,
        direction: 1,
        region: "GMS".into(),
        major_version: 83,
        minor_version: 1,
        ..world.request(-315)
    };
    let before = store.now().await.unwrap();
    let reactor = world.reactors.create(world.tenant, request).await.unwrap();
    assert_eq!(reactor.field(), world.field);
    assert_eq!(reactor.spot(), Spot { classification: BOX, x: -315, y: -88 });
    assert_eq!((reactor.name.as_str(), reactor.state, reactor.event_state), ("gate", 1, 2));
    assert_eq!((reactor.delay_ms, reactor.direction, &reactor.data.states), (3_000, 1, &states(2)));
    let tenant = &reactor.tenant;
    assert_eq!((tenant.id, tenant.region.as_str(), tenant.major_version), (world.tenant.0, "GMS", 83));
    assert!(reactor.update_time.ms().unwrap() >= before - 1_000);
    assert_eq!(world.get(reactor.id).await, reactor);
    assert_eq!(world.listed().await, [reactor.id]);
    assert!(world.in_all(reactor.id).await);
    let json = world.stored(&REACTOR.key(reactor.id)).await.unwrap();
    assert!(
        json.starts_with(r#"{"tenant":{"id":""#) && json.contains(r#""x":-315,"y":-88,"updateTime":"20"#),
        "{json}"
    );
}

pub async fn a_reactor_of_no_classification_is_refused(store: Store) {
    let world = World::new(&store);
    let request = CreateRequest { classification: 0, ..world.request(1) };
    let error = world.reactors.create(world.tenant, request).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "classification", .. }), "{error:?}");
    assert!(world.indexed().await.is_empty());
}

pub async fn a_delay_out_of_bounds_is_refused(store: Store) {
    let world = World::new(&store);
    for delay_ms in [-1, i64::MIN, DELAY_MS_MAX + 1, i64::MAX] {
        let request = CreateRequest { delay_ms, ..world.request(1) };
        let error = world.reactors.create(world.tenant, request).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { what: "delay", .. }), "{error:?}");
        assert!(error.to_string().contains(&delay_ms.to_string()), "{error}");
    }
    assert!(world.indexed().await.is_empty());
    assert_eq!(world.create_with_delay(1, DELAY_MS_MAX).await.delay_ms, u32::MAX);
}

pub async fn texts_out_of_bounds_are_refused(store: Store) {
    let world = World::new(&store);
    let named = |name: String| CreateRequest { name, ..world.request(1) };
    let of_region = |region: &str| CreateRequest { region: region.into(), ..world.request(1) };
    let data = ReactorData { name: "d".repeat(DATA_BYTES_MAX), ..ReactorData::default() };
    let refused = [
        (CreateRequest { data, ..world.request(1) }, "data"),
        (named("n".repeat(NAME_BYTES_MAX + 1)), "name"),
        (named("a\u{1b}[2J".into()), "name"),
        (of_region(&"r".repeat(REGION_BYTES_MAX + 1)), "region"),
        (of_region("G\0"), "region"),
    ];
    for (request, field) in refused {
        let error = world.reactors.create(world.tenant, request).await.unwrap_err();
        assert!(matches!(&error, Error::Invalid { what, .. } if *what == field), "{error:?}");
    }
    let before = world.reactors.create(world.tenant, named("n".repeat(NAME_BYTES_MAX))).await.unwrap();
    let longer = Reactor { name: "n".repeat(NAME_BYTES_MAX + 1), ..before.clone() };
    let error = world.reactors.update(world.tenant, &before, longer).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "name", .. }), "{error:?}");
}

pub async fn a_second_reactor_on_a_spot_is_refused_and_the_first_is_named(store: Store) {
    let world = World::new(&store);
    let first = world.create(5).await;
    let second = world.reactors.create(world.tenant, world.request(5)).await;
    assert_eq!(second, Err(Error::SpotTaken { id: first.id }));
    assert_eq!(world.listed().await, [first.id]);
    let counter = world.stored(&REACTOR_ID_NEXT.key()).await;
    assert_eq!(counter, Some(first.id.to_string()), "no id was wasted on the one that was refused");
    world.reactors.destroy(world.tenant, first.id).await.unwrap();
    world.create(5).await;
}

pub async fn what_differs_in_kind_place_field_or_tenant_is_another_spot(store: Store) {
    let world = World::new(&store);
    world.create(5).await;
    let others = [
        CreateRequest { classification: BOX + 1, ..world.request(5) },
        CreateRequest { x: -5, ..world.request(5) },
        CreateRequest { y: 88, ..world.request(5) },
        CreateRequest { field: Field { channel: 2, ..world.field }, ..world.request(5) },
        CreateRequest { field: Field { instance: Uuid::new_v4(), ..world.field }, ..world.request(5) },
    ];
    for request in others {
        world.reactors.create(world.tenant, request).await.unwrap();
    }
    world.reactors.create(Tenant(Uuid::new_v4()), world.request(5)).await.unwrap();
    assert_eq!(world.listed().await.len(), 4);
}

async fn create(world: World, _task: u32) -> Result<Reactor> {
    world.reactors.create(world.tenant, world.request(5)).await
}

pub async fn of_64_creations_on_one_spot_one_wins(store: Store) {
    let world = World::new(&store);
    let results = world.at_once(64, create).await;
    let won: Vec<ReactorId> = results.iter().flatten().map(|reactor| reactor.id).collect();
    assert_eq!(won.len(), 1, "stacked: {won:?}");
    let lost = results.iter().filter(|result| **result == Err(Error::SpotTaken { id: won[0] })).count();
    assert_eq!(lost, 63, "{results:?}");
    assert_eq!(world.listed().await, won);
}

pub async fn where_an_external_reactor_stands_none_of_64_creations_wins(store: Store) {
    let world = World::new(&store);
    world.create(1).await;
    let external = world.external_create(5).await;
    let results = world.at_once(64, create).await;
    assert!(results.iter().all(|result| *result == Err(Error::SpotTaken { id: external })), "{results:?}");
    // Indexed from now on, until it is destroyed.
    assert_eq!(create(world.clone(), 0).await, Err(Error::SpotTaken { id: external }));
    world.reactors.destroy(world.tenant, external).await.unwrap();
    world.reactors.clear_cooldowns(world.tenant, world.field).await.unwrap();
    world.create(5).await;
}

pub async fn creations_beside_external_ones_in_the_same_field_are_decided_once(store: Store) {
    let world = World::new(&store);
    let external = tokio::spawn({
        let world = world.clone();
        async move {
            let mut ids = Vec::new();
            for x in 100..120 {
                ids.push((x, world.external_create(x).await));
            }
            ids
        }
    });
    let results = world.at_once(64, create).await;
    let external = external.await.unwrap();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    for (x, id) in &external {
        let on_top = world.reactors.create(world.tenant, world.request(*x)).await;
        assert_eq!(on_top, Err(Error::SpotTaken { id: *id }));
    }
    assert_eq!(world.listed().await.len(), 1 + external.len());
}

pub async fn creations_on_many_spots_at_once_all_win(store: Store) {
    let world = World::new(&store);
    let results = world
        .at_once(64, |world, task| async move {
            world.reactors.create(world.tenant, world.request(task as i16)).await
        })
        .await;
    let ids: HashSet<ReactorId> = results.into_iter().map(|result| result.unwrap().id).collect();
    assert_eq!(ids.len(), 64);
    assert_eq!(world.listed().await.len(), 64);
}

/// Fills a field by external writes.
async fn fill(world: &World, count: u32) {
    for from in (0..count).step_by(200) {
        let world_of_transaction = world.clone();
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            let ids = (from..(from + 200).min(count)).map(|n| ReactorId(1_800_000_000 + n));
            for id in ids.clone() {
                let json = world_of_transaction.external_json(id, (id.0 % 10_000) as i16);
                tx.raw_write(
                    world_of_transaction.raw(&REACTOR.key(id)),
                    Write::Set(json.into(), Expiry::Never),
                )?;
            }
            let members = ids.map(|id| id.to_string().into()).collect();
            tx.raw_write(
                world_of_transaction.raw(&field_key(&world_of_transaction.field)),
                Write::SAdd(members),
            )
        };
        world.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
}

pub async fn a_field_of_a_thousand_takes_no_more_and_can_be_destroyed(store: Store) {
    let world = World::new(&store);
    fill(&world, 1_000).await;
    let refused = world.reactors.create(world.tenant, world.request(-5)).await;
    assert_eq!(refused, Err(Error::FieldFull { max: 1_000 }));
    let taken = world.reactors.create(world.tenant, world.request(7)).await;
    assert_eq!(taken, Err(Error::SpotTaken { id: ReactorId(1_800_000_007) }));
    // After one destruction there is space for one more.
    world.reactors.destroy(world.tenant, ReactorId(1_800_000_007)).await.unwrap();
    let came = world.create(-5).await;
    assert_eq!(world.listed().await.len(), 1_000);
    let destroyed = world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
    assert_eq!((destroyed.reactors.len(), destroyed.cooldowns), (1_000, 1));
    assert!(destroyed.reactors.contains(&came));
    assert!(world.indexed().await.is_empty());
}

pub async fn a_field_of_more_than_a_transaction_reads_is_full_of_the_living_only(store: Store) {
    let world = World::new(&store);
    fill(&world, 1_100).await;
    let refused = world.reactors.create(world.tenant, world.request(-5)).await;
    assert_eq!(refused, Err(Error::FieldFull { max: 1_000 }));
    // An external client deletes records without their index entries. The stale entries take no space.
    let keys: Vec<_> = (0..200).map(|n| world.raw(&REACTOR.key(ReactorId(1_800_000_000 + n)))).collect();
    let transaction =
        move |tx: &mut Tx<'_, Tenant>| keys.iter().try_for_each(|key| tx.raw_write(key.clone(), Write::Del));
    world.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    let came = world.create(-5).await;
    assert_eq!(world.scope.scard(&field_key(&world.field)).await, Ok(901));
    assert_eq!(world.get(came.id).await, came);
    world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
}
