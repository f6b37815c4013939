//! Redis, the peer beyond the process: started for the run, or an existing one.

use crate::runtime::runtime;
use crate::targets;
use anyhow::{Context, Result, ensure};
use emberkeep::games::monsters::Monster;
use emberkeep::games::world::Tenant;
use emberkeep::schema::{Codec, Json, KeyLayout};
use emberkeep_testkit::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, FromRedisValue, Pipeline};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// Commands in one pipeline.
const PIPELINE: u64 = 1_000;

/// A Redis with a connection to it. A server that we started is stopped on drop, or by its watchdog if this
/// process is killed.
pub(super) struct Peer {
    _server: Option<RedisServer>,
    url: String,
    name: String,
    runtime: Runtime,
    connection: MultiplexedConnection,
    /// Every run hits monsters of its own.
    pub(super) tenant: Tenant,
}

impl Peer {
    /// Starts a Redis in memory only, or uses the one at `against`.
    pub(super) fn start(against: Option<&str>) -> Result<Peer> {
        match against {
            Some(url) => Peer::connect(url.to_owned(), None),
            None => {
                let server = RedisServer::start().context("cannot start redis-server; is it installed?")?;
                Peer::connect(server.url(), Some(server))
            }
        }
    }

    fn connect(url: String, server: Option<RedisServer>) -> Result<Peer> {
        let runtime = runtime()?;
        let mut connection = runtime.block_on(connect(&url))?;
        let info: String = runtime.block_on(redis::cmd("INFO").arg("server").query_async(&mut connection))?;
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or("?").trim();
        let name = format!("Redis {version}");
        Ok(Peer { _server: server, url, name, runtime, connection, tenant: Tenant(Uuid::new_v4()) })
    }

    /// The address that clients connect to.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The name of the peer in rows.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends one command and waits for its reply.
    pub(super) fn call<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let mut connection = self.connection.clone();
        Ok(self.runtime.block_on(command.query_async(&mut connection))?)
    }

    /// One command for each number below `count`, in pipelines; the answers are dropped.
    pub(super) fn call_each(&self, count: u64, mut command: impl FnMut(u64, &mut Pipeline)) -> Result<()> {
        let mut connection = self.connection.clone();
        for first in (0..count).step_by(PIPELINE as usize) {
            let mut pipe = redis::pipe();
            (first..count.min(first + PIPELINE)).for_each(|number| command(number, &mut pipe));
            self.runtime.block_on(pipe.query_async::<redis::Value>(&mut connection))?;
        }
        Ok(())
    }

    /// Bytes of memory that the operating system gave it.
    pub(super) fn rss_bytes(&self) -> Result<u64> {
        let info: String = self.call(redis::cmd("INFO").arg("memory"))?;
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory_rss:"));
        line.and_then(|text| text.trim().parse().ok()).context("INFO memory has no used_memory_rss")
    }

    fn monster_key(&self, number: u64) -> String {
        targets::key(number).to_text(&KeyLayout::single(), &self.tenant)
    }

    /// Makes `count` monsters whole.
    pub(super) fn place_monsters(&self, count: u64, entries: usize) -> Result<()> {
        let fresh = |number| targets::json(&targets::monster(self.tenant, number, entries));
        let records: Vec<Vec<u8>> = (0..count).map(fresh).collect::<Result<_>>()?;
        self.call_each(count, |number, pipe| {
            pipe.set(self.monster_key(number), &records[number as usize]);
        })
    }

    /// Fails unless the monsters have lost exactly the damage that calls reported.
    pub(super) fn check_monsters(&self, count: u64, dealt: u64, kills: u64) -> Result<()> {
        let mut lost = kills * u64::from(targets::HP);
        for number in 0..count {
            let json: Vec<u8> = self.call(redis::cmd("GET").arg(self.monster_key(number)))?;
            let monster = Json::<Monster>::decode(&json)?;
            lost += u64::from(monster.max_hp - monster.hp);
        }
        ensure!(lost == dealt, "callers dealt {dealt} in {kills} kills and more, the monsters lost {lost}");
        Ok(())
    }

    /// Removes what the benchmark stored.
    pub(super) fn remove_monsters(&self, count: u64) -> Result<()> {
        self.call_each(count, |number, pipe| {
            pipe.cmd("UNLINK").arg(self.monster_key(number));
        })
    }
}

/// A pipelined connection, as a service would use it.
pub(super) async fn connect(url: &str) -> Result<MultiplexedConnection> {
    let client = Client::open(url).with_context(|| format!("{url} is not the address of a Redis"))?;
    client.get_multiplexed_async_connection().await.with_context(|| format!("cannot reach {url}"))
}
