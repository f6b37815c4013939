//! Zone servers and stores that are killed: a process hands players off between zones of three shards and is killed without
//! warning at random points of its life, or its store is. In the end each player exists exactly once: in process with a
//! journal, with all shards in one partition and in one each; on Redis; on a real Cluster.
//!
//! Half of the players are only handed off: they must be there in the end, with the session of the beginning. The others also log in
//! and out, are kicked and hit, and lose their session as by an expiry: each of their sessions is over once or is the one that
//! lives.

use emberkeep_games::darkages::history::HitType;
use emberkeep_games::darkages::{
    ADMITTED, ARRIVAL, DIRECTORY, DamageRequest, DarkAges, Entity, EntityId, Error, Fighter, HandOff,
    HandOffRequest, LoginPolicy, LoginRequest, PLAY, PLAYS_LOG, Point, SESSION, SESSIONS_DUE, Shard,
    ZONE_PLAYERS, ZoneId,
};
use emberkeep_hot::embedded::Embedded;
use emberkeep_hot::{Scope, Store, Tx};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::KeyLayout;
use emberkeep_testkit::{RedisCluster, RedisServer, report, require, scratch};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const URL: &str = "EMBERKEEP_ZONE_SERVER_URL";
const SEED: &str = "EMBERKEEP_ZONE_SERVER_SEED";
const KILLS: u64 = 100;
const PLAYERS: i64 = 8;
/// The first of them are only handed off.
const HANDED_OFF: i64 = 4;
const ZONES: [i32; 6] = [1, 2, 11, 12, 21, 22];
/// What a test may take, on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(300);

/// `embedded:DIR`, `partitions:DIR` (the key layout of a Cluster) or the URL of a server.
async fn open(url: &str) -> Result<DarkAges, Box<dyn std::error::Error>> {
    let store = match url.split_once(':') {
        Some(("embedded", folder)) => Store::new(Arc::new(Embedded::builder().data(folder).open()?)),
        Some(("partitions", folder)) => {
            let options = Embedded::builder().data(folder).layout(KeyLayout::cluster());
            Store::new(Arc::new(options.open()?))
        }
        _ => Store::new(RedisEngine::connect(url).await?),
    };
    Ok(DarkAges::new(store, "zone-1")?.with_shards("1:1-9,2:10-19,3:20-29".parse()?))
}

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// One thing that a zone server does. What the state of a player refuses is refused.
async fn act(game: &DarkAges, random: &mut Random) -> Result<u32, Error> {
    let zone = ZoneId(ZONES[random.next(6) as usize]);
    match random.next(12) {
        0..5 => {
            let entity = EntityId(1 + random.next(PLAYERS as u64) as i64);
            let position = Point::new(1.0, 2.0, 3.0);
            match game.hand_off(HandOffRequest { entity, zone, position }).await? {
                HandOff::InTransit { .. } if random.next(2) == 0 => {
                    game.accept(entity, zone).await.map(|_| 1)
                }
                HandOff::InTransit { .. } => Ok(0),
                HandOff::Done(_) => Ok(1),
            }
        }
        5..7 => {
            for passage in game.arrivals(zone).await? {
                if random.next(4) == 0 {
                    game.refuse(passage.entity(), zone).await?;
                } else {
                    game.accept(passage.entity(), zone).await?;
                }
            }
            Ok(0)
        }
        7 => game.sweep_hand_offs(8).await.map(|_| 0),
        8 => {
            check_all(game).await?;
            game.close_expired(8).await.map(|_| 0)
        }
        _ => come_and_go(game, random, zone).await.map(|()| 0),
    }
}

