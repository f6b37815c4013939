//! Runs the suite on a real server: two independent engines on the same data, and plain foreign clients.

use emberkeep_conformance::foreign::{Foreign, RespForeign};
use emberkeep_conformance::runner::say;
use emberkeep_conformance::{Backend, Time, run_all};
use emberkeep_hot::Store;
use emberkeep_hot_redis::RedisEngine;
use std::sync::Arc;

/// Contests of a race on a server: 64 tasks times 10,000 contests take minutes in a build without optimization.
const CONTESTS_DEFAULT: usize = 1_000;
/// As many as on the embedded engine, with `EMBERKEEP_FULL=1`.
const CONTESTS_FULL: usize = 10_000;

async fn connect(url: &str) -> Store {
    let engine = RedisEngine::connect(&format!("{url}?prefix=conf:")).await;
    Store::new(engine.expect("the server of the suite is up"))
}

/// Runs every case.
pub(crate) async fn run_on(name: &'static str, url: &str, ports: Vec<u16>) {
    let full = std::env::var("EMBERKEEP_FULL").is_ok_and(|value| value == "1");
    let contests = if full { CONTESTS_FULL } else { CONTESTS_DEFAULT };
    say(&format!("{name}: {contests} contests a race (EMBERKEEP_FULL=1 for {CONTESTS_FULL})"));
    let backend = Backend {
        name,
        store: connect(url).await,
        other: connect(url).await,
        foreign: Arc::new(move || Box::new(RespForeign::new(&ports)) as Box<dyn Foreign>),
        time: Time::Servers,
        contests,
    };
    run_all(&backend).await;
}
