//! What handlers share: the games, who may call, what is counted.

use crate::auth::Tokens;
use crate::metrics::Metrics;
use crate::origins::Origins;
use crate::routes::sweeping::Sweeps;
use bytes::Bytes;
use emberkeep_games::monsters::Monsters;
use emberkeep_games::reactors::Reactors;
use emberkeep_hot::Store;
use std::sync::{Arc, OnceLock};

/// The state of the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) monsters: Monsters,
    pub(crate) reactors: Reactors,
    pub(crate) tokens: Tokens,
    pub(crate) origins: Origins,
    pub(crate) metrics: Metrics,
    pub(crate) sweeps: Sweeps,
    /// The document of the routes, as it is sent; known once they are put together.
    pub(crate) document: OnceLock<Bytes>,
}

impl App {
    /// A server's state on a store.
    pub(crate) fn new(store: Store, tokens: Tokens, origins: Origins) -> App {
        App(Arc::new(Inner {
            monsters: Monsters::new(store.clone()),
            reactors: Reactors::new(store.clone()),
            store,
            tokens,
            origins,
            metrics: Metrics::default(),
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
