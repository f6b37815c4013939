//! Hot state: sessions, messages and who is in a zone.

use super::{CALLERS, Target, measure, rows};
use crate::history::load::runtime;
use crate::measure::scattered;
use crate::row::Row;
use crate::sessions::{Realm, session, session_key};
use crate::suite::Bench;
use anyhow::{Context, Result, ensure};
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Error, Scope, Store};
use emberkeep::redis::RedisEngine;
use emberkeep::schema::{Channel, Id, Raw, Set, family};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Callers on Redis, which share one connection.
const CALLERS_REDIS: u64 = 64;
/// Players with a session, and players in each zone.
const SESSIONS: u64 = 10_000;
const ZONES: u64 = 50;
const ZONE_PLAYERS: u64 = 100;
/// The payload that is published.
const MESSAGE: &[u8; 32] = b"a message of 32 bytes to a zone.";

const GET: Target = Target { operation: "get-session", ms: 1.0, rate: 50_000.0 };
const SET: Target = Target { operation: "set-session", ms: 1.0, rate: 30_000.0 };
const PUBLISH: Target = Target { operation: "publish", ms: 1.0, rate: 100_000.0 };
const MEMBERS: Target = Target { operation: "zone-members", ms: 5.0, rate: 10_000.0 };

family! {
    /// Who is in a zone.
    pub ZONE = "ember:bench:zone:{zone}" {
        kind: Set<Id<u64>>, partition: Realm, parts: (zone: u64), ttl: persistent, owner: "bench"
    }
}
family! {
    /// What happens in a zone.
    pub NEWS = "ember:bench:news:{zone}" {
        kind: Channel<Raw>, partition: Realm, parts: (zone: u64), ttl: persistent, owner: "bench"
    }
}

/// Section 4.1 in process.
pub(crate) fn hot(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let runtime = runtime()?;
    let scope = Store::new(Arc::new(Embedded::in_memory())).scope(Realm);
    hot_rows(bench, name, &runtime, &scope, CALLERS, "embedded, in memory")
}

/// Section 4.1 on Redis.
pub(crate) fn redis(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let (runtime, peer) = (runtime()?, bench.redis()?);
    let store = Store::new(runtime.block_on(RedisEngine::connect(peer.url()))?);
    let scope = store.scope(Realm);
    let rows = hot_rows(
        bench,
        name,
        &runtime,
        &scope,
        CALLERS_REDIS,
        &format!("{}, in memory, one connection", peer.name()),
    )?;
    runtime.block_on(async {
        scope.transact(|tx| (0..ZONES).try_for_each(|zone| tx.del(&ZONE.key(zone)))).await?;
        anyhow::Ok(store.close().await?)
    })?;
    Ok(rows)
}

fn hot_rows(
    bench: &Bench,
    name: &str,
    runtime: &Runtime,
    scope: &Scope<Realm>,
    callers: u64,
    on: &str,
) -> Result<Vec<Row>> {
    runtime.block_on(fill(scope))?;
    let (time, note) = (bench.sample, format!("{callers} callers, {on}"));
    let mut all = Vec::new();
    let of = |scope: &Scope<Realm>| scope.clone();
    let get = of(scope);
    let found = measure(runtime, time, callers, move |number| {
        let (scope, key) = (get.clone(), session_key(scattered(number) % SESSIONS));
        async move { scope.get(&key).await?.context("a session is gone").map(drop) }
    })?;
    all.extend(rows(name, &GET, &found, &note));
    let set = of(scope);
    let found = measure(runtime, time, callers, move |number| {
        let (scope, player) = (set.clone(), scattered(number) % SESSIONS);
        async move { Ok(scope.put(&session_key(player), session(player)).await?) }
    })?;
    all.extend(rows(name, &SET, &found, &note));
    let publish = of(scope);
    let found = measure(runtime, time, callers, move |number| {
        let (scope, zone) = (publish.clone(), number % ZONES);
        async move { Ok(scope.transact(move |tx| tx.publish(&NEWS.key(zone), &MESSAGE.to_vec())).await?) }
    })?;
    all.extend(rows(name, &PUBLISH, &found, &format!("{note}, each message a commit")));
    let members = of(scope);
    let found = measure(runtime, time, callers, move |number| {
        let (scope, zone) = (members.clone(), number % ZONES);
        async move {
            let count = scope.smembers(&ZONE.key(zone)).await?.len() as u64;
            ensure!(count == ZONE_PLAYERS, "{count} players in a zone");
            Ok(())
        }
    })?;
    all.extend(rows(name, &MEMBERS, &found, &format!("{note}, {ZONE_PLAYERS} players in a zone")));
    Ok(all)
}

async fn fill(scope: &Scope<Realm>) -> Result<()> {
    for player in 0..SESSIONS {
        scope.put(&session_key(player), session(player)).await?;
    }
    for zone in 0..ZONES {
        let players: Vec<u64> = (0..ZONE_PLAYERS).map(|player| zone * ZONE_PLAYERS + player).collect();
        scope
            .transact(move |tx| {
                for player in &players {
                    tx.sadd(&ZONE.key(zone), player)?;
                }
                Ok::<_, Error>(())
            })
            .await?;
    }
    Ok(())
}
