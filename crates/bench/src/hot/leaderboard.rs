//! Leaderboards of a million players: ours in process beside SQLite, and on Redis beside a plain sorted set.
//!
//! The peer in process is a table with an index over (score descending, reached, player), in memory: the same order
//! by the tool that a service would otherwise embed. A rank counts the entries before it, as any index without
//! positions must. The peer on Redis is the usual board: ZADD, ZREVRANK and ZREVRANGE of plain scores, by the same
//! client on one pipelined connection. It has neither exact scores above 2^53 nor ties by time, nor does it check anything.

use crate::measure::{Samples, latencies, scattered};
use crate::peer::connect;
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::{Bench, say};
use anyhow::{Context, Result, ensure};
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Scope, Store};
use emberkeep::primitives::leaderboard::{Entry, Leaderboard, Ranked};
use emberkeep::redis::RedisEngine;
use emberkeep::schema::{Hash, Id, Name, Number, SortedSet, Utf8, family, partition};
use redis::aio::MultiplexedConnection;
use rusqlite::Connection;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use uuid::Uuid;

const PLAYERS: u64 = 1_000_000;
const PLAYERS_QUICK: u64 = 100_000;
/// Scores of the beginning are below this.
const SCORES: u64 = 10_000_000;
/// Places that a read of the top returns.
const TOP: usize = 100;
/// Callers at the same time that add on Redis.
const TASKS: usize = 64;
/// Ranks of SQLite that are measured at most: each counts up to a million entries.
const SLOW_READS_MAX: u64 = 200;
/// What a read may take in process, in microseconds.
const READ_MICROS_MAX: f64 = 1_000.0;

partition! {
    /// A season. The board of the benchmark belongs to one.
    pub struct Season(Name) as "season";
}
family! {
    /// The players of a season by score.
    pub ORDER = "bench-board:{season}" {
        kind: SortedSet<Ranked<u64>>, partition: Season, parts: (), ttl: persistent, owner: "bench"
    }
}
family! {
    /// The entry of each player.
    pub ENTRIES = "bench-board:{season}:players" {
        kind: Hash<Id<u64>, Ranked<u64>>, partition: Season, parts: (), ttl: persistent, owner: "bench"
    }
}
family! {
    /// What was applied of each log.
    pub SOURCES = "bench-board:{season}:sources" {
        kind: Hash<Utf8, Number<u64>>, partition: Season, parts: (), ttl: persistent, owner: "bench"
    }
}

fn board() -> Leaderboard<ORDER, ENTRIES, SOURCES> {
    Leaderboard::new(ORDER.key(), ENTRIES.key(), SOURCES.key())
}

fn players(bench: &Bench) -> u64 {
    if bench.quick { PLAYERS_QUICK } else { PLAYERS }
}

/// The score with which a player begins.
fn score(player: u64) -> i64 {
    (scattered(player) % SCORES) as i64
}

/// A board with all players, and how many a rebuild puts in a second.
async fn filled(store: &Store, players: u64) -> Result<(Scope<Season>, f64)> {
    let scope = store.scope(Season(Name::new(Uuid::new_v4().to_string())?));
    let started = Instant::now();
    let entries = (0..players).map(|player| Entry { player, score: score(player), reached_at: 0 });
    board().rebuild(&scope, entries, &[]).await?;
    Ok((scope, players as f64 / started.elapsed().as_secs_f64()))
}

/// The 99th percentile of the reads that fit into the time, in microseconds.
async fn p99(time: Duration, reads_max: u64, mut read: impl AsyncFnMut(u64) -> Result<()>) -> Result<f64> {
    let (started, mut found, mut number) = (Instant::now(), latencies(), 0);
    while number < reads_max && (started.elapsed() < time || number < 20) {
        let before = Instant::now();
        read(number).await?;
        // In tenths, so that what takes less than a microsecond is seen.
        found.record((before.elapsed().as_nanos() / 100) as u64)?;
        number += 1;
    }
    Ok(found.value_at_quantile(0.99) as f64 / 10.0)
}

async fn our_top(scope: &Scope<Season>) -> Result<()> {
    ensure!(scope.read(|tx| board().top(tx, TOP)).await?.len() == TOP, "places are missing");
    Ok(())
}

async fn our_rank(scope: &Scope<Season>, player: u64) -> Result<()> {
    black_box(scope.read(move |tx| board().rank(tx, &player)).await?.context("a player is missing")?);
    Ok(())
}

