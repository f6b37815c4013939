//! What handlers share: the games, who may call, what is counted.

use crate::auth::Tokens;
use crate::bodies::Bodies;
use crate::brake::Brake;
use crate::listen::Waits;
use crate::metrics::Metrics;
use crate::origins::Origins;
use crate::room_codes::RoomCodes;
use crate::routes::health::Liveness;
use crate::routes::sweeping::Sweeps;
use crate::throttle::Throttle;
use crate::ws::Registry;
use bytes::Bytes;
use emberkeep_games::monsters::{Monsters, PoisonRule};
use emberkeep_games::party::Rooms;
use emberkeep_games::reactors::{HitRules, Reactors};
use emberkeep_hot::Store;
use std::sync::{Arc, OnceLock};

/// Who may come in, how often, and how long that may take.
pub(crate) struct Doors {
    pub(crate) tokens: Tokens,
    /// Pages that may call.
    pub(crate) origins: Origins,
    /// Pages that may open a socket.
    pub(crate) ws_origins: Origins,
    /// Of rooms that are created and set up without a token.
    pub(crate) throttle: Throttle,
    /// Missing rooms that an address may name per minute; 0 is any number.
    pub(crate) missing_rooms_per_minute: u32,
    /// How long requests may take to arrive.
    pub(crate) waits: Waits,
}

impl Doors {
    /// Nobody needs a token, and no external page may call.
    pub(crate) fn open() -> Doors {
        Doors {
            tokens: Tokens::open(),
            origins: Origins::none(),
            ws_origins: Origins::none(),
            throttle: Throttle::new(0),
            missing_rooms_per_minute: 0,
            waits: Waits::default(),
        }
    }
}

/// The state of the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) monsters: Monsters,
    pub(crate) reactors: Reactors,
    pub(crate) rooms: Rooms,
    pub(crate) sockets: Registry,
    pub(crate) brake: Brake,
    pub(crate) room_codes: RoomCodes,
    pub(crate) bodies: Bodies,
    pub(crate) liveness: Liveness,
    pub(crate) doors: Doors,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) sweeps: Sweeps,
    /// The document of the routes, as it is sent; known once they are put together.
    pub(crate) document: OnceLock<Bytes>,
}

impl App {
    /// A server's state on a store, with the rules in which services differ.
    pub(crate) fn new(store: Store, doors: Doors, (poison, hits): (PoisonRule, HitRules)) -> App {
        let (rooms, metrics) = (Rooms::new(store.clone()), Arc::new(Metrics::default()));
        App(Arc::new(Inner {
            monsters: Monsters::new(store.clone()).poison_rule(poison),
            reactors: Reactors::new(store.clone()).hit_rules(hits),
            sockets: Registry::new(rooms.clone(), metrics.clone()),
            rooms,
            brake: Brake::default(),
            room_codes: RoomCodes::new(doors.missing_rooms_per_minute),
            bodies: Bodies::new(metrics.clone()),
            liveness: Liveness::default(),
            doors,
            store,
            metrics,
            sweeps: Sweeps::default(),
            document: OnceLock::new(),
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