/// What a player does who is not only handed off.
async fn come_and_go(game: &DarkAges, random: &mut Random, zone: ZoneId) -> Result<(), Error> {
    let number = HANDED_OFF + 1 + random.next((PLAYERS - HANDED_OFF) as u64) as i64;
    let entity = EntityId(number);
    match random.next(6) {
        0..2 => {
            let request = LoginRequest::new(number, "client", zone, Point::new(0.0, 0.0, 0.0));
            let existing = if random.next(2) == 0 { LoginPolicy::Replace } else { LoginPolicy::Refuse };
            game.login(LoginRequest { existing, ..request }).await.map(drop)
        }
        2 => game.logout(entity).await,
        3 => game.kick(entity, "idles".into()).await,
        4 => {
            let hit_type = HitType::Normal;
            let attacker = Fighter::Player(EntityId(1 + random.next(HANDED_OFF as u64) as i64));
            let hit = DamageRequest { attacker, target: entity, amount: 10, hit_type, ability: None };
            game.damage(hit).await.map(drop)
        }
        _ => {
            // As by an expiry.
            for scope in game.scopes() {
                scope.del(&SESSION.key(entity)).await?;
            }
            Ok(())
        }
    }
}

/// Makes the sweep compare every session now.
async fn check_all(game: &DarkAges) -> Result<(), Error> {
    for scope in game.scopes() {
        let due = |tx: &mut Tx<'_, Shard>| {
            for entity in (1..=PLAYERS).map(EntityId) {
                if tx.exists(&SESSION.key(entity))? || tx.exists(&PLAY.key(entity))? {
                    tx.zadd(&SESSIONS_DUE.key(), &entity, 1.0)?;
                }
            }
            Ok::<_, emberkeep_hot::Error>(())
        };
        scope.transact(due).await?;
    }
    Ok(())
}