/// In process, beside SQLite in memory.
pub(crate) fn in_memory(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let (players, time, runtime) = (players(bench), bench.sample, runtime()?);
    say(&format!("{name}  filling both boards with {players} players"));
    let store = Store::new(Arc::new(Embedded::in_memory()));
    let (scope, rebuilt) = runtime.block_on(filled(&store, players))?;
    let sqlite = Sqlite::filled(players)?;
    let pick = |number| scattered(number) % players;

    let top = bench.take_turns(
        name,
        "µs p99, top 100",
        || runtime.block_on(p99(time, u64::MAX, async |_| our_top(&scope).await)),
        || runtime.block_on(p99(time, u64::MAX, async |_| sqlite.top())),
    )?;
    let rank = bench.take_turns(
        name,
        "µs p99, rank",
        || runtime.block_on(p99(time, u64::MAX, async |number| our_rank(&scope, pick(number)).await)),
        || runtime.block_on(p99(time, SLOW_READS_MAX, async |number| sqlite.rank(pick(number)))),
    )?;
    let window = bench.take_turns(
        name,
        "µs p99, window",
        || {
            runtime.block_on(p99(time, u64::MAX, async |number| {
                let player = pick(number);
                let window = scope.read(move |tx| board().around(tx, &player, 5)).await?;
                ensure!(window.len() >= 6, "a window is too short");
                Ok(())
            }))
        },
        || runtime.block_on(p99(time, SLOW_READS_MAX, async |number| sqlite.window(pick(number)))),
    )?;
    let add = bench.take_turns(
        name,
        "adds/s",
        || {
            runtime.block_on(rate(time, async |number| {
                let (player, at) = (pick(number), number as i64);
                black_box(scope.transact(move |tx| board().add(tx, &player, 1, at)).await?);
                Ok(())
            }))
        },
        || runtime.block_on(rate(time, async |number| sqlite.add(pick(number), number as i64))),
    )?;
    let count = runtime.block_on(scope.read(|tx| board().count(tx)))?;
    ensure!(count == players, "{count} players of {players} are left");
    let note = format!("{players} players, one thread, in memory; a rebuild puts {rebuilt:.0} players/s");
    let row = |what: &str, unit, (ours, peer): &(Samples, Samples), goal| {
        let row = Row::new(&format!("{name}-{what}"), unit, ours, peer, goal);
        row.beside("SQLite in memory, one index, a rank counts").note(note.clone())
    };
    Ok(vec![
        row("top-100", "µs p99", &top, Goal::AtMost(READ_MICROS_MAX)),
        row("rank", "µs p99", &rank, Goal::AtMost(READ_MICROS_MAX)),
        row("around-5", "µs p99", &window, Goal::AtMost(READ_MICROS_MAX)),
        row("add", "adds/s", &add, Goal::RatioAtLeast(1.0)),
    ])
}

/// Operations in a second, one after the other.
async fn rate(time: Duration, mut operation: impl AsyncFnMut(u64) -> Result<()>) -> Result<f64> {
    let (started, mut number) = (Instant::now(), 0);
    while started.elapsed() < time {
        operation(number).await?;
        number += 1;
    }
    Ok(number as f64 / started.elapsed().as_secs_f64())
}

/// A board as a table.
struct Sqlite(Connection);

