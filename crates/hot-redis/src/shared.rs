//! What all partitions of one engine share: the router, the clocks, the scripts, counters, names of the
//! engine's keys.

use crate::cache::budget::Budget;
use crate::clock::ServerClock;
use crate::cluster::{Gate, Router, Server};
use crate::failure::Failure;
use crate::limits::CACHE_BYTES_TOTAL_MAX;
use crate::script::{Script, Scripts};
use bytes::Bytes;
use emberkeep_hot::engine::Stats;
use emberkeep_schema::KeyLayout;
use parking_lot::Mutex;
use redis::{Cmd, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The common parts of one engine.
pub(crate) struct Shared {
    pub(crate) router: Router,
    /// The clock of each server, by its name. On a single server there is one, under an empty name.
    clocks: Mutex<HashMap<String, Arc<ServerClock>>>,
    /// The latest time that a body was shown, of any server.
    shown_ms: Arc<AtomicI64>,
    pub(crate) layout: KeyLayout,
    pub(crate) name: String,
    /// The name of this process in receipts and leases: random, so that no two are alike.
    pub(crate) process: String,
    pub(crate) scripts: Scripts,
    pub(crate) counters: Counters,
    /// For the read caches of all partitions.
    pub(crate) budget: Arc<Budget>,
    /// A key of the engine that never exists.
    pub(crate) probe: Bytes,
    /// Numbers commit sequences: none is used twice, also not by a partition's second task.
    pub(crate) sequences_opened: AtomicU64,
}

/// Counters behind [`Stats`].
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) committed: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) combined_commits: AtomicU64,
    pub(crate) combined_transactions: AtomicU64,
    pub(crate) commit_calls: AtomicU64,
    pub(crate) read_calls: AtomicU64,
    pub(crate) lease_waits: AtomicU64,
    pub(crate) receipts_asked: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

impl Counters {
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            committed: self.committed.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            combined_commits: self.combined_commits.load(Relaxed),
            combined_transactions: self.combined_transactions.load(Relaxed),
            commit_calls: self.commit_calls.load(Relaxed),
            read_calls: self.read_calls.load(Relaxed),
            lease_waits: self.lease_waits.load(Relaxed),
            receipts_asked: self.receipts_asked.load(Relaxed),
            ..Stats::default()
        }
    }
}

impl Shared {
    pub(crate) fn new(router: Router, layout: KeyLayout, process: String) -> Shared {
        Shared {
            probe: own_key(&layout, b"", b"probe"),
            name: router.url().to_string(),
            router,
            clocks: Mutex::default(),
            shown_ms: Arc::default(),
            layout,
            process,
            scripts: Scripts::default(),
            counters: Counters::default(),
            budget: Budget::new(CACHE_BYTES_TOTAL_MAX),
            sequences_opened: AtomicU64::new(1),
        }
    }

    /// The clock of a server. One whose time was not observed yet borrows that of another.
    pub(crate) fn clock_of(&self, server: &Server) -> Arc<ServerClock> {
        let name = if self.router.url().cluster { server.name() } else { "" };
        let mut clocks = self.clocks.lock();
        if let Some(clock) = clocks.get(name) {
            return clock.clone();
        }
        let estimate =
            clocks.values().find(|clock| !clock.is_borrowed()).map_or(0, |clock| clock.estimate_ms());
        let clock = Arc::new(ServerClock::new(estimate, self.shown_ms.clone()));
        clocks.insert(name.to_owned(), clock.clone());
        clock
    }

    /// The clock of the server that has a slot, by the current map.
    pub(crate) fn clock_of_slot(&self, slot: u16) -> Arc<ServerClock> {
        match self.router.cached_primary(slot) {
            Some(server) => self.clock_of(&server),
            None => Arc::new(ServerClock::new(0, self.shown_ms.clone())),
        }
    }

    /// Calls a script by its digest, and by its text where the server does not have it, as after a restart or
    /// a failover. Also returns the server that answered.
    pub(crate) async fn eval(
        &self,
        slot: u16,
        script: &Script,
        gate: Gate<'_>,
        command: impl Fn(&'static str, &str) -> Cmd,
    ) -> (Result<Value, Failure>, Arc<Server>) {
        match self.router.call(slot, &command("EVALSHA", &script.sha), gate).await {
            (Err(Failure::NoScript), _) => self.router.call(slot, &command("EVAL", &script.text), gate).await,
            other => other,
        }
    }

    /// A key of the engine itself, in the slot of the partition.
    pub(crate) fn engine_key(&self, partition: &[u8], name: &[u8]) -> Bytes {
        own_key(&self.layout, partition, name)
    }
}

fn own_key(layout: &KeyLayout, partition: &[u8], name: &[u8]) -> Bytes {
    let mut out = Vec::new();
    layout.write_own(partition, name, &mut out);
    Bytes::from(out)
}
