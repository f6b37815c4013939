//! The engine: hands transactions to the task of their partition, reads, scans and listens.

use crate::address::Address;
use crate::combiner::Combiner;
use crate::failure::{Failure, unavailable};
use crate::job::{Claim, Job};
use crate::limits::*;
use crate::listen;
use crate::node::{ALWAYS, Node};
use crate::router::Router;
use crate::scan::Plan;
use crate::shared::{Shared, add};
use crate::wire::{self, Answer, Call, Envelope};
use bytes::Bytes;
use emberkeep_hot::command::{RawKey, Read, Reply};
use emberkeep_hot::engine::{
    Cursor, Engine, MemberCursor, MemberPage, Page, Pending, Stats, TransactionRequest,
};
use emberkeep_hot::limits::{TRANSACTION_DEADLINE_DEFAULT, TRANSACTION_DEADLINE_MAX};
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::tx::Transaction;
use emberkeep_hot::{Error, Result};
use emberkeep_schema::{KeyLayout, Topology};
use hashbrown::HashMap;
use parking_lot::Mutex;
use redis::Value;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

type Tasks = HashMap<Bytes, (mpsc::UnboundedSender<Job>, JoinHandle<()>), foldhash::fast::RandomState>;
type Partitions = Mutex<Tasks>;

/// Hot state on Redis or Valkey.
pub struct RedisEngine {
    pub(crate) shared: Arc<Shared>,
    partitions: Arc<Partitions>,
    closed: AtomicBool,
    /// How the last scan found the servers.
    pub(crate) plan: Mutex<Option<Arc<Plan>>>,
    seeds: AtomicU64,
}

impl RedisEngine {
    /// Connects, and checks that the server is one that the engine can keep its promises on.
    ///
    /// `redis://[user:password@]host:port`, `rediss://` for TLS, `redis+cluster://a:1,b:2` for a Cluster; options
    /// `?prefix=eu:` before every key and channel, `&wait=1` to await that many replicas after each commit,
    /// `&ca=/path/ca.pem` to trust a private authority instead of the public ones.
    pub async fn connect(url: &str) -> Result<Arc<RedisEngine>> {
        let address = Address::parse(url)?;
        let layout = if address.cluster { Topology::Cluster } else { Topology::Single };
        let layout = KeyLayout::new(address.prefix.clone(), layout)
            .map_err(|error| Error::Invalid { what: "prefix", problem: error.to_string() })?;
        let name = address.to_string();
        let router = Router::new(address).map_err(|failure| plain(&name, failure))?;
        let random = RandomState::new();
        let process = format!("{:016x}", random.hash_one(std::process::id()));
        let seeds = AtomicU64::new(random.hash_one("seed"));
        let shared = Arc::new(Shared::new(router, layout, process));
        let engine = RedisEngine {
            shared,
            partitions: Arc::default(),
            closed: AtomicBool::new(false),
            plan: Mutex::default(),
            seeds,
        };
        engine.check_server().await?;
        Ok(Arc::new(engine))
    }

    async fn check_server(&self) -> Result<()> {
        let shared = &self.shared;
        shared.router.refresh().await.map_err(|failure| plain(&shared.name, failure))?;
        self.ask_time().await?;
        let info = match self.call(0, redis::cmd("INFO").arg("server")).await {
            Ok(info) => wire::text(&info),
            // Nice to know, not needed: a user without the right to ask may work all the same. Unless replicas are
            // waited for: whose they are is told by this alone.
            Err(Error::Denied { reason, .. })
                if reason.contains("NOPERM") && shared.router.address().wait == 0 =>
            {
                String::new()
            }
            Err(other) => return Err(other),
        };
        check_version(&shared.name, &info)?;
        let clustered = info.lines().any(|line| line.trim() == "redis_mode:cluster");
        if clustered && !shared.router.address().cluster {
            return Err(unavailable(
                &shared.name,
                "this server belongs to a Cluster".into(),
                "write redis+cluster:// in the URL; the keys of a Cluster have another layout",
            ));
        }
        if !shared.router.address().cluster {
            self.refuse_replica(&shared.router.primaries()[0]).await?;
        }
        if shared.router.address().wait > 0 {
            // Nobody is waited for; a user without the right to wait hears of it now and not after a commit.
            self.call(0, redis::cmd("WAIT").arg(0).arg(1)).await?;
        }
        self.warn_of_eviction().await;
        Ok(())
    }

