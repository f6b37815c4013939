//! Hits monsters on Redis, by our engine or by the document's own script, and tells how many and how fast.

use crate::measure::{core_nanos, latencies, scattered};
use crate::peer::connect;
use crate::runtime::runtime;
use crate::targets::{self, Blow};
use crate::worker_processes::{print_line, wait_for_go};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use emberkeep::games::world::Tenant;
use emberkeep::hot::{Scope, Store};
use emberkeep::redis::RedisEngine;
use emberkeep::schema::KeyLayout;
use hdrhistogram::Histogram;
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The script that a program without emberkeep would send.
const PEER_SCRIPT: &str = include_str!("../peer_damage.lua");
/// Most hits of one task, whatever the time.
const HITS_MAX: u64 = 5_000_000;

/// How monsters are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// By a transaction of ours.
    Ours,
    /// By the document's Lua script.
    Lua,
}

/// Arguments of the process.
#[derive(Clone, Debug, Args)]
pub(crate) struct DamageArgs {
    #[arg(long)]
    pub(crate) url: String,
    #[arg(long, value_enum)]
    pub(crate) side: Side,
    #[arg(long)]
    pub(crate) tenant: Uuid,
    #[arg(long)]
    pub(crate) keys: u64,
    #[arg(long)]
    pub(crate) tasks: u64,
    #[arg(long)]
    pub(crate) seconds: f64,
    /// Entries that a monster keeps when it is made whole.
    #[arg(long)]
    pub(crate) keep: usize,
    /// Tells the processes' dice apart.
    #[arg(long)]
    pub(crate) number: u64,
}

impl DamageArgs {
    /// As arguments of a child.
    pub(crate) fn words(&self) -> Vec<String> {
        let side = if self.side == Side::Ours { "ours" } else { "lua" };
        let pairs: [(&str, String); 8] = [
            ("--url", self.url.clone()),
            ("--side", side.to_owned()),
            ("--tenant", self.tenant.to_string()),
            ("--keys", self.keys.to_string()),
            ("--tasks", self.tasks.to_string()),
            ("--seconds", self.seconds.to_string()),
            ("--keep", self.keep.to_string()),
            ("--number", self.number.to_string()),
        ];
        let words = pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        std::iter::once("damage".to_owned()).chain(words).collect()
    }
}

/// What one process did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) hits: u64,
    pub(crate) dealt: u64,
    pub(crate) kills: u64,
    pub(crate) seconds: f64,
    pub(crate) p99_us: u64,
    pub(crate) max_us: u64,
    /// What a hit cost this process on a core, whatever else the machine did; 0 where the system does not tell.
    pub(crate) core_us: f64,
    /// Runs of bodies that were repeated, commits, and waits for a fairness lease (ours only).
    pub(crate) conflicts: u64,
    pub(crate) commits: u64,
    pub(crate) lease_waits: u64,
}

/// The program that hits.
#[derive(Clone)]
enum Hitter {
    Ours(Scope<Tenant>),
    Lua { connection: MultiplexedConnection, sha: Arc<str>, tenant: Tenant },
}

impl Hitter {
    async fn connect(args: &DamageArgs) -> Result<Hitter> {
        let tenant = Tenant(args.tenant);
        if args.side == Side::Ours {
            let engine = RedisEngine::connect(&args.url).await?;
            return Ok(Hitter::Ours(Store::new(engine).scope(tenant)));
        }
        let mut connection = connect(&args.url).await?;
        let sha: String =
            redis::cmd("SCRIPT").arg("LOAD").arg(PEER_SCRIPT).query_async(&mut connection).await?;
        Ok(Hitter::Lua { connection, sha: sha.into(), tenant })
    }

    async fn hit(&mut self, number: u64, random: u64, keep: usize) -> Result<Blow> {
        let blow = targets::blow(random);
        match self {
            Hitter::Ours(scope) => {
                let key = targets::key(number);
                Ok(scope.transact(move |tx| targets::hit(tx, &key, blow, keep)).await?)
            }
            Hitter::Lua { connection, sha, tenant } => {
                let key = targets::key(number).to_text(&KeyLayout::single(), tenant);
                let mut call = redis::cmd("EVALSHA");
                call.arg(&**sha).arg(1).arg(key).arg(blow.0.0).arg(blow.1).arg(keep);
                let (dealt, killed): (u64, u64) = call.query_async(connection).await?;
                Ok(Blow { dealt, killed: killed == 1 })
            }
        }
    }
}

/// What one task did.
struct Share {
    dealt: u64,
    kills: u64,
    micros: Histogram<u64>,
}

impl Share {
    fn new() -> Share {
        Share { dealt: 0, kills: 0, micros: latencies() }
    }

    fn count(&mut self, blow: Blow) {
        self.dealt += blow.dealt;
        self.kills += u64::from(blow.killed);
    }
}

pub(super) fn run(args: DamageArgs) -> Result<()> {
    let tally = runtime()?.block_on(work(&args))?;
    print_line(serde_json::to_string(&tally)?)
}

async fn work(args: &DamageArgs) -> Result<Tally> {
    let mut hitter = Hitter::connect(args).await?;
    // The first hit loads our script and counts only in the sums.
    let mut first = Share::new();
    first.count(hitter.hit(scattered(args.number) % args.keys, args.number, args.keep).await?);
    wait_for_go()?;
    let (started, core_before) = (Instant::now(), core_nanos());
    let until = started + Duration::from_secs_f64(args.seconds);
    let tasks: Vec<_> = (0..args.tasks)
        .map(|task| tokio::spawn(hit_until(hitter.clone(), args.clone(), task, until)))
        .collect();
    let mut shares = vec![first];
    for task in tasks {
        shares.push(task.await.context("a task panicked")??);
    }
    let core = core_nanos().zip(core_before).map_or(0, |(after, before)| after - before);
    Ok(tally(&shares, started.elapsed(), Duration::from_nanos(core), &hitter))
}

async fn hit_until(mut hitter: Hitter, args: DamageArgs, task: u64, until: Instant) -> Result<Share> {
    let dice = scattered((args.number + 1) << 32 | task);
    let mut share = Share::new();
    let mut begun = Instant::now();
    for turn in 0..HITS_MAX {
        if begun >= until {
            break;
        }
        let random = scattered(dice.wrapping_add(turn));
        share.count(hitter.hit((random >> 20) % args.keys, random, args.keep).await?);
        let ended = Instant::now();
        share.micros.saturating_record((ended - begun).as_micros() as u64);
        begun = ended;
    }
    Ok(share)
}

fn tally(shares: &[Share], took: Duration, core: Duration, hitter: &Hitter) -> Tally {
    let mut micros = latencies();
    shares.iter().for_each(|share| micros += &share.micros);
    let stats = match hitter {
        Hitter::Ours(scope) => scope.store().stats().unwrap_or_default(),
        Hitter::Lua { .. } => Default::default(),
    };
    Tally {
        hits: micros.len(),
        dealt: shares.iter().map(|share| share.dealt).sum(),
        kills: shares.iter().map(|share| share.kills).sum(),
        seconds: took.as_secs_f64(),
        p99_us: micros.value_at_quantile(0.99),
        max_us: micros.max(),
        core_us: core.as_secs_f64() * 1e6 / micros.len().max(1) as f64,
        conflicts: stats.conflicts,
        commits: stats.commit_calls,
        lease_waits: stats.lease_waits,
    }
}
