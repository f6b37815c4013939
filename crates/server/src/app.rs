//! What handlers share: the games, who may call, what is counted.

use crate::auth::Tokens;
use crate::brake::Brake;
use crate::listen::Waits;
use crate::metrics::Metrics;
use crate::origins::Origins;
use crate::routes::sweeping::Sweeps;
use crate::throttle::Throttle;
use crate::ws::Registry;
use bytes::Bytes;
use emberkeep_games::monsters::Monsters;
use emberkeep_games::party::Rooms;
use emberkeep_games::reactors::Reactors;
use emberkeep_hot::Store;
use std::sync::{Arc, OnceLock};

/// Who may come in, how often, and how long that may take.
pub(crate) struct Doors {
    pub(crate) tokens: Tokens,
    pub(crate) origins: Origins,
    pub(crate) ws_origins: Origins,
    pub(crate) throttle: Throttle,
    pub(crate) waits: Waits,
}

impl Doors {
    /// Nobody needs a token, and no foreign page may call.
    pub(crate) fn open() -> Doors {
        Doors {
            tokens: Tokens::open(),
            origins: Origins::none(),
            ws_origins: Origins::none(),
            throttle: Throttle::new(0),
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
    /// Of rooms that are created without a token.
    pub(crate) throttle: Throttle,
    pub(crate) tokens: Tokens,
    /// Pages that may call.
    pub(crate) origins: Origins,
    /// Pages that may open a socket.
    pub(crate) ws_origins: Origins,
    /// How long requests may take to arrive.
    pub(crate) waits: Waits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) sweeps: Sweeps,
    /// The document of the routes, as it is sent; known once they are put together.
    pub(crate) document: OnceLock<Bytes>,
}

impl App {
    /// A server's state on a store.
    pub(crate) fn new(store: Store, doors: Doors) -> App {
        let Doors { tokens, origins, ws_origins, throttle, waits } = doors;
        let (rooms, metrics) = (Rooms::new(store.clone()), Arc::new(Metrics::default()));
        App(Arc::new(Inner {
            monsters: Monsters::new(store.clone()),
            reactors: Reactors::new(store.clone()),
            sockets: Registry::new(rooms.clone(), metrics.clone()),
            rooms,
            brake: Brake::default(),
            throttle,
            store,
            tokens,
            origins,
            ws_origins,
            waits,
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
