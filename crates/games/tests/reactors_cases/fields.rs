//! The reactors of a field, and no others.

use super::{World, ids_of};
use emberkeep_games::reactors::{CreateRequest, REACTOR, REACTORS_ALL, field_key};
use emberkeep_games::world::Field;
use emberkeep_hot::command::Write;
use emberkeep_hot::{self as hot, Store};

pub async fn a_field_lists_its_own_reactors(store: Store) {
    let world = World::new(&store);
    let (first, second) = (world.create(1).await, world.create(2).await);
    let upstairs = Field { instance: uuid::Uuid::new_v4(), ..world.field };
    let request = CreateRequest { field: upstairs, ..world.request(1) };
    let other = world.reactors.create(world.tenant, request).await.unwrap();
    let listing = world.reactors.in_field(world.tenant, world.field).await.unwrap();
    assert_eq!(ids_of(&listing.living), [first.id, second.id]);
    assert!(listing.living.contains(&first) && listing.corrupt.is_empty() && listing.pruned == 0);
    let listing = world.reactors.in_field(world.tenant, upstairs).await.unwrap();
    assert_eq!(listing.living, [other]);
}

pub async fn a_field_is_asked_by_name(store: Store) {
    let world = World::new(&store);
    let named = |name: &str, x| CreateRequest { name: name.into(), ..world.request(x) };
    let mut gates = Vec::new();
    for (name, x) in [("gate", 1), ("box", 2), ("gate", 3), ("gate ", 4)] {
        let reactor = world.reactors.create(world.tenant, named(name, x)).await.unwrap();
        gates.extend((name == "gate").then_some(reactor));
    }
    let found = |name| world.reactors.named_in_field(world.tenant, world.field, name);
    assert_eq!(ids_of(&found("gate").await.unwrap().living), ids_of(&gates));
    assert!(found("door").await.unwrap().living.is_empty());
}

pub async fn all_of_a_tenant_are_its_own_over_all_fields(store: Store) {
    let (world, other_world) = (World::new(&store), World::new(&store));
    let mut own = vec![world.create(1).await];
    for channel in 2..5 {
        let request = CreateRequest { field: Field { channel, ..world.field }, ..world.request(1) };
        own.push(world.reactors.create(world.tenant, request).await.unwrap());
    }
    let theirs = other_world.create(1).await;
    let listing = world.reactors.all(world.tenant).await.unwrap();
    assert_eq!(ids_of(&listing.living), ids_of(&own));
    assert_eq!(other_world.reactors.all(other_world.tenant).await.unwrap().living, [theirs]);
}

pub async fn all_of_a_tenant_are_read_in_pages(store: Store) {
    let (world, other_world) = (World::new(&store), World::new(&store));
    let mut own = Vec::new();
    for x in 0..25 {
        own.push(world.create(x).await.id);
        other_world.create(x).await;
    }
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let page = world.reactors.page(world.tenant, from, 10).await.unwrap();
        assert!(page.listing.living.iter().all(|reactor| reactor.is_of(&world.tenant)));
        found.extend(ids_of(&page.listing.living));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    own.sort_unstable();
    assert_eq!(found, own);
}

pub async fn a_stale_entry_of_an_external_delete_is_not_listed_and_is_pruned(store: Store) {
    let world = World::new(&store);
    let (stale, living) = (world.create(1).await, world.create(2).await);
    world.external(&REACTOR.key(stale.id), Write::Del).await;
    assert_eq!(world.indexed().await, [stale.id, living.id]);
    let listing = world.reactors.in_field(world.tenant, world.field).await.unwrap();
    assert_eq!((listing.living, listing.pruned), (vec![living.clone()], 1));
    assert_eq!(world.indexed().await, [living.id]);
    assert!(world.in_all(stale.id).await);
    assert_eq!(world.reactors.all(world.tenant).await.unwrap().living, [living]);
    assert!(!world.in_all(stale.id).await);
}

pub async fn a_stale_entry_holds_no_spot(store: Store) {
    let world = World::new(&store);
    let stale = world.create(1).await;
    world.external(&REACTOR.key(stale.id), Write::Del).await;
    let living = world.create(1).await;
    assert_eq!(world.indexed().await, [living.id]);
    assert!(!world.in_all(stale.id).await);
}

