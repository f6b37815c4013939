//! GET and SET of sessions in process, beside a bare sharded map of the same keys.
//!
//! Ours builds a typed key, looks at the deadline, decodes; a SET is a transaction with a new deadline. The map does none
//! of that: the ratio is the price of it.

use crate::bare_map::BareMap;
use crate::measure::{Counts, nanos_per_operation, scattered};
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::sessions::{Realm, scope, session, session_key, with_raw_key};
use crate::suite::Bench;
use anyhow::{Context, Result};
use emberkeep::hot::Scope;
use emberkeep::hot::embedded::Embedded;
use std::hint::black_box;
use std::time::Duration;
use tokio::runtime::Runtime;

const SESSIONS: u64 = 100_000;
const PEER: &str = "64 locked hash maps of the same keys, a copy on read, no deadlines";

/// Sessions on both sides.
pub(super) struct Both {
    pub(super) runtime: Runtime,
    pub(super) scope: Scope<Realm>,
    pub(super) map: BareMap,
    value: Vec<u8>,
}

impl Both {
    /// No session exists yet.
    pub(super) fn empty() -> Result<Both> {
        let scope = scope(Embedded::in_memory());
        Ok(Both { runtime: runtime()?, scope, map: BareMap::new(), value: session(0) })
    }

    /// These players have one.
    pub(super) fn fill(&self, players: std::ops::Range<u64>) -> Result<()> {
        self.runtime.block_on(async {
            for player in players {
                let value = session(player);
                with_raw_key(player, |key| self.map.set(key, &value));
                self.scope.put(&session_key(player), value).await?;
            }
            Ok(())
        })
    }

    /// Nanoseconds of our GET, over `sessions` of them.
    pub(super) fn our_get(&self, counts: Counts, time: Duration, sessions: u64) -> Result<f64> {
        self.runtime.block_on(nanos_per_operation(counts, time, async |number| {
            let key = session_key(scattered(number) % sessions);
            black_box(self.scope.get(&key).await?.context("a session is gone")?);
            Ok(())
        }))
    }

    /// Nanoseconds of the map's.
    pub(super) fn peer_get(&self, counts: Counts, time: Duration, sessions: u64) -> Result<f64> {
        self.runtime.block_on(nanos_per_operation(counts, time, async |number| {
            let player = scattered(number) % sessions;
            black_box(with_raw_key(player, |key| self.map.get(key)).context("a session is gone")?);
            Ok(())
        }))
    }

    /// Nanoseconds of our SET. The value's own copy, which the caller must hand over, counts.
    pub(super) fn our_set(&self, counts: Counts, time: Duration, sessions: u64) -> Result<f64> {
        self.runtime.block_on(nanos_per_operation(counts, time, async |number| {
            let key = session_key(scattered(number) % sessions);
            Ok(self.scope.put(&key, self.value.clone()).await?)
        }))
    }

    /// Nanoseconds of the map's.
    pub(super) fn peer_set(&self, counts: Counts, time: Duration, sessions: u64) -> Result<f64> {
        self.runtime.block_on(nanos_per_operation(counts, time, async |number| {
            let player = scattered(number) % sessions;
            with_raw_key(player, |key| self.map.set(key, black_box(&self.value)));
            Ok(())
        }))
    }
}

/// Plain reads of single keys.
pub(crate) fn get(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let both = Both::empty()?;
    both.fill(0..SESSIONS)?;
    let (ours, peer) = bench.take_turns(
        name,
        "ns/op",
        || both.our_get(Counts::Core, bench.sample, SESSIONS),
        || both.peer_get(Counts::Core, bench.sample, SESSIONS),
    )?;
    Ok(vec![Row::new(name, "ns/op", &ours, &peer, Goal::RatioAtMost(2.0)).beside(PEER)])
}

/// Plain writes of single keys.
pub(crate) fn set(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let both = Both::empty()?;
    both.fill(0..SESSIONS)?;
    let (ours, peer) = bench.take_turns(
        name,
        "ns/op",
        || both.our_set(Counts::Core, bench.sample, SESSIONS),
        || both.peer_set(Counts::Core, bench.sample, SESSIONS),
    )?;
    Ok(vec![Row::new(name, "ns/op", &ours, &peer, Goal::RatioAtMost(2.0)).beside(PEER)])
}