impl Sqlite {
    fn filled(players: u64) -> Result<Sqlite> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE TABLE board (player INTEGER PRIMARY KEY, score INTEGER NOT NULL, reached INTEGER NOT NULL);
             CREATE INDEX by_score ON board (score DESC, reached, player);
             BEGIN;",
        )?;
        let mut insert = connection.prepare("INSERT INTO board VALUES (?, ?, 0)")?;
        for player in 0..players {
            insert.execute((player as i64, score(player)))?;
        }
        drop(insert);
        connection.execute_batch("COMMIT")?;
        Ok(Sqlite(connection))
    }

    fn top(&self) -> Result<()> {
        let text = "SELECT player, score, reached FROM board ORDER BY score DESC, reached, player LIMIT 100";
        ensure!(self.rows(text, &[])? == TOP, "places are missing");
        Ok(())
    }

    fn rank(&self, player: u64) -> Result<()> {
        let mut count = self.0.prepare_cached(
            "SELECT COUNT(*) FROM board b, board me WHERE me.player = ?1 AND (b.score > me.score OR
             (b.score = me.score AND (b.reached, b.player) < (me.reached, me.player)))",
        )?;
        black_box(count.query_row([player as i64], |row| row.get::<_, i64>(0))?);
        Ok(())
    }

    /// The neighbours by two ranges of the index, and the rank.
    fn window(&self, player: u64) -> Result<()> {
        let mut me = self.0.prepare_cached("SELECT score, reached FROM board WHERE player = ?1")?;
        let (score, reached): (i64, i64) =
            me.query_row([player as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let place = [-score, reached, player as i64];
        let after = "SELECT player, score, reached FROM board WHERE score <= -?1 AND
                     (-score, reached, player) > (?1, ?2, ?3) ORDER BY score DESC, reached, player LIMIT 5";
        let before = "SELECT player, score, reached FROM board WHERE score >= -?1 AND
                      (-score, reached, player) < (?1, ?2, ?3) ORDER BY score, reached DESC, player DESC LIMIT 5";
        ensure!(self.rows(after, &place)? + self.rows(before, &place)? >= 5, "a window is too short");
        self.rank(player)
    }

    fn rows(&self, text: &str, place: &[i64]) -> Result<usize> {
        let mut select = self.0.prepare_cached(text)?;
        let mut rows = select.query(rusqlite::params_from_iter(place))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            black_box((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
            count += 1;
        }
        Ok(count)
    }

    fn add(&self, player: u64, at: i64) -> Result<()> {
        let text = "UPDATE board SET score = score + 1, reached = ?2 WHERE player = ?1 RETURNING score";
        let mut update = self.0.prepare_cached(text)?;
        black_box(update.query_row((player as i64, at), |row| row.get::<_, i64>(0))?);
        Ok(())
    }
}

/// On Redis, beside a plain sorted set on the same server by the same client.
pub(crate) fn redis(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let (players, time, peer) = (players(bench), bench.sample, bench.redis()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    say(&format!("{name}  filling both boards with {players} players"));
    let store = Store::new(runtime.block_on(RedisEngine::connect(peer.url()))?);
    let (scope, rebuilt) = runtime.block_on(filled(&store, players))?;
    let plain = format!("bench-board:{}:plain", scope.partition().0);
    peer.call_each(players, |player, pipe| {
        pipe.zadd(&plain, player, score(player)).ignore();
    })?;
    let line = runtime.block_on(connect(peer.url()))?;
    let pick = move |number| scattered(number) % players;

    let reads = |what: u8| {
        let (scope, line, plain) = (scope.clone(), line.clone(), plain.clone());
        let runtime = &runtime;
        move |is_ours: bool| {
            let (scope, mut line, plain) = (scope.clone(), line.clone(), plain.clone());
            runtime.block_on(p99(time, u64::MAX, async move |number| match (is_ours, what) {
                (true, 0) => our_top(&scope).await,
                (true, _) => our_rank(&scope, pick(number)).await,
                (false, 0) => plain_top(&mut line, &plain).await,
                (false, _) => plain_rank(&mut line, &plain, pick(number)).await,
            }))
        }
    };
    let (top_of, rank_of) = (reads(0), reads(1));
    let top = bench.take_turns(name, "µs p99, top 100", || top_of(true), || top_of(false))?;
    let rank = bench.take_turns(name, "µs p99, rank", || rank_of(true), || rank_of(false))?;
    let add = bench.take_turns(
        name,
        "adds/s",
        || runtime.block_on(adds(time, pick, Some(scope.clone()), line.clone(), plain.clone())),
        || runtime.block_on(adds(time, pick, None, line.clone(), plain.clone())),
    )?;
    let count = runtime.block_on(scope.read(|tx| board().count(tx)))?;
    ensure!(count == players, "{count} players of {players} are left");
    runtime.block_on(async {
        scope.transact(|tx| board().reset(tx)).await?;
        anyhow::Ok(store.close().await?)
    })?;
    let _: () = peer.call(redis::cmd("UNLINK").arg(&plain))?;
    let note = format!("{players} players; ours exact and checked; a rebuild puts {rebuilt:.0} players/s");
    let row = |what: &str, unit, (ours, peer_samples): &(Samples, Samples), beside: &str| {
        let row = Row::new(&format!("{name}-{what}"), unit, ours, peer_samples, Goal::None);
        row.beside(format!("{beside}, {}", peer.name())).note(note.clone())
    };
    Ok(vec![
        row("top-100", "µs p99", &top, "ZREVRANGE"),
        row("rank", "µs p99", &rank, "ZREVRANK"),
        row("add", "adds/s", &add, &format!("{TASKS} callers of ZINCRBY")),
    ])
}

async fn plain_top(line: &mut MultiplexedConnection, key: &str) -> Result<()> {
    let mut command = redis::cmd("ZREVRANGE");
    command.arg(key).arg(0).arg(TOP - 1).arg("WITHSCORES");
    let found: Vec<(u64, f64)> = command.query_async(line).await?;
    ensure!(found.len() == TOP, "places are missing");
    Ok(())
}

async fn plain_rank(line: &mut MultiplexedConnection, key: &str, player: u64) -> Result<()> {
    black_box(redis::cmd("ZREVRANK").arg(key).arg(player).query_async::<u64>(line).await?);
    Ok(())
}

/// Adds in a second by 64 callers: to our board, or to the plain one.
async fn adds(
    time: Duration,
    pick: impl Fn(u64) -> u64 + Copy + Send + 'static,
    ours: Option<Scope<Season>>,
    line: MultiplexedConnection,
    plain: String,
) -> Result<f64> {
    let (started, mut callers) = (Instant::now(), JoinSet::new());
    for caller in 0..TASKS as u64 {
        let (ours, mut line, plain) = (ours.clone(), line.clone(), plain.clone());
        callers.spawn(async move {
            let mut done = 0;
            while started.elapsed() < time {
                let (player, at) = (pick(caller << 40 | done), done as i64);
                match &ours {
                    Some(scope) => {
                        scope.transact(move |tx| board().add(tx, &player, 1, at)).await?;
                    }
                    None => {
                        let mut add = redis::cmd("ZINCRBY");
                        let _: f64 = add.arg(&plain).arg(1).arg(player).query_async(&mut line).await?;
                    }
                }
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(caller) = callers.join_next().await {
        done += caller.context("a caller panicked")??;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}
