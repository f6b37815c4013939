//! From spawn to removal on Redis: our three atomic transactions beside the document's plain commands from a Rust client.
//!
//! The peer does what the document's service does, in as few round trips as its commands allow: an id by its script, then
//! record and index in one pipeline, damage by its script, then record, index, timer and id in one pipeline. Nothing
//! of it is atomic; a crash or a neighbour in between leaves a stale entry, an orphan or a lost id.

use crate::peer::connect;
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::Bench;
use crate::targets;
use anyhow::{Context, Result, ensure};
use emberkeep::games::monsters::{Monsters, SpawnRequest};
use emberkeep::games::world::{CharacterId, Field, Tenant};
use emberkeep::hot::Store;
use emberkeep::redis::RedisEngine;
use redis::aio::MultiplexedConnection;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Callers at the same time.
const TASKS: usize = 64;
/// Most cycles of one caller, whatever the time.
const CYCLES_MAX: u64 = 1_000_000;
const HP: u32 = 100;
const CALLER: u32 = 7;

/// "Sequential allocation uses a Lua script for atomic check-and-init with wrapping."
const ALLOCATE: &str = include_str!("../peer_allocate.lua");
const DAMAGE: &str = include_str!("../peer_damage.lua");

/// Whole lives per second.
pub(crate) fn lifecycle(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let redis = bench.redis()?;
    let (url, time) = (redis.url().to_owned(), bench.sample);
    let (ours, peer) =
        bench.take_turns(name, "lives/s", || by_us(&url, time), || by_plain_commands(&url, time))?;
    let row = Row::new(name, "lives/s", &ours, &peer, Goal::RatioAtLeast(1.0));
    let note = format!("{TASKS} callers; spawn, a deadly hit, removal; ours atomic, the peer's not");
    Ok(vec![row.beside(format!("the document's plain commands, {}", redis.name())).note(note)])
}

fn field() -> Field {
    Field { world: 0, channel: 1, map: 100_000_000, instance: Uuid::nil() }
}

fn by_us(url: &str, time: Duration) -> Result<f64> {
    runtime()?.block_on(async {
        let store = Store::new(RedisEngine::connect(url).await?);
        let (monsters, tenant) = (Monsters::new(store.clone()), Tenant(Uuid::new_v4()));
        let ours = monsters.clone();
        let rate = rate(time, move || live(ours.clone(), tenant)).await?;
        ensure!(monsters.in_field(tenant, field()).await?.living.is_empty(), "a monster was left behind");
        monsters.teardown(tenant).await?;
        store.close().await?;
        Ok(rate)
    })
}

/// One life, by us.
async fn live(monsters: Monsters, tenant: Tenant) -> Result<()> {
    let id = monsters.spawn(tenant, SpawnRequest::new(field(), 100_100, HP)).await?.id;
    let hit = monsters.damage(tenant, id, CharacterId(CALLER), i64::from(HP)).await?;
    ensure!(hit.killed && monsters.remove(tenant, id).await?, "another caller killed or removed {id}");
    Ok(())
}

fn by_plain_commands(url: &str, time: Duration) -> Result<f64> {
    runtime()?.block_on(async {
        let mut connection = connect(url).await?;
        let tenant = Tenant(Uuid::new_v4());
        let peer = Peer::load(&mut connection, tenant).await?;
        let (theirs, line) = (peer.clone(), connection.clone());
        let rate = rate(time, move || theirs.clone().live(line.clone())).await?;
        let _: () = redis::cmd("DEL").arg(&[&peer.next, &peer.free]).query_async(&mut connection).await?;
        Ok(rate)
    })
}

/// What a service that follows the document keeps at hand.
#[derive(Clone)]
struct Peer {
    allocate: String,
    damage: String,
    tenant: Tenant,
    next: String,
    free: String,
    map: String,
}

impl Peer {
    async fn load(connection: &mut MultiplexedConnection, tenant: Tenant) -> Result<Peer> {
        let mut load = async |script: &str| {
            redis::cmd("SCRIPT").arg("LOAD").arg(script).query_async::<String>(connection).await
        };
        Ok(Peer {
            allocate: load(ALLOCATE).await?,
            damage: load(DAMAGE).await?,
            tenant,
            next: format!("atlas:monster-ids:{tenant}:next"),
            free: format!("atlas:monster-ids:{tenant}:free"),
            map: format!("atlas:monster-map:{tenant}:0:1:100000000:{}", Uuid::nil()),
        })
    }

    /// One life, by plain commands.
    async fn live(self, mut connection: MultiplexedConnection) -> Result<()> {
        let mut allocate = redis::cmd("EVALSHA");
        allocate.arg(&self.allocate).arg(2).arg(&self.next).arg(&self.free);
        let id: u64 = allocate.query_async(&mut connection).await?;
        let key = format!("atlas:monster:{}:{id}", self.tenant);
        let mut monster = targets::monster(self.tenant, id - 1_000_000_000, 0);
        (monster.max_hp, monster.hp) = (HP, HP);
        let json = targets::json(&monster)?;
        let () = redis::pipe().set(&key, json).sadd(&self.map, id).query_async(&mut connection).await?;

        let mut damage = redis::cmd("EVALSHA");
        damage.arg(&self.damage).arg(1).arg(&key).arg(CALLER).arg(HP).arg(0);
        let (_, killed): (u64, u64) = damage.query_async(&mut connection).await?;
        ensure!(killed == 1, "another caller killed {id}");
        let timer = format!("atlas:drop-timer:{}:{id}", self.tenant);
        let mut remove = redis::pipe();
        remove.del(&key).srem(&self.map, id).del(timer).lpush(&self.free, id);
        let () = remove.query_async(&mut connection).await?;
        Ok(())
    }
}

/// Runs lives at the same time, one behind the other for each caller; answers how many there were in a second.
async fn rate<F>(time: Duration, life: impl Fn() -> F + Clone + Send + 'static) -> Result<f64>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..TASKS {
        let life = life.clone();
        callers.spawn(async move {
            let mut lives = 0;
            while lives < CYCLES_MAX && started.elapsed() < time {
                life().await?;
                lives += 1;
            }
            anyhow::Ok(lives)
        });
    }
    let mut lives = 0;
    while let Some(lived) = callers.join_next().await {
        lives += lived.context("a caller panicked")??;
    }
    ensure!(lives > 0, "no life came to its end");
    Ok(lives as f64 / started.elapsed().as_secs_f64())
}
