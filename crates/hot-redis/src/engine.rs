//! The engine: gives transactions to the task of their partition, and makes all other calls itself.

use crate::cluster::{ALWAYS, RedisUrl, Router};
use crate::commit::{PartitionTask, QueuedTransaction};
use crate::failure::{Failure, unavailable};
use crate::read::{self, Scanner};
use crate::script;
use crate::shared::Shared;
use crate::subscribe;
use bytes::Bytes;
use emberkeep_hot::command::{RawKey, Read, Reply};
use emberkeep_hot::engine::{
    Cursor, Engine, FieldPage, MemberCursor, MemberPage, Page, Pending, Stats, TransactionRequest,
};
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::tx::{Transaction, check_outside};
use emberkeep_hot::{Error, Result};
use emberkeep_schema::{KeyLayout, Topology};
use hashbrown::HashMap;
use parking_lot::Mutex;
use redis::Value;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

type Task = (mpsc::UnboundedSender<QueuedTransaction>, JoinHandle<()>);
type Tasks = Mutex<HashMap<Bytes, Task, foldhash::fast::RandomState>>;

/// Hot state on Redis or Valkey.
#[doc = include_str!("../docs/engine.md")]
pub struct RedisEngine {
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
    is_closed: AtomicBool,
    scanner: Scanner,
    seeds: AtomicU64,
}

impl RedisEngine {
    /// Connects, and checks that the server is one on which the engine can keep its promises.
    ///
    /// `redis://[user:password@]host:port`, `rediss://` for TLS, `redis+cluster://a:1,b:2` for a Cluster; options
    /// `?prefix=eu:` before every key and channel, `&wait=1` to wait for so many replicas after each commit,
    /// `&ca=/path/ca.pem` to trust a private authority instead of the public ones.
    // Boxed: the code of an async function is compiled by the program that awaits it.
    pub fn connect(url: &str) -> Pending<'_, Result<Arc<RedisEngine>>> {
        Box::pin(RedisEngine::connect_to(url))
    }

    async fn connect_to(url: &str) -> Result<Arc<RedisEngine>> {
        let url = RedisUrl::parse(url)?;
        let topology = if url.cluster { Topology::Cluster } else { Topology::Single };
        let layout = KeyLayout::new(url.prefix.clone(), topology)
            .map_err(|error| Error::Invalid { what: "prefix", problem: error.to_string() })?;
        let name = url.to_string();
        let router = Router::new(url).map_err(|failure| failure.into_error(&name))?;
        let random = RandomState::new();
        let process = format!("{:016x}", random.hash_one(std::process::id()));
        let engine = RedisEngine {
            shared: Arc::new(Shared::new(router, layout, process)),
            tasks: Arc::default(),
            is_closed: AtomicBool::new(false),
            scanner: Scanner::default(),
            seeds: AtomicU64::new(random.hash_one("seed")),
        };
        engine.check_server().await?;
        Ok(Arc::new(engine))
    }

    async fn check_server(&self) -> Result<()> {
        let shared = &self.shared;
        let url = shared.router.url();
        shared.router.refresh().await.map_err(|failure| self.error(failure))?;
        self.server_time().await?;
        let info = match self.call(0, redis::cmd("INFO").arg("server")).await {
            Ok(info) => script::text(&info),
            // The version is only a help: a user without the right to INFO may work all the same. With ?wait=
            // it is needed: it alone proves whose replicas have confirmed.
            Err(Error::Denied { reason, .. }) if reason.contains("NOPERM") && url.wait == 0 => String::new(),
            Err(other) => return Err(other),
        };
        check_version(&shared.name, &info)?;
        let is_of_cluster = info.lines().any(|line| line.trim() == "redis_mode:cluster");
        if is_of_cluster && !url.cluster {
            return Err(unavailable(
                &shared.name,
                "this server belongs to a Cluster".into(),
                "write redis+cluster:// in the URL; the keys of a Cluster have another layout",
            ));
        }
        if !url.cluster {
            read::refuse_replica(shared, &shared.router.primaries()[0]).await?;
        }
        if url.wait > 0 {
            // Waits for no replica; a user without the right to WAIT gets the error now and not after a
            // commit.
            self.call(0, redis::cmd("WAIT").arg(0).arg(1)).await?;
        }
        self.warn_of_eviction().await;
        Ok(())
    }

    /// Warns once of a server that evicts keys, where our user may ask: eviction breaks every promise.
    async fn warn_of_eviction(&self) {
        let policy = self.call(0, redis::cmd("CONFIG").arg("GET").arg("maxmemory-policy")).await;
        if let Ok(Value::Array(pair)) = policy
            && let Some(policy) = pair.get(1).map(script::text)
            && policy != "noeviction"
        {
            tracing::warn!(server = %self.shared.name, %policy, "the server may evict keys; set maxmemory-policy noeviction");
        }
    }

    fn error(&self, failure: Failure) -> Error {
        failure.into_error(&self.shared.name)
    }

    async fn call(&self, slot: u16, cmd: &redis::Cmd) -> Result<Value> {
        let (answer, _) = self.shared.router.call(slot, cmd, ALWAYS).await;
        answer.map_err(|failure| self.error(failure))
    }

    async fn server_time(&self) -> Result<i64> {
        let asked = Instant::now();
        let (time, server) = self.shared.router.call(0, &redis::cmd("TIME"), ALWAYS).await;
        let time = time.map_err(|failure| self.error(failure))?;
        let us = script::time_us(&time).ok_or_else(|| read::not_understood(&self.shared, "TIME's answer"))?;
        let clock = self.shared.clock_of(&server);
        clock.observe(us, asked);
        Ok(clock.shown(us / 1_000))
    }

    /// Gives a transaction to its partition's task, which is started if there is none. A closed engine takes
    /// none.
    fn submit(&self, partition: Bytes, transaction: QueuedTransaction) {
        let mut tasks = self.tasks.lock();
        // Checked under the lock: `close` ends every task that was started before it, and none is started
        // after it, also not by a future that was created earlier.
        if self.is_closed.load(Ordering::Acquire) {
            return transaction.fail(Error::Closed);
        }
        let transaction = match tasks.get(&partition) {
            Some((sender, _)) => match sender.send(transaction) {
                Ok(()) => return,
                Err(mpsc::error::SendError(transaction)) => transaction,
            },
            None => transaction,
        };
        let (sender, inbox) = mpsc::unbounded_channel();
        let task = PartitionTask::new(self.shared.clone(), partition.clone(), inbox);
        let (tasks_of_all, key) = (self.tasks.clone(), partition.clone());
        let _ = sender.send(transaction);
        // Transactions are sent under the lock: the task still finishes those that were sent before its entry
        // was removed.
        let task = tokio::spawn(task.run(move || drop(tasks_of_all.lock().remove(&key))));
        tasks.insert(partition, (sender, task));
    }

    async fn run_transaction(&self, order: TransactionRequest) -> Result<Box<dyn Transaction>> {
        check_outside()?;
        let partition = order.partition.clone();
        let (transaction, pending) = QueuedTransaction::new(order);
        self.submit(partition, transaction);
        pending.wait(&self.shared.name).await
    }
}

