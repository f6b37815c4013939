//! How many calls of a rate limit one process makes, beside a script written by hand. Ignored: it measures.
//!
//! `cargo test -p emberkeep-hot-redis --test rate_limit_speed -- --ignored --nocapture`

use emberkeep::primitives::RateLimit;
use emberkeep_hot::{Scope, Store};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{Id, SortedSet, family, partition};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

partition! {
    /// A world.
    #[derive(Copy)]
    pub struct World(u32) as "world";
}
family! {
    /// What players did lately.
    pub RATE = "ratelimit:{world}:{player}" {
        kind: SortedSet<Id<u64>>, partition: World, parts: (player: u32), ttl: refresh(60_000), owner: "test"
    }
}

const SPAN: Duration = Duration::from_millis(1_500);

/// The sliding window as other services write it.
const SCRIPT: &str = r"
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[2])
if redis.call('ZSCORE', KEYS[1], ARGV[4]) then return 1 end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('PEXPIRE', KEYS[1], 60000)
return 1";

/// A limit, its window, and over how many keys how many callers are spread.
#[derive(Clone, Copy)]
struct Load {
    limit: usize,
    window_ms: u64,
    keys: u32,
    callers: u32,
}

impl Load {
    /// Calls a second with this call, in a closed loop.
    async fn rate<F: Future<Output = bool> + Send>(
        self,
        call: impl Fn(u32, u64) -> F + Clone + Send + 'static,
    ) -> (u64, u64) {
        static EVENTS: AtomicU64 = AtomicU64::new(1);
        let start = Instant::now();
        let tasks: Vec<_> = (0..self.callers)
            .map(|caller| {
                let call = call.clone();
                tokio::spawn(async move {
                    let (mut calls, mut admitted) = (0, 0);
                    while start.elapsed() < SPAN {
                        calls += 1;
                        admitted += call(caller % self.keys, EVENTS.fetch_add(1, Relaxed)).await as u64;
                    }
                    (calls, admitted)
                })
            })
            .collect();
        let (mut calls, mut admitted) = (0, 0);
        for task in tasks {
            let (more, more_admitted) = task.await.expect("a caller");
            (calls, admitted) = (calls + more, admitted + more_admitted);
        }
        let a_second = |n: u64| n * 1_000 / SPAN.as_millis() as u64;
        (a_second(calls), a_second(admitted))
    }
}

#[ignore = "measures"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_beside_a_script() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let url = server.url();
    let client = redis::Client::open(url.as_str()).expect("a URL");
    let connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let mut world = 0;
    for (limit, window_ms) in [(10, 1_000), (64, 20)] {
        for (keys, callers) in [(1, 1), (1, 16), (1, 64), (64, 1), (64, 16), (64, 64)] {
            world += 1;
            let load = Load { limit, window_ms, keys, callers };
            let script = by_script(load, world, &connection).await;
            let store = Store::new(RedisEngine::connect(&url).await.expect("a server"));
            let scope: Scope<World> = store.scope(World(world));
            let (ours, runs) = by_primitive(load, &scope).await;
            let stats = store.stats().expect("outside a transaction");
            let calls = (ours.0 * SPAN.as_millis() as u64 / 1_000).max(1) as f64;
            println!(
                "limit {limit} in {window_ms} ms, {keys} keys, {callers} callers: script {script:?}, ours {ours:?} a second; a call: {:.2} runs, {:.2} commits, {:.2} reads, {:.2} conflicts",
                runs as f64 / calls,
                stats.commit_calls as f64 / calls,
                stats.read_calls as f64 / calls,
                stats.conflicts as f64 / calls,
            );
        }
    }
}

async fn by_primitive(load: Load, scope: &Scope<World>) -> ((u64, u64), u64) {
    let runs = Arc::new(AtomicU64::new(0));
    let (scope, counted) = (scope.clone(), runs.clone());
    let rate = load.rate(move |key, event| {
        let limit = RateLimit::new(RATE.key(key), load.limit, Duration::from_millis(load.window_ms));
        let (limit, counted) = (limit.expect("within bounds"), counted.clone());
        let scope = limit.prefetched(scope.clone());
        async move {
            let body = move |tx: &mut emberkeep_hot::Tx<'_, World>| {
                counted.fetch_add(1, Relaxed);
                limit.acquire(tx, &event)
            };
            scope.transact(body).await.expect("a server").allowed
        }
    });
    (rate.await, runs.load(Relaxed))
}

async fn by_script(load: Load, world: u32, connection: &redis::aio::MultiplexedConnection) -> (u64, u64) {
    let connection = connection.clone();
    let rate = load.rate(move |key, event| {
        let mut connection = connection.clone();
        async move {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64;
            let mut call = redis::cmd("EVAL");
            call.arg(SCRIPT).arg(1).arg(format!("script:{world}:{key}")).arg(now);
            call.arg(load.window_ms).arg(load.limit).arg(event);
            call.query_async::<i64>(&mut connection).await.expect("a server") == 1
        }
    });
    rate.await
}