    /// A replica answers with what was true some time ago. Scripts notice by themselves; this is for all else. A user
    /// without the right to ask may work all the same.
    pub(crate) async fn refuse_replica(&self, node: &Node) -> Result<()> {
        match node.call(&redis::cmd("ROLE"), ALWAYS).await {
            Ok(Value::Array(role)) if role.first().is_some_and(|role| wire::text(role) == "slave") => {
                let _ = self.shared.router.refresh().await;
                Err(unavailable(&self.shared.name, format!("{} is a replica", node.name()), NAME_THE_PRIMARY))
            }
            Ok(_) | Err(Failure::Refused(Error::Denied { .. })) => Ok(()),
            Err(failure) => Err(plain(&self.shared.name, failure)),
        }
    }

    /// A server that evicts keys behind our back breaks every promise; it is said once, where we may ask.
    async fn warn_of_eviction(&self) {
        let policy = self.call(0, redis::cmd("CONFIG").arg("GET").arg("maxmemory-policy")).await;
        if let Ok(Value::Array(pair)) = policy
            && let Some(policy) = pair.get(1).map(wire::text)
            && policy != "noeviction"
        {
            tracing::warn!(server = %self.shared.name, %policy, "the server may evict keys; set maxmemory-policy noeviction");
        }
    }

    async fn call(&self, slot: u16, cmd: &redis::Cmd) -> Result<Value> {
        let (answer, _) = self.shared.router.call(slot, cmd, ALWAYS).await;
        answer.map_err(|failure| plain(&self.shared.name, failure))
    }

    async fn ask_time(&self) -> Result<i64> {
        let asked = Instant::now();
        let (time, node) = self.shared.router.call(0, &redis::cmd("TIME"), ALWAYS).await;
        let time = time.map_err(|failure| plain(&self.shared.name, failure))?;
        let ms = wire::time_ms(&time).ok_or_else(|| self.nonsense("TIME's answer"))?;
        let clock = self.shared.clock_of(&node);
        clock.observe(ms, asked);
        Ok(clock.shown(ms))
    }

    /// Hands a job to its partition's task, which is started if it is not there. An engine that was closed takes none.
    fn submit(&self, partition: &Bytes, job: Job) {
        let mut partitions = self.partitions.lock();
        // Under the lock, and only when the job is there: `close` ends every task that was started before it, and none is
        // started after it, also by a future that was made long before.
        if self.closed.load(Ordering::Acquire) {
            return job.fail(Error::Closed);
        }
        let job = match partitions.get(partition) {
            Some((sender, _)) => match sender.send(job) {
                Ok(()) => return,
                Err(mpsc::error::SendError(job)) => job,
            },
            None => job,
        };
        let (sender, inbox) = mpsc::unbounded_channel();
        let combiner = Combiner::new(self.shared.clone(), partition.clone(), inbox);
        let (all, key) = (self.partitions.clone(), partition.clone());
        let _ = sender.send(job);
        // Jobs are sent under the lock; what was sent before the entry went is still worked off.
        let task = tokio::spawn(combiner.run(move || drop(all.lock().remove(&key))));
        partitions.insert(partition.clone(), (sender, task));
    }