/// Not a test of its own: the process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zone_server() {
    let Ok(url) = std::env::var(URL) else { return };
    let mut random = Random(std::env::var(SEED).unwrap().parse().unwrap());
    let game = open(&url).await.expect("the store opens");
    let mut out = std::io::stdout();
    // Bounded, if no test kills it.
    let started = Instant::now();
    while started.elapsed() < TIME_MAX {
        let mut moved = 0;
        for _ in 0..4 {
            match act(&game, &mut random).await {
                Ok(done) => moved += done,
                Err(Error::Store(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(
                    Error::InTransit { .. }
                    | Error::NotArrived { .. }
                    | Error::Replaced { .. }
                    | Error::NotLoggedIn { .. }
                    | Error::AlreadyLoggedIn { .. }
                    | Error::OtherShard { .. }
                    | Error::Dead { .. },
                ) => {}
                Err(error) => panic!("{error}"),
            }
        }
        if writeln!(out, "moved {moved}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn start(url: &str, seed: u64) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "zone_server", "--nocapture", "--test-threads=1"])
        .env(URL, url)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the zone server starts")
}

/// Waits for some rounds of work, and a part of the next one. Returns the hand-offs that it said were done.
fn work(child: &mut Child, lines: &mut impl Iterator<Item = String>, random: &mut Random) -> u64 {
    // One in ten dies while it starts.
    let rounds = if random.next(10) == 0 { 0 } else { 1 + random.next(6) as usize };
    let moved =
        |line: String| line.trim().rsplit("moved ").next().and_then(|count| count.parse::<u64>().ok());
    let done = lines.by_ref().filter(|line| line.contains("moved")).take(rounds).filter_map(moved).sum();
    std::thread::sleep(Duration::from_micros(random.next(6_000)));
    assert!(child.try_wait().expect("a child").is_none(), "the zone server ended by itself");
    done
}

fn lines_of(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok)
}

async fn set_up(game: &DarkAges) -> Vec<i64> {
    let mut starts = Vec::new();
    for player in 1..=PLAYERS {
        let zone = ZoneId(ZONES[player as usize % 6]);
        let request = LoginRequest::new(player, "client", zone, Point::new(0.0, 0.0, 0.0));
        starts.push(game.login(request).await.expect("a login").login_time);
    }
    starts
}

/// Each player exists once: as a session, or on its way. Then brings all home and looks at everything that there is.
async fn check(game: &DarkAges, starts: &[i64]) {
    for _ in 0..4 {
        game.sweep_hand_offs(100).await.expect("a sweep");
        check_all(game).await.expect("a store");
        game.close_expired(100).await.expect("a sweep");
        for zone in ZONES.map(ZoneId) {
            for passage in game.arrivals(zone).await.expect("arrivals") {
                let accepted = game.accept(passage.entity(), zone).await;
                // A logout or login came before.
                let is_replaced = matches!(accepted, Err(Error::Replaced { .. }));
                assert!(accepted.is_ok() || is_replaced && passage.entity().0 > HANDED_OFF, "{accepted:?}");
            }
        }
    }
    let ends = ends(game).await;
    for (player, start) in (1..).zip(starts) {
        let entity = EntityId(player);
        let (mut sessions, mut arrivals, mut members) = (0, 0, 0);
        for scope in game.scopes() {
            sessions += usize::from(scope.exists(&SESSION.key(entity)).await.unwrap());
            arrivals += usize::from(scope.exists(&ARRIVAL.key(entity)).await.unwrap());
        }
        for zone in ZONES.map(ZoneId) {
            let is_member = game.scope_of(zone).sismember(&ZONE_PLAYERS.key(zone), &entity).await.unwrap();
            members += usize::from(is_member);
        }
        let entry = game.scope().store().scope(Entity(entity)).get(&DIRECTORY.key()).await.unwrap();
        let session = match game.session(entity).await {
            // A login that was only begun, and whose entry a hand-off had taken: the check of the directory ends it a minute
            // later. Its session did not begin where it was to.
            Err(Error::InTransit { .. }) if player > HANDED_OFF => {
                let entry = entry.as_ref().expect("it has an entry");
                let is_from = |scope: &Scope<Shard>| entry.from == Some(scope.partition().0.to_string());
                let from = game.scopes().into_iter().find(is_from).expect("it leaves a shard");
                let admitted = from.get(&ADMITTED.key(entity)).await.unwrap().unwrap_or(0);
                assert!(admitted < entry.since_ms * 1_000, "{entity} was lost: {admitted}, {entry:?}");
                None
            }
            session => session.expect("it is found"),
        };
        let expected = usize::from(session.is_some());
        assert_eq!((sessions, arrivals, members), (expected, 0, expected), "{entity}, {entry:?}");
        let ended = ends.iter().filter(|end| end.0 == player);
        if player <= HANDED_OFF {
            assert_eq!(session.map(|session| session.login_time), Some(*start), "{entity}, {entry:?}");
            assert_eq!(ended.count(), 0, "the session of {entity} goes on");
        } else {
            let mut all: Vec<i64> =
                ended.map(|end| end.1).chain(session.map(|session| session.login_time)).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "each session of {entity} is over once, or lives");
        }
    }
}

/// Player and start of each play session that has ended.
async fn ends(game: &DarkAges) -> Vec<(i64, i64)> {
    let mut ends = Vec::new();
    for scope in game.scopes() {
        let mut after = 0;
        loop {
            let page = scope.log_after(&PLAYS_LOG.key(), after, 200).await.expect("a log");
            let Some(last) = page.entries.last() else { break };
            after = last.sequence;
            let events = page.entries.into_iter().map(|entry| entry.event.expect("a play session").play);
            ends.extend(events.map(|play| (play.player_id, play.login_time)));
        }
    }
    ends
}

/// Kills zone servers. In process the store dies with them and is opened again.
async fn kill_zone_servers(name: &str, url: &str, mut random: Random) {
    let (started, mut moved, mut working) = (Instant::now(), 0, 0);
    let game = open(url).await.expect("the store opens");
    let starts = set_up(&game).await;
    game.scope().store().close().await.expect("closes");
    drop(game);
    for kill in 0..KILLS {
        let mut child = start(url, random.next(1 << 30));
        let mut lines = lines_of(&mut child);
        let done = work(&mut child, &mut lines, &mut random);
        child.kill().expect("it was still there");
        child.wait().expect("it is gone");
        (moved, working) = (moved + done, working + u64::from(done > 0));
        if kill % 5 == 4 {
            let game = open(url).await.expect("what a kill leaves behind can be opened");
            check(&game, &starts).await;
            game.scope().store().close().await.expect("closes");
        }
        assert!(started.elapsed() < TIME_MAX, "{KILLS} kills take too long");
    }
    report!("kill -9 of zone servers, {name}: {KILLS} kills, {moved} hand-offs, {:.1?}", started.elapsed());
    assert!(working > KILLS / 2, "most of them must have done something before they were killed");
}

#[tokio::test]
async fn killed_zone_servers_lose_and_double_no_player_in_process() {
    let folder = scratch();
    let url = format!("embedded:{}", folder.path().display());
    kill_zone_servers("in process", &url, Random(0x2545_F491_4F6C_DD1D)).await;
}

#[tokio::test]
async fn killed_zone_servers_lose_and_double_no_player_between_partitions_in_process() {
    let folder = scratch();
    let url = format!("partitions:{}", folder.path().display());
    kill_zone_servers("in process, a partition for each shard", &url, Random(0x9E37_79B9_7F4A_7C15)).await;
}

#[tokio::test]
async fn killed_zone_servers_lose_and_double_no_player_on_redis() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    kill_zone_servers("redis", &server.url(), Random(0x1234_5678_9ABC_DEF1)).await;
}

