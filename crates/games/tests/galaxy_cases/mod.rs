//! The cases of Galaxy's hot state, for any store. A store has one galaxy, so each case begins by resetting it.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

mod bad_input;
mod entities;
mod fleets;
mod ownership;
mod presence;
mod rules;
mod ticks;

pub use bad_input::*;
pub use entities::*;
pub use fleets::*;
pub use ownership::*;
pub use presence::*;
pub use rules::*;
pub use ticks::*;

use emberkeep_games::galaxy::{
    ClockChange, Galaxy, GalaxyState, NewShip, PlayerId, ShipId, StartRequest, TICK_LEASE, TickRun, Vector,
    World,
};
use emberkeep_hot::{Store, Tx};
use emberkeep_schema::Name;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// The real time of a step.
pub const STEP: Duration = Duration::from_millis(100);

/// An empty galaxy and the engine that runs its ticks.
pub struct Space {
    pub state: GalaxyState,
    pub run: TickRun,
}

impl Space {
    pub async fn of(store: &Store) -> Space {
        let state = GalaxyState::new(store.clone());
        state.scope().del(&TICK_LEASE.key()).await.unwrap();
        let engine = state.tick_engine();
        let run = engine.start(StartRequest::new("engine-1")).await.unwrap();
        run.reset(None).await.unwrap();
        let defaults = ClockChange {
            paused: Some(false),
            tick_rate: Some(1.0),
            time_scale: Some(1.0),
            time_sync: Some(true),
        };
        engine.set_clock(defaults).await.unwrap();
        Space { state, run }
    }

    /// Spawns a ship of a new player at a place.
    pub async fn spawn(&self, x: f64) -> (ShipId, PlayerId) {
        let (ship, player) = (ShipId(Uuid::new_v4()), PlayerId(Uuid::new_v4()));
        self.spawn_for(ship, player, x).await;
        (ship, player)
    }

    pub async fn spawn_for(&self, ship: ShipId, player: PlayerId, x: f64) {
        let mut new = NewShip::new(ship, player, "Rocinante");
        new.motion.position = Vector::new(x, 0.0, 0.0);
        self.state.physics().spawn_ship(new).await.unwrap();
    }

    /// One tick in which every ship advances by 1 m.
    pub async fn step(&self, world: &mut World) {
        let mut step = self.run.begin(STEP).await.unwrap();
        step.apply(world);
        world.ships.values_mut().for_each(|ship| ship.motion.position.x += 1.0);
        self.run.commit(&mut step, world).await.unwrap();
    }

    /// A change by another program.
    pub async fn change<F>(&self, body: F)
    where
        F: FnMut(&mut Tx<'_, Galaxy>) -> emberkeep_hot::Result<()> + Send + 'static,
    {
        self.state.scope().transact(body).await.unwrap();
    }

    /// The fields of a hash as another program reads them.
    pub async fn hash(&self, ship: ShipId) -> BTreeMap<String, String> {
        let key = emberkeep_games::galaxy::SHIP.key(ship);
        self.state.scope().hgetall(&key).await.unwrap().into_iter().collect()
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}