    async fn run_job(&self, order: TransactionRequest) -> Result<Box<dyn Transaction>> {
        let (reply, answer) = oneshot::channel();
        let started = Instant::now();
        // Whatever the caller asked for: a sum of times must not overflow.
        let deadline = started + order.deadline.min(TRANSACTION_DEADLINE_MAX);
        let claim = Arc::new(Claim::default());
        let job = Job {
            transaction: order.transaction,
            seed: order.seed,
            prefetched: order.prefetched,
            started,
            deadline,
            attempts: 0,
            stale: 0,
            alone: false,
            solo: false,
            misses: 0,
            time: None,
            not_before: None,
            held_up_by: vec![],
            fresh: None,
            leases: Default::default(),
            waits: 0,
            verdict: None,
            claim: claim.clone(),
            reply,
        };
        self.submit(&order.partition, job);
        match tokio::time::timeout_at((deadline + DEADLINE_GRACE).into(), answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) if claim.give_up() => Err(Error::Closed),
            Ok(Err(_)) => Err(Error::OutcomeUnknown {
                backend: self.shared.name.clone(),
                reason: "the engine ended with the commit in flight".into(),
            }),
            Err(_) if claim.give_up() => Err(claim.too_late(&self.shared.name, started)),
            Err(_) => Err(Error::OutcomeUnknown {
                backend: self.shared.name.clone(),
                reason: "the deadline passed with the commit in flight".into(),
            }),
        }
    }

    async fn read_slot(&self, slot: u16, reads: &[(RawKey, Read)]) -> Result<Vec<Reply>> {
        let deadline = Instant::now() + TRANSACTION_DEADLINE_DEFAULT;
        if let Some(replies) = self.texts_together(slot, reads).await {
            add(&self.shared.counters.read_calls, 1);
            return Ok(replies);
        }
        // Strings alone, as in a field of records, by the shorter script.
        let call = Call::of_swaps(&[], reads, "").unwrap_or_else(|| Call::of_groups(&[], reads, ""));
        let none = |_: &RawKey| Vec::new();
        let envelope = Envelope {
            turn_key: &none,
            receipt: None,
            estimate_ms: None,
            allowance: Duration::ZERO,
            lease: Duration::ZERO,
            wants_time: self.shared.clock_of_slot(slot).is_due(),
            check_rights: false,
            process: &self.shared.process,
            groups: 0,
        };
        let asked = Instant::now();
        let shared = &self.shared;
        let script = if call.is_of_swaps() { &shared.swap_script } else { &shared.step_script };
        let eval =
            || self.shared.eval(slot, script, ALWAYS, |verb, script| call.command(verb, script, &envelope));
        let (value, node) = self.read_until(slot, deadline, eval).await?;
        add(&self.shared.counters.read_calls, 1);
        let answer = Answer::parse(value, 0).ok_or_else(|| self.nonsense("the script's answer"))?;
        if let Some(time) = answer.time_ms {
            self.shared.clock_of(&node).observe(time, asked);
        }
        let replies = reads.iter().zip(answer.fetched).map(|((_, read), value)| wire::reply(read, value));
        let refused = |text: String| plain(&self.shared.name, Failure::of_text(&self.shared.name, &text));
        replies.collect::<Result<Vec<_>, _>>().map_err(refused)
    }

    /// A call that only reads: it may be made again, whatever became of it, until the deadline; a reply that is arriving
    /// then may arrive to its end. Also tells who answered.
    pub(crate) async fn read_until<F>(
        &self,
        slot: u16,
        deadline: Instant,
        call: impl Fn() -> F,
    ) -> Result<(Value, Arc<Node>)>
    where
        F: Future<Output = (Result<Value, Failure>, Arc<Node>)>,
    {
        let mut pause = RETRY_PAUSE;
        let mut last = Failure::Unreachable { reason: "no answer in time".into() };
        loop {
            let mut answer = pin!(call());
            let mut until = deadline;
            let answer = loop {
                match tokio::time::timeout_at(until.into(), &mut answer).await {
                    Err(_) if self.shared.router.is_receiving(slot) => {
                        until = Instant::now() + RETRY_PAUSE_MAX
                    }
                    other => break other,
                }
            };
            match answer {
                Ok((Ok(value), node)) => return Ok((value, node)),
                Ok((Err(failure @ Failure::Refused(_)), _)) => return Err(plain(&self.shared.name, failure)),
                Ok((Err(failure), _)) => last = failure,
                Err(_) => return Err(plain(&self.shared.name, last)),
            }
            if Instant::now() + pause >= deadline {
                return Err(plain(&self.shared.name, last));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        }
    }

    pub(crate) fn nonsense(&self, what: &str) -> Error {
        unavailable(&self.shared.name, format!("{what} was not understood"), "is this Redis 7 or Valkey?")
    }

    pub(crate) async fn read_all(&self, reads: Vec<(RawKey, Read)>) -> Result<Vec<Reply>> {
        let mut by_slot: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (index, (key, read)) in reads.iter().enumerate() {
            read.check(key)?;
            by_slot.entry(self.shared.router.slot_of_key(key)).or_default().push(index);
        }
        let mut replies = vec![Reply::Nil; reads.len()];
        for (slot, indexes) in by_slot {
            // Bounded calls: a long list of reads must not hold the server.
            for part in indexes.chunks(emberkeep_hot::limits::REPLY_ELEMENTS_MAX) {
                let of_slot: Vec<_> = part.iter().map(|index| reads[*index].clone()).collect();
                let answers = self.read_slot(slot, &of_slot).await?;
                part.iter().zip(answers).for_each(|(index, reply)| replies[*index] = reply);
            }
        }
        Ok(replies)
    }
}