#[tokio::test]
async fn killed_zone_servers_lose_and_double_no_player_on_a_cluster() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 0) else { return };
    kill_zone_servers("cluster", &cluster.url(), Random(0x0F1E_2D3C_4B5A_6978)).await;
}

/// Kills the servers of a store, which keep what they answered in an append-only file, below two zone servers that go on.
async fn kill_stores(name: &str, url: &str, servers: &[RedisServer], ready: impl Fn(), mut random: Random) {
    let (started, mut moved) = (Instant::now(), 0);
    let starts = set_up(&open(url).await.expect("the store opens")).await;
    let mut children = [start(url, random.next(1 << 30)), start(url, random.next(1 << 30))];
    let mut lines: Vec<_> = children.iter_mut().map(lines_of).collect();
    for kill in 1..=KILLS {
        let index = random.next(2) as usize;
        moved += work(&mut children[index], &mut lines[index], &mut random);
        let server = &servers[random.next(servers.len() as u64) as usize];
        server.restart().expect("it starts again");
        // A Cluster needs seconds to be well again: most kills meet one that is not.
        if kill % 10 == 0 {
            ready();
        }
        assert!(started.elapsed() < TIME_MAX, "{KILLS} kills take too long");
    }
    for child in &mut children {
        child.kill().expect("it was still there");
        child.wait().expect("it is gone");
    }
    check(&open(url).await.expect("the store opens"), &starts).await;
    report!(
        "kill -9 of the store below zone servers, {name}: {KILLS} kills, {moved} hand-offs, {:.1?}",
        started.elapsed()
    );
    assert!(moved > KILLS / 2, "they must have done something between the kills");
}

#[tokio::test]
async fn a_killed_redis_loses_and_doubles_no_player() {
    let options = RedisServer::options().appendonly().set("appendfsync", "always");
    let Some(server) = require(options.start()) else { return };
    let (url, servers) = (server.url(), std::slice::from_ref(&server));
    kill_stores("redis", &url, servers, || (), Random(0x0BAD_CAFE_0BAD_CAFE)).await;
}

#[tokio::test]
async fn killed_servers_of_a_cluster_lose_and_double_no_player() {
    let options = RedisServer::options().appendonly().set("appendfsync", "always");
    let Some(cluster) = require(RedisCluster::start_with(&options, 3, 0)) else { return };
    let ready = || cluster.wait_ready().expect("all servers are back");
    kill_stores("cluster", &cluster.url(), cluster.nodes(), ready, Random(0x5EED_5EED_1357_9BDF)).await;
}
