//! A reactor of another tenant is not found.

use super::{HERO, World};
use emberkeep_games::reactors::Error;
use emberkeep_hot::Store;
use std::time::Duration;

pub async fn the_reactor_of_another_tenant_is_not_found(store: Store) {
    let (world, other) = (World::new(&store), World::new(&store));
    let reactor = world.create_with_delay(1, 60_000).await;
    let (id, them) = (reactor.id, other.tenant);
    let hidden = Error::NotFound { id };
    assert_eq!(other.reactors.get(them, id).await, Err(hidden.clone()));
    assert_eq!(other.reactors.hit(them, id, HERO, 0).await, Err(hidden.clone()));
    assert_eq!(other.reactors.update(them, &reactor, reactor.clone()).await, Err(hidden.clone()));
    assert_eq!(other.reactors.update_with(them, id, |r| r.state = 9).await, Err(hidden.clone()));
    assert_eq!(other.reactors.destroy(them, id).await, Err(hidden));
    assert_eq!(other.listed().await, []);
    assert!(other.reactors.all(them).await.unwrap().living.is_empty());
    other.reactors.destroy_in_field(them, other.field).await.unwrap();
    other.reactors.teardown(them).await.unwrap();
    assert_eq!(world.get(id).await, reactor);
    assert_eq!(world.listed().await, [id]);
}

pub async fn the_cooldown_of_another_tenant_is_none(store: Store) {
    let (world, other) = (World::new(&store), World::new(&store));
    let minute = Duration::from_secs(60);
    world.reactors.start_cooldown(world.tenant, world.field, world.spot(1), minute).await.unwrap();
    assert!(!other.cools_down(1).await);
    let cleared = other.reactors.clear_cooldown(other.tenant, other.field, other.spot(1)).await;
    assert_eq!(cleared, Ok(false));
    assert_eq!(other.reactors.clear_cooldowns(other.tenant, other.field).await, Ok(0));
    other.create(1).await;
    assert!(world.cools_down(1).await);
}

pub async fn tenants_creating_at_once_share_no_id_on_one_server(store: Store) {
    let worlds: Vec<World> = (0..4).map(|_| World::new(&store)).collect();
    let cluster = store.key_layout().topology() == emberkeep_schema::Topology::Cluster;
    let first = &worlds[0];
    let results = first
        .at_once(64, |_, task| {
            let world = worlds[task as usize % 4].clone();
            async move { world.reactors.create(world.tenant, world.request(task as i16)).await }
        })
        .await;
    let mut ids: Vec<u32> = results.into_iter().map(|result| result.unwrap().id.0).collect();
    ids.sort();
    ids.dedup();
    assert!(cluster || ids.len() == 64, "an id of two tenants: {ids:?}");
    for world in &worlds {
        assert_eq!(world.listed().await.len(), 16);
    }
}
