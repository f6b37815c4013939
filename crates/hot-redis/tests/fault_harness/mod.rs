//! What the fault tests share: a transaction that leaves four traces of every hit, a ledger of the callers'
//! results, and an audit that compares the two.
//!
//! A hit reads and writes a sum, appends its id to a list, adds to a counter without reading it, and records
//! its id in the log. So a hit that was lost, made twice or made by half shows up in at least one of the
//! four.

#![allow(dead_code, unreachable_pub, unused_imports)] // Every test binary uses another part of it.

mod audit;
mod deployment;
mod ledger;
mod load;
mod on_every_deployment;
mod tls;

pub use audit::{Audit, audit};
pub use deployment::Deployment;
pub use ledger::{CallResult, Entry, Ledger};
pub use load::{LONG, Load, LoadReport, SLACK};
pub use tls::{pem_path, tls_server, with_tls};

use emberkeep_hot::{Error, Scope, Store};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{List, Log, Name, Newest, Number, Text, Utf8, family, partition};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

partition! {
    /// Where hits fall; one partition each.
    pub struct Arena(Name) as "arena";
}
family! {
    /// The sum of all damage, read and written by every hit.
    pub SUM = "sum:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// The ids of all hits, in order.
    pub HITS = "hits:{arena}" { kind: List<Utf8>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// How many hits there were, counted without reading.
    pub COUNT = "count:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}

family! {
    /// The ids of all hits, appended without reading. It keeps all of them.
    pub HIT_LOG = "log:hits:{arena}" {
        kind: Log<Utf8, Newest<1_000_000>>, partition: Arena, parts: (), ttl: persistent, owner: "test"
    }
}

/// An arena by its name.
pub fn arena(name: impl AsRef<str>) -> Arena {
    Arena(Name::new(name.as_ref()).expect("a good name"))
}

/// A store on a server, by its URL.
pub async fn store_on(url: &str) -> Store {
    Store::new(RedisEngine::connect(url).await.expect("the server is there"))
}

/// The URL of a cluster, by the ports of some of its nodes.
pub fn cluster_url(ports: &[u16]) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("redis+cluster://{}", hosts.join(","))
}

/// One hit.
pub async fn hit(scope: &Scope<Arena>, id: String, damage: i64) -> Result<i64, Error> {
    scope
        .transact(move |tx| {
            let sum = tx.get(&SUM.key())?.unwrap_or(0) + damage;
            tx.put(&SUM.key(), &sum)?;
            tx.rpush(&HITS.key(), &id)?;
            tx.incr_by(&COUNT.key(), 1)?;
            tx.append(&HIT_LOG.key(), &id)?;
            Ok(sum)
        })
        .await
}

/// The damage of the n-th hit of a task: differs, so that one hit cannot stand for another.
pub fn damage_of(n: usize) -> i64 {
    (n % 7 + 1) as i64
}

/// When a task stops.
#[derive(Clone)]
pub enum Until {
    /// After so many hits.
    Hits(usize),
    /// When the flag is raised.
    Flag(Arc<AtomicBool>),
}

impl Until {
    fn is_over(&self, done: usize) -> bool {
        match self {
            Until::Hits(most) => done >= *most,
            Until::Flag(flag) => flag.load(Ordering::Acquire),
        }
    }
}

/// Lets `tasks` tasks hit one arena; returns their results.
pub async fn assault(scope: Scope<Arena>, name: &str, tasks: usize, until: Until) -> Ledger {
    let mut running = Vec::new();
    for task in 0..tasks {
        let (scope, until, name) = (scope.clone(), until.clone(), format!("{name}-{task}"));
        running.push(tokio::spawn(one_attacker(scope, name, until)));
    }
    let mut ledger = Ledger::default();
    for task in running {
        ledger.merge(task.await.expect("a task ends"));
    }
    ledger
}

async fn one_attacker(scope: Scope<Arena>, name: String, until: Until) -> Ledger {
    let mut ledger = Ledger::default();
    let mut done = 0;
    while !until.is_over(done) {
        let (id, damage) = (format!("{name}-{done}"), damage_of(done));
        let started = Instant::now();
        let result = hit(&scope, id.clone(), damage).await;
        ledger.enter(id, damage, started, result);
        done += 1;
    }
    ledger
}

/// A flag for [`Until::Flag`].
pub fn flag() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}