fn check_version(backend: &str, info: &str) -> Result<()> {
    let version = info.lines().find_map(|line| line.trim().strip_prefix("redis_version:"));
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(major) if major < 7 => Err(unavailable(
            backend,
            format!("it is version {}", version.unwrap_or_default()),
            "Redis 7.0 or Valkey 7.2 is the oldest that works",
        )),
        _ => Ok(()),
    }
}

/// A call that is refused inside a body: it would be polled by the task that it waits for.
fn outside<'a, T: Send>(call: impl Future<Output = Result<T>> + Send + 'a) -> Pending<'a, Result<T>> {
    Box::pin(async move {
        check_outside()?;
        call.await
    })
}

impl Engine for RedisEngine {
    fn name(&self) -> String {
        self.shared.name.clone()
    }

    fn key_layout(&self) -> &KeyLayout {
        &self.shared.layout
    }

    fn run(&self, order: TransactionRequest) -> Pending<'_, Result<Box<dyn Transaction>>> {
        Box::pin(self.run_transaction(order))
    }

    fn read_many(&self, reads: Vec<(RawKey, Read)>) -> Pending<'_, Result<Vec<Reply>>> {
        outside(read::read_many(&self.shared, reads))
    }

    fn scan<'a>(
        &'a self,
        from: Option<Cursor>,
        pattern: &'a [u8],
        count: usize,
    ) -> Pending<'a, Result<Page>> {
        outside(self.scanner.page(&self.shared, None, from, pattern, count))
    }

    fn scan_partition<'a>(
        &'a self,
        partition: &'a [u8],
        from: Option<Cursor>,
        pattern: &'a [u8],
        count: usize,
    ) -> Pending<'a, Result<Page>> {
        let slot = self.shared.router.slot(partition);
        outside(self.scanner.page(&self.shared, Some(slot), from, pattern, count))
    }

    fn scan_members<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<MemberPage>> {
        outside(read::members_page(&self.shared, key, from, count))
    }

    fn scan_fields<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<FieldPage>> {
        outside(read::fields_page(&self.shared, key, from, count))
    }

    fn subscribe(&self, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Pending<'_, Result<Subscription>> {
        outside(subscribe::subscribe(&self.shared, channels, patterns))
    }

    fn now(&self) -> Pending<'_, Result<i64>> {
        outside(self.server_time())
    }

    fn ready(&self) -> Pending<'_, Result<()>> {
        outside(async move {
            if self.is_closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            self.server_time().await?;
            for server in self.shared.router.primaries() {
                read::refuse_replica(&self.shared, &server).await?;
            }
            Ok(())
        })
    }

    fn seed(&self) -> u64 {
        self.seeds.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed)
    }

    fn stats(&self) -> Result<Stats> {
        check_outside()?;
        Ok(self.shared.counters.stats())
    }

    fn close(&self) -> Pending<'_, Result<()>> {
        let begin = || {
            let mut tasks = self.tasks.lock();
            self.is_closed.store(true, Ordering::Release);
            tasks.drain().collect::<Vec<_>>()
        };
        // At once: transactions that are submitted before the future is polled are refused, too.
        let all = check_outside().map(|()| begin());
        Box::pin(async {
            for (_, (sender, task)) in all? {
                drop(sender);
                let _ = task.await;
            }
            Ok(())
        })
    }
}
