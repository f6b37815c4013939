//! Runs the suite on a real server: two independent engines on the same data, and plain external clients.

use emberkeep_conformance::external::{External, RespExternal};
use emberkeep_conformance::{Backend, Time, run_all};
use emberkeep_hot::Store;
use emberkeep_hot_redis::RedisEngine;
use std::sync::Arc;

async fn connect(url: &str) -> Store {
    let engine = RedisEngine::connect(&format!("{url}?prefix=conf:")).await;
    Store::new(engine.expect("the server of the suite is up"))
}

/// Runs every case on a server.
pub(crate) async fn run_on(name: &'static str, url: &str, ports: Vec<u16>) {
    let backend = Backend {
        name,
        store: connect(url).await,
        other: connect(url).await,
        external: Arc::new(move || Box::new(RespExternal::new(&ports)) as Box<dyn External>),
        time: Time::Server,
    };
    run_all(&backend).await;
}
