//! Random programs against a model: after every operation the fields match the model.

use super::{BOX, HERO, World, states};
use emberkeep_games::reactors::{CreateRequest, Error, Outcome, REACTOR, ReactorId, Spot};
use emberkeep_games::world::Field;
use emberkeep_hot::Store;
use emberkeep_hot::command::Write;
use emberkeep_hot::embedded::ManualClock;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// A spot of a field of a tenant: few, so that operations collide.
type Place = (usize, u8, i16);

/// An operation of a program.
#[derive(Clone, Debug)]
pub enum Op {
    Create(Place, i64, i8),
    Hit(Place),
    HitAsAnother(Place),
    Destroy(Place),
    DestroyField(Place),
    StartCooldown(Place, u64),
    ClearCooldown(Place),
    ClearCooldowns(Place),
    ExternalCreate(Place),
    ExternalDelete(Place),
    Wait(u64),
    Sweep,
    Teardown(usize),
}

pub fn programs() -> impl Strategy<Value = Vec<Op>> {
    let place = (0..2usize, 1..3u8, 0..3i16);
    let op = prop_oneof![
        6 => (place.clone(), 0..3i64, 0..4i8).prop_map(|(at, delay, states)| Op::Create(at, delay * 50, states)),
        6 => place.clone().prop_map(Op::Hit),
        1 => place.clone().prop_map(Op::HitAsAnother),
        3 => place.clone().prop_map(Op::Destroy),
        1 => place.clone().prop_map(Op::DestroyField),
        2 => (place.clone(), 0..200u64).prop_map(|(at, ms)| Op::StartCooldown(at, ms)),
        1 => place.clone().prop_map(Op::ClearCooldown),
        1 => place.clone().prop_map(Op::ClearCooldowns),
        2 => place.clone().prop_map(Op::ExternalCreate),
        2 => place.prop_map(Op::ExternalDelete),
        3 => (0..80u64).prop_map(Op::Wait),
        1 => Just(Op::Sweep),
        1 => (0..2usize).prop_map(Op::Teardown),
    ];
    prop::collection::vec(op, 1..60)
}

/// A living reactor in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Living {
    id: ReactorId,
    state: i8,
    states: i8,
    delay_ms: i64,
}

/// The model.
struct Model {
    worlds: [World; 2],
    clock: ManualClock,
    living: BTreeMap<Place, Living>,
    /// The end of each cooldown.
    cooling: BTreeMap<Place, i64>,
}

/// Runs a program on a store of its own.
pub async fn run(store: Store, clock: ManualClock, program: Vec<Op>) {
    let worlds = [World::new(&store), World::new(&store)];
    let mut model = Model { worlds, clock, living: BTreeMap::new(), cooling: BTreeMap::new() };
    for op in program {
        model.make(op.clone()).await;
        model.compare(&op).await;
    }
}

impl Model {
    fn world(&self, place: Place) -> World {
        let mut world = self.worlds[place.0].clone();
        world.field.channel = place.1;
        world
    }

    fn spot(place: Place) -> Spot {
        Spot { classification: BOX, x: place.2, y: -88 }
    }

    /// The id at a spot, or one that is not in use.
    fn id_at(&self, place: Place) -> ReactorId {
        self.living.get(&place).map_or(ReactorId(1_900_000_000), |living| living.id)
    }

    fn forget_field(&mut self, place: Place) {
        self.living.retain(|at, _| (at.0, at.1) != (place.0, place.1));
        self.cooling.retain(|at, _| (at.0, at.1) != (place.0, place.1));
    }

    async fn make(&mut self, op: Op) {
        match op {
            Op::Create(at, delay_ms, count) => self.create(at, delay_ms, count).await,
            Op::Hit(at) => self.hit(at).await,
            Op::HitAsAnother(at) => {
                let (id, other) = (self.id_at(at), self.world((1 - at.0, at.1, at.2)));
                let hit = other.reactors.hit(other.tenant, id, HERO, 0).await;
                assert_eq!(hit, Err(Error::NotFound { id }));
            }
            Op::Destroy(at) => self.destroy(at).await,
            Op::DestroyField(at) => {
                let world = self.world(at);
                world.reactors.destroy_in_field(world.tenant, world.field).await.unwrap();
                self.forget_field(at);
            }
            Op::Wait(ms) => {
                self.clock.advance(ms);
                let now = self.clock.now();
                // A key lives through its last millisecond.
                self.cooling.retain(|_, end| *end >= now);
            }
            Op::Sweep => {
                super::sweep(&self.worlds[0]).await;
            }
            Op::Teardown(tenant) => {
                let world = &self.worlds[tenant];
                world.reactors.teardown(world.tenant).await.unwrap();
                self.living.retain(|at, _| at.0 != tenant);
                self.cooling.retain(|at, _| at.0 != tenant);
            }
            cooldown_or_external => self.make_other(cooldown_or_external).await,
        }
    }