/// A failure as the error of a plain call.
pub(crate) fn plain(backend: &str, failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) => error,
        other if other.reason().contains("invalid peer certificate") => {
            unavailable(backend, other.reason(), "name a private authority in the URL, ?ca=/path/ca.pem")
        }
        other if other.reason().contains("cluster support disabled") => {
            unavailable(backend, "it is one server and no Cluster".into(), "write redis:// in the URL")
        }
        other if other.reason().contains("Parse error") || other.reason().contains("parse error") => {
            unavailable(
                backend,
                "its answer is not one of Redis".into(),
                "check host and port of the URL: something else listens there",
            )
        }
        other if other.reason().starts_with("READONLY") => {
            unavailable(backend, other.reason(), NAME_THE_PRIMARY)
        }
        other => unavailable(backend, other.reason(), "check that it runs and can be reached"),
    }
}

/// What helps against a server that became a replica, or always was one.
const NAME_THE_PRIMARY: &str = "name its primary in the URL, or a host name that follows the primary";

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

impl Engine for RedisEngine {
    fn name(&self) -> String {
        self.shared.name.clone()
    }

    fn key_layout(&self) -> &KeyLayout {
        &self.shared.layout
    }

    fn run(&self, order: TransactionRequest) -> Pending<'_, Result<Box<dyn Transaction>>> {
        Box::pin(self.run_job(order))
    }

    fn read_many(&self, reads: Vec<(RawKey, Read)>) -> Pending<'_, Result<Vec<Reply>>> {
        Box::pin(self.read_all(reads))
    }

    fn scan<'a>(
        &'a self,
        from: Option<Cursor>,
        pattern: &'a [u8],
        count: usize,
    ) -> Pending<'a, Result<Page>> {
        Box::pin(self.scan_page(from, pattern, count))
    }

    fn scan_members<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, Result<MemberPage>> {
        Box::pin(self.members_page(key, from, count))
    }

    fn subscribe(&self, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Pending<'_, Result<Subscription>> {
        Box::pin(listen::subscribe(&self.shared, channels, patterns))
    }

    fn now(&self) -> Pending<'_, Result<i64>> {
        Box::pin(self.ask_time())
    }

    fn ready(&self) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            if self.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            self.ask_time().await?;
            for node in self.shared.router.primaries() {
                self.refuse_replica(&node).await?;
            }
            Ok(())
        })
    }

    fn seed(&self) -> u64 {
        self.seeds.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed)
    }

    fn stats(&self) -> Stats {
        self.shared.counters.stats()
    }

    fn close(&self) -> Pending<'_, Result<()>> {
        let begin = || {
            let mut partitions = self.partitions.lock();
            self.closed.store(true, Ordering::Release);
            partitions.drain().collect::<Vec<_>>()
        };
        let all = begin();
        Box::pin(async {
            for (_, (sender, task)) in all {
                drop(sender);
                let _ = task.await;
            }
            Ok(())
        })
    }
}
