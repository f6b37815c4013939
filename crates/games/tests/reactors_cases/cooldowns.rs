//! Cooldowns of spots: no reactor is created until they end.

use super::{BOX, World};
use bytes::Bytes;
use emberkeep_games::reactors::limits::COOLDOWN_MAX;
use emberkeep_games::reactors::{Error, Spot, cooldown_key, cooldowns_key};
use emberkeep_games::world::Field;
use emberkeep_hot::Store;
use emberkeep_hot::command::{Expiry, Write};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

impl World {
    async fn start(&self, x: i16, time: Duration) {
        self.reactors.start_cooldown(self.tenant, self.field, self.spot(x), time).await.unwrap();
    }

    async fn remaining(&self, spot: Spot) -> Option<Duration> {
        self.reactors.cooldown_remaining(self.tenant, self.field, spot).await.unwrap()
    }
}

pub async fn no_reactor_is_created_on_a_spot_that_cools_down(store: Store) {
    let world = World::new(&store);
    world.start(1, MINUTE).await;
    let refused = world.reactors.create(world.tenant, world.request(1)).await;
    match refused {
        Err(Error::OnCooldown { remaining }) => {
            assert!(remaining <= MINUTE && remaining > MINUTE / 2, "{remaining:?}")
        }
        other => panic!("{other:?}"),
    }
    assert!(world.indexed().await.is_empty());
    world.create(2).await;
}

pub async fn a_cooldown_is_of_one_spot_of_one_field_of_one_tenant(store: Store) {
    let world = World::new(&store);
    world.start(1, MINUTE).await;
    assert!(world.remaining(world.spot(1)).await.is_some());
    assert_eq!(world.remaining(Spot { classification: BOX + 1, ..world.spot(1) }).await, None);
    assert_eq!(world.remaining(Spot { y: 88, ..world.spot(1) }).await, None);
    let upstairs = Field { channel: 2, ..world.field };
    let remaining = world.reactors.cooldown_remaining(world.tenant, upstairs, world.spot(1)).await;
    assert_eq!(remaining, Ok(None));
    assert!(!world.elsewhere().cools_down(1).await);
}

pub async fn a_cooldown_that_is_started_again_begins_again(store: Store) {
    let world = World::new(&store);
    world.start(1, MINUTE).await;
    world.start(1, MINUTE * 10).await;
    assert!(world.remaining(world.spot(1)).await.unwrap() > MINUTE * 9);
    world.start(1, MINUTE).await;
    assert!(world.remaining(world.spot(1)).await.unwrap() <= MINUTE);
}

pub async fn a_cooldown_of_nothing_starts_nothing(store: Store) {
    let world = World::new(&store);
    world.start(1, Duration::ZERO).await;
    assert!(!world.cools_down(1).await);
}

pub async fn a_cooldown_out_of_bounds_is_refused(store: Store) {
    let world = World::new(&store);
    let start = |spot, time| world.reactors.start_cooldown(world.tenant, world.field, spot, time);
    for time in [COOLDOWN_MAX + Duration::from_millis(1), Duration::MAX] {
        let error = start(world.spot(1), time).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { what: "cooldown", .. }), "{error:?}");
    }
    let error = start(Spot { classification: 0, x: 1, y: 1 }, MINUTE).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "classification", .. }), "{error:?}");
    assert!(!world.cools_down(1).await);
    start(world.spot(1), COOLDOWN_MAX).await.unwrap();
    assert!(world.remaining(world.spot(1)).await.unwrap() > COOLDOWN_MAX - MINUTE);
}

pub async fn one_cooldown_is_cleared_alone(store: Store) {
    let world = World::new(&store);
    world.start(1, MINUTE).await;
    world.start(2, MINUTE).await;
    let clear = |x| world.reactors.clear_cooldown(world.tenant, world.field, world.spot(x));
    assert_eq!((clear(1).await, clear(1).await), (Ok(true), Ok(false)));
    assert!(!world.cools_down(1).await && world.cools_down(2).await);
    world.create(1).await;
}

pub async fn a_fields_cooldowns_are_cleared_together_and_no_others(store: Store) {
    let world = World::new(&store);
    // More than one transaction clears.
    for x in 0..300 {
        world.start(x, MINUTE).await;
    }
    let upstairs = Field { channel: 2, ..world.field };
    world.reactors.start_cooldown(world.tenant, upstairs, world.spot(1), MINUTE).await.unwrap();
    let other_world = world.elsewhere();
    other_world.start(1, MINUTE).await;
    assert_eq!(world.reactors.clear_cooldowns(world.tenant, world.field).await, Ok(300));
    for x in [0, 1, 150, 299] {
        assert!(!world.cools_down(x).await, "spot {x}");
    }
    assert!(!world.scope.exists(&cooldowns_key(&world.field)).await.unwrap());
    assert!(other_world.cools_down(1).await);
    assert_eq!(world.reactors.clear_cooldowns(world.tenant, upstairs).await, Ok(1));
}

pub async fn an_external_marker_counts_whatever_it_holds(store: Store) {
    let world = World::new(&store);
    let end = store.now().await.unwrap() + 60_000;
    let marker = Write::Set(Bytes::from_static(b"cooling, says Go"), Expiry::At(end));
    world.external(&cooldown_key(&world.field, &world.spot(1)), marker).await;
    world.external_set(&cooldown_key(&world.field, &world.spot(2)), "").await;
    let refused = world.reactors.create(world.tenant, world.request(1)).await;
    assert!(matches!(refused, Err(Error::OnCooldown { remaining }) if remaining <= MINUTE), "{refused:?}");
    let refused = world.reactors.create(world.tenant, world.request(2)).await;
    assert_eq!(refused, Err(Error::OnCooldown { remaining: Duration::MAX }));
    let clear = |x| world.reactors.clear_cooldown(world.tenant, world.field, world.spot(x));
    assert_eq!((clear(1).await, clear(2).await), (Ok(true), Ok(true)));
    world.create(1).await;
}

pub async fn an_external_marker_goes_with_its_field_after_a_sweep(store: Store) {
    let world = World::new(&store);
    world.start(1, MINUTE).await;
    world.external_set(&cooldown_key(&world.field, &world.spot(2)), "1").await;
    assert_eq!(super::sweeps::sweep(&world).await.cooldowns, 1);
    assert_eq!(super::sweeps::sweep(&world).await.cooldowns, 0);
    assert_eq!(world.reactors.clear_cooldowns(world.tenant, world.field).await, Ok(2));
    assert!(!world.cools_down(2).await);
}
