//! The operations, by the service that owns what they write. Each is one atomic transaction, or a loop of them that its
//! documentation describes.

mod bodies;
mod clock;
mod controls;
mod entities;
mod fleets;
mod maneuvers;
mod notice;
mod players;
mod presence;
mod rules;
mod ships;
mod structures;

pub use clock::{Clock, ClockChange};
pub use fleets::Fleet;
pub use maneuvers::{Maneuver, ManeuverChange};
pub use notice::{GatewayNotice, Socket};
pub use players::PlayerDeletion;
pub use presence::{GatewaySweep, SocketRequest};
pub use rules::{NewRule, Rule, RuleChange};

use super::schema::Galaxy;
use super::services::{API_GATEWAY, GALAXY, PHYSICS, PLAYERS, TICK_ENGINE};
use super::tick::TickCache;
use emberkeep_hot::{Scope, Store, Tx};
use emberkeep_schema::{Family, Hash, Key, Persistent, Service, Utf8};
use std::ops::Deref;

/// The hot state of Galaxy on a store. Cheap to clone. It reads; what writes is behind the handle of the service that owns it.
///
/// Handles act as their service. A store that acts as a service already keeps it: then the operations of other handles are
/// [`Forbidden`](emberkeep_hot::Error::Forbidden).
#[derive(Clone)]
pub struct GalaxyState {
    store: Store,
    cache: TickCache,
    /// Whether handles act as the store's service and not as their own.
    is_bound: bool,
}

impl GalaxyState {
    /// The hot state on a store.
    pub fn new(store: Store) -> GalaxyState {
        let is_bound = store.service().is_some();
        GalaxyState { store, cache: TickCache::default(), is_bound }
    }

    /// The same state, with the same remembered tick, for a caller that is a service: whatever handle it takes, it acts as
    /// that.
    pub fn acting_as(&self, service: &'static Service) -> GalaxyState {
        GalaxyState {
            store: self.store.clone().acting_as(service),
            cache: self.cache.clone(),
            is_bound: true,
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The partition of the galaxy.
    pub fn scope(&self) -> Scope<Galaxy> {
        self.store.scope(Galaxy)
    }

    pub(crate) fn cache(&self) -> &TickCache {
        &self.cache
    }

    fn handle(&self, service: &'static Service) -> GalaxyState {
        if self.is_bound {
            return self.clone();
        }
        GalaxyState { is_bound: false, ..self.acting_as(service) }
    }
}

/// Declares the handle of a service.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident, $method:ident, $service:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone)]
            pub struct $name(GalaxyState);

            impl Deref for $name {
                type Target = GalaxyState;

                fn deref(&self) -> &GalaxyState {
                    &self.0
                }
            }
        )*
        impl GalaxyState {
            $(
                #[doc = concat!("The operations of the service that [`", stringify!($name), "`] acts as.")]
                pub fn $method(&self) -> $name {
                    $name(self.handle(&$service))
                }
            )*
        }
    };
}

handles! {
    /// Ships, stations, bodies and jump gates: spawns, removes and moves them, and stages ticks.
    Physics, physics, PHYSICS;
    /// Clock, ticks and maneuvers, resets, and which rules are enabled.
    TickEngine, tick_engine, TICK_ENGINE;
    /// Presence, registration, automation rules, and the names of ships.
    ApiGateway, api_gateway, API_GATEWAY;
    /// Fleets, and the deletion of players.
    Players, players, PLAYERS;
    /// Creates the bodies of a galaxy.
    Initializer, initializer, GALAXY;
}

impl TickEngine {
    /// The state behind the handle.
    pub fn state(&self) -> &GalaxyState {
        &self.0
    }
}

/// Sets fields of a hash.
fn set_fields<F>(
    tx: &mut Tx<'_, Galaxy>,
    key: &Key<F>,
    pairs: &[(String, String)],
) -> emberkeep_hot::Result<()>
where
    F: Family<Partition = Galaxy, Kind = Hash<Utf8, Utf8>, Ttl = Persistent>,
{
    tx.hset_many(key, pairs.iter().map(|(field, text)| (field, text)))
}
