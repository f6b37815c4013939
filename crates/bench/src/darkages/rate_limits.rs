//! Rate limits with 64 tasks, beside a Lua script that does the same.

use super::{City, row, workers};
use crate::row::{Goal, Row};
use crate::suite::Bench;
use anyhow::{Context, Result};
use emberkeep::games::darkages::{DarkAges, EntityId, RateCheck};
use emberkeep::schema::Name;
use redis::Script;
use redis::aio::MultiplexedConnection;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Tasks at the same time.
const TASKS: u64 = 64;
/// Entities whose events are counted.
const ENTITIES: u64 = 1_000;
/// Events that an entity may have in a window.
const LIMIT: usize = 100;
const WINDOW: Duration = Duration::from_secs(1);

/// Trim, count, add, TTL. Returns whether the event counts.
const SCRIPT: &str = "
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local window = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 1 end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], math.max(60000, window))
return 1";

/// Events in a second.
pub(super) fn rate_limits(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let client = redis::Client::open(peer.url())?;
    let runtime = workers()?;
    let connection = runtime.block_on(client.get_multiplexed_async_connection())?;
    let mut rows = Vec::new();
    for (city, goal) in [(City::embedded()?, Goal::None), (City::on_redis(&peer)?, Goal::RatioAtLeast(1.0))] {
        let name = format!("{name}-{}", city.on);
        let (ours, theirs) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let samples = bench.take_turns(
            &name,
            "events/s",
            || {
                let game = city.game.clone();
                rate(&city.runtime, bench.sample, &ours, move |number| check(game.clone(), number))
            },
            || {
                let connection = connection.clone();
                rate(&runtime, bench.sample, &theirs, move |number| script(connection.clone(), number))
            },
        )?;
        rows.push(row(&name, "events/s", &samples, goal, "a Lua script, 64 tasks on one connection"));
    }
    Ok(rows)
}

async fn check(game: DarkAges, number: u64) -> Result<()> {
    let entity = EntityId((number % ENTITIES) as i64 + 1);
    let action = Name::new("attack").context("a name")?;
    let event_id = number.to_string();
    game.check_rate(RateCheck { entity, action, event_id, limit: LIMIT, window: WINDOW }).await?;
    Ok(())
}

async fn script(mut connection: MultiplexedConnection, number: u64) -> Result<()> {
    let script = Script::new(SCRIPT);
    let mut call = script.key(format!("ember:bench:rate:{}", number % ENTITIES));
    call.arg(number).arg(WINDOW.as_millis() as u64).arg(LIMIT);
    call.invoke_async::<i64>(&mut connection).await?;
    Ok(())
}

/// Calls in a second of 64 tasks, each behind its own last one. Numbers go on from the last sample.
fn rate<F>(
    runtime: &Runtime,
    time: Duration,
    next: &Arc<AtomicU64>,
    call: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<f64>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let started = Instant::now();
    let done = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let (call, next) = (call.clone(), next.clone());
            tasks.spawn(async move {
                let mut done = 0_u64;
                while started.elapsed() < time {
                    call(next.fetch_add(1, Ordering::Relaxed)).await?;
                    done += 1;
                }
                anyhow::Ok(done)
            });
        }
        tasks.join_all().await.into_iter().sum::<Result<u64>>()
    })?;
    Ok(done as f64 / started.elapsed().as_secs_f64())
}