    async fn make_other(&mut self, op: Op) {
        match op {
            Op::StartCooldown(at, ms) => {
                let (world, time) = (self.world(at), Duration::from_millis(ms));
                world.reactors.start_cooldown(world.tenant, world.field, Self::spot(at), time).await.unwrap();
                if ms > 0 {
                    self.cooling.insert(at, self.clock.now() + ms as i64);
                }
            }
            Op::ClearCooldown(at) => {
                let world = self.world(at);
                let cleared = world.reactors.clear_cooldown(world.tenant, world.field, Self::spot(at)).await;
                assert_eq!(cleared, Ok(self.cooling.remove(&at).is_some()));
            }
            Op::ClearCooldowns(at) => {
                let world = self.world(at);
                world.reactors.clear_cooldowns(world.tenant, world.field).await.unwrap();
                self.cooling.retain(|place, _| (place.0, place.1) != (at.0, at.1));
            }
            Op::ExternalCreate(at) if !self.living.contains_key(&at) => {
                let id = self.world(at).external_create(at.2).await;
                self.living.insert(at, Living { id, state: 0, states: 2, delay_ms: 5_000 });
            }
            Op::ExternalDelete(at) => {
                let id = self.id_at(at);
                self.world(at).external(&REACTOR.key(id), Write::Del).await;
                self.living.remove(&at);
            }
            _ => {}
        }
    }

    async fn create(&mut self, at: Place, delay_ms: i64, count: i8) {
        let world = self.world(at);
        let mut request = CreateRequest { delay_ms, ..world.request(at.2) };
        request.data.states = states(count);
        let created = world.reactors.create(world.tenant, request).await;
        match (self.cooling.get(&at), self.living.get(&at)) {
            (Some(end), _) => {
                let remaining = Duration::from_millis((end - self.clock.now()).max(1) as u64);
                assert_eq!(created, Err(Error::OnCooldown { remaining }));
            }
            (None, Some(living)) => assert_eq!(created, Err(Error::SpotTaken { id: living.id })),
            (None, None) => {
                let id = created.unwrap().id;
                self.living.insert(at, Living { id, state: 0, states: count, delay_ms });
            }
        }
    }

    async fn hit(&mut self, at: Place) {
        let (world, id) = (self.world(at), self.id_at(at));
        let hit = world.reactors.hit(world.tenant, id, HERO, 0).await;
        let Some(living) = self.living.get_mut(&at) else {
            assert_eq!(hit, Err(Error::NotFound { id }));
            return;
        };
        let outcome = hit.unwrap().outcome;
        if living.state + 1 < living.states {
            assert_eq!(outcome, Outcome::Advanced { from: living.state });
            living.state += 1;
        } else {
            assert!(matches!(outcome, Outcome::Triggered { .. }), "{outcome:?}");
            self.end(at);
        }
    }

    async fn destroy(&mut self, at: Place) {
        let (world, id) = (self.world(at), self.id_at(at));
        let destroyed = world.reactors.destroy(world.tenant, id).await;
        match self.living.get(&at) {
            Some(_) => {
                assert_eq!(destroyed.unwrap().reactor.id, id);
                self.end(at);
            }
            None => assert_eq!(destroyed, Err(Error::NotFound { id })),
        }
    }

    fn end(&mut self, at: Place) {
        let living = self.living.remove(&at).expect("it lived");
        if living.delay_ms > 0 {
            self.cooling.insert(at, self.clock.now() + living.delay_ms);
        }
    }

    /// Every field, and every spot.
    async fn compare(&self, after: &Op) {
        for tenant in 0..2 {
            for channel in 1..3 {
                let world = self.world((tenant, channel, 0));
                let field = Field { channel, ..world.field };
                let listing = world.reactors.in_field(world.tenant, field).await.unwrap();
                let found = listing.living.iter().map(|reactor| (reactor.x, reactor.id, reactor.state));
                let mut found: Vec<(i16, ReactorId, i8)> = found.collect();
                found.sort();
                let expected = self.living.iter().filter(|(at, _)| (at.0, at.1) == (tenant, channel));
                let expected: Vec<_> = expected.map(|(at, living)| (at.2, living.id, living.state)).collect();
                assert_eq!(found, expected, "after {after:?}");
                for x in 0..3 {
                    let at = (tenant, channel, x);
                    let cools = world.reactors.cooldown_remaining(world.tenant, field, Self::spot(at)).await;
                    assert_eq!(
                        cools.unwrap().is_some(),
                        self.cooling.contains_key(&at),
                        "{at:?} after {after:?}"
                    );
                }
            }
        }
    }
}