pub async fn an_entry_of_a_reactor_elsewhere_is_no_member(store: Store) {
    let (world, other_world) = (World::new(&store), World::new(&store));
    let own = world.create(1).await;
    let theirs = other_world.get(other_world.external_create(1).await).await;
    let upstairs = Field { channel: 9, ..world.field };
    world.external_add(&field_key(&upstairs), &own.id.to_string()).await;
    world.external_add(&field_key(&world.field), &theirs.id.to_string()).await;
    assert_eq!(world.reactors.in_field(world.tenant, upstairs).await.unwrap().living, []);
    let listing = world.reactors.in_field(world.tenant, world.field).await.unwrap();
    assert_eq!((listing.living, listing.pruned), (vec![own.clone()], 1));
    assert_eq!(world.indexed().await, [own.id]);
    assert_eq!(world.scope.smembers(&field_key(&upstairs)).await, Ok(vec![]));
    assert!(world.in_all(own.id).await && other_world.in_all(theirs.id).await);
    assert_eq!(other_world.get(theirs.id).await, theirs);
}

pub async fn a_corrupt_record_is_named_and_hides_no_other(store: Store) {
    let world = World::new(&store);
    let (first, corrupt, last) = (world.create(1).await, world.create(2).await, world.create(3).await);
    let key = REACTOR.key(corrupt.id);
    world.external_set(&key, r#"{"tenant":{"id":"#).await;
    for listing in [
        world.reactors.in_field(world.tenant, world.field).await.unwrap(),
        world.reactors.named_in_field(world.tenant, world.field, "").await.unwrap(),
    ] {
        assert_eq!(ids_of(&listing.living), [first.id, last.id]);
        assert_eq!(listing.corrupt.len(), 1);
        let reported = listing.corrupt[0].to_string();
        assert!(reported.contains(&format!("reactor:{}", corrupt.id)), "{reported}");
    }
    assert_eq!(world.indexed().await.len(), 3, "its entry stays for a repair");
    // Single calls on it fail in the same way, and change nothing.
    let error = world.reactors.hit(world.tenant, corrupt.id, super::HERO, 0).await.unwrap_err();
    assert!(error.to_string().contains(&format!("reactor:{}", corrupt.id)), "{error}");
    let destroyed = world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
    assert_eq!((ids_of(&destroyed.reactors), destroyed.corrupt.len()), (vec![first.id, last.id], 1));
    assert_eq!(world.stored(&key).await.as_deref(), Some(r#"{"tenant":{"id":"#));
    world.external(&key, Write::Del).await;
}

pub async fn a_corrupt_record_closes_its_own_spot_only(store: Store) {
    let world = World::new(&store);
    let corrupt = world.create(1).await;
    world.external_set(&REACTOR.key(corrupt.id), "{}").await;
    let refused = world.reactors.create(world.tenant, world.request(1)).await.unwrap_err();
    assert!(
        matches!(&refused, emberkeep_games::reactors::Error::Store(hot::Error::Corrupt { .. })),
        "{refused:?}"
    );
    let other = world.create(2).await;
    // The spot of a reactor that was never indexed is unknown.
    let unknown = world.external_create(3).await;
    world.external(&REACTOR.key(unknown), Write::Del).await;
    world.external(&REACTOR.key(unknown), Write::LPush(vec!["a list".into()])).await;
    let third = world.create(3).await;
    assert_eq!(world.listed().await, [other.id, third.id]);
    world.external(&REACTOR.key(unknown), Write::Del).await;
    world.external(&REACTOR.key(corrupt.id), Write::Del).await;
}

pub async fn rubbish_in_an_index_is_dropped(store: Store) {
    let world = World::new(&store);
    let living = world.create(1).await;
    for rubbish in ["a word", "", "01000000001", "-5", "99999999999"] {
        world.external_add(&field_key(&world.field), rubbish).await;
    }
    world.external_add(&REACTORS_ALL.key(), "a word").await;
    let second = world.create(2).await;
    assert_eq!(world.indexed().await, [living.id, second.id]);
    world.external_add(&field_key(&world.field), "a word").await;
    assert_eq!(world.listed().await, [living.id, second.id]);
    assert_eq!(world.indexed().await, [living.id, second.id]);
    world.reactors.all(world.tenant).await.unwrap();
    assert!(world.scope.smembers(&REACTORS_ALL.key()).await.is_ok());
}
