//! What handlers share: the games, who may call, what is counted.

use crate::auth::Tokens;
use crate::metrics::Metrics;
use emberkeep_games::monsters::Monsters;
use emberkeep_games::reactors::Reactors;
use emberkeep_hot::Store;
use std::sync::Arc;

/// The state of the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) monsters: Monsters,
    pub(crate) reactors: Reactors,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Metrics,
}

impl App {
    /// A server's state on a store.
    pub(crate) fn new(store: Store, tokens: Tokens) -> App {
        App(Arc::new(Inner {
            monsters: Monsters::new(store.clone()),
            reactors: Reactors::new(store.clone()),
            store,
            tokens,
            metrics: Metrics::default(),
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
