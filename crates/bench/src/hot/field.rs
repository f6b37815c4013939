//! Reading a field of 500 monsters on Redis: ours, without stale entries, beside SMEMBERS and MGET.
//!
//! Both decode every record by the same codec, so what differs is the way.

use crate::measure::{Counts, nanos_per_operation, per_second};
use crate::peer::{Peer, connect};
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::Bench;
use crate::targets;
use anyhow::{Result, ensure};
use emberkeep::games::monsters::{Monster, Monsters, field_key};
use emberkeep::games::world::{Field, Tenant};
use emberkeep::hot::Store;
use emberkeep::redis::RedisEngine;
use emberkeep::schema::{Codec, Json, KeyLayout};
use std::time::Duration;
use uuid::Uuid;

const MONSTERS: u64 = 500;
/// Calls that reading a field may take.
const CALLS_MAX: u64 = 2;

/// How many fields are read per second.
pub(crate) fn field(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let redis = bench.redis()?;
    let tenant = Tenant(Uuid::new_v4());
    let map = field_key(&targets_field(tenant)).to_text(&KeyLayout::single(), &tenant);
    place(&redis, tenant, &map)?;
    let calls = calls_of_one(&redis, tenant)?;
    ensure!(calls <= CALLS_MAX, "reading a field took {calls} calls, expected at most {CALLS_MAX}");
    let (url, time) = (redis.url().to_owned(), bench.sample);
    let taken = bench.take_turns(
        name,
        "fields/s",
        || by_us(&url, tenant, time),
        || by_hand(&url, tenant, &map, time),
    );
    redis.call_each(MONSTERS, |number, pipe| {
        pipe.cmd("UNLINK").arg(key(tenant, number));
    })?;
    redis.call::<()>(redis::cmd("UNLINK").arg(&map))?;
    let (ours, peer) = taken?;
    let row = Row::new(name, "fields/s", &ours, &peer, Goal::RatioAtLeast(1.0));
    let note = format!("{MONSTERS} monsters, one reader, all decoded; ours took {calls} calls");
    Ok(vec![row.beside(format!("SMEMBERS and MGET, {}", redis.name())).note(note)])
}

fn targets_field(tenant: Tenant) -> Field {
    targets::monster(tenant, 0, 0).field()
}

fn key(tenant: Tenant, number: u64) -> String {
    targets::key(number).to_text(&KeyLayout::single(), &tenant)
}

fn place(redis: &Peer, tenant: Tenant, map: &str) -> Result<()> {
    let records: Vec<Vec<u8>> = (0..MONSTERS)
        .map(|number| targets::json(&targets::monster(tenant, number, 5)))
        .collect::<Result<_>>()?;
    redis.call_each(MONSTERS, |number, pipe| {
        pipe.set(key(tenant, number), &records[number as usize]);
        pipe.sadd(map, targets::id(number).0);
    })
}

/// How many commands our client sends to read the field once, by the server's own count.
fn calls_of_one(redis: &Peer, tenant: Tenant) -> Result<u64> {
    let runtime = runtime()?;
    let store =
        runtime.block_on(async { anyhow::Ok(Store::new(RedisEngine::connect(redis.url()).await?)) })?;
    let monsters = Monsters::new(store.clone());
    let field = targets_field(tenant);
    runtime.block_on(monsters.in_field(tenant, field))?;
    let before = sent(redis)?;
    let found = runtime.block_on(monsters.in_field(tenant, field))?.living.len() as u64;
    let calls = sent(redis)? - before;
    runtime.block_on(store.close())?;
    ensure!(found == MONSTERS, "{found} monsters were read, expected {MONSTERS}");
    Ok(calls)
}

/// Scripts and transactions so far: our engine sends nothing else here. A command inside of them is not a round trip.
fn sent(redis: &Peer) -> Result<u64> {
    let info: String = redis.call(redis::cmd("INFO").arg("commandstats"))?;
    let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok();
    let ours = |line: &&str| ["cmdstat_eval", "cmdstat_exec"].iter().any(|name| line.starts_with(name));
    Ok(info.lines().filter(ours).filter_map(calls).sum())
}

fn by_us(url: &str, tenant: Tenant, time: Duration) -> Result<f64> {
    runtime()?.block_on(async {
        let store = Store::new(RedisEngine::connect(url).await?);
        let (monsters, field) = (Monsters::new(store.clone()), targets_field(tenant));
        let read = async |_| {
            let found = monsters.in_field(tenant, field).await?.living.len() as u64;
            ensure!(found == MONSTERS, "{found} monsters were read, expected {MONSTERS}");
            Ok(())
        };
        let nanos = nanos_per_operation(Counts::Wall, time, read).await?;
        store.close().await?;
        Ok(per_second(nanos))
    })
}

fn by_hand(url: &str, tenant: Tenant, map: &str, time: Duration) -> Result<f64> {
    runtime()?.block_on(async {
        let mut connection = connect(url).await?;
        let read = async |_| {
            let ids: Vec<String> = redis::cmd("SMEMBERS").arg(map).query_async(&mut connection).await?;
            let mut many = redis::cmd("MGET");
            for id in &ids {
                many.arg(format!("atlas:monster:{tenant}:{id}"));
            }
            let found: Vec<Option<Vec<u8>>> = many.query_async(&mut connection).await?;
            let monsters: Vec<Monster> =
                found.iter().flatten().map(|json| Json::decode(json)).collect::<Result<_, _>>()?;
            ensure!(monsters.len() as u64 == MONSTERS, "{} monsters were read", monsters.len());
            Ok(())
        };
        Ok(per_second(nanos_per_operation(Counts::Wall, time, read).await?))
    })
}
