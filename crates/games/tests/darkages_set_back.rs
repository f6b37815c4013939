//! Failovers that lose transactions: each partition is a server of its own here, and any of them is set back to an earlier
//! state while players are handed off. After the sweep each player exists exactly once, or is logged out and recorded.

#[allow(dead_code, unused_imports)]
mod darkages_cases;

use bytes::Bytes;
use darkages_cases::{City, HERE};
use emberkeep_games::darkages::{
    ARRIVAL, DarkAges, EntityId, Error, HandOff, HandOffRequest, LoginRequest, SESSION, Session,
    ZONE_PLAYERS, ZoneId,
};
use emberkeep_hot::command::{RawKey, Read, Reply};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::engine::{
    Cursor, Engine, FieldPage, MemberCursor, MemberPage, Page, Pending, Stats, TransactionRequest,
};
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::tx::Transaction;
use emberkeep_hot::{self as hot, Store};
use emberkeep_schema::KeyLayout;
use emberkeep_testkit::{Scratch, report, scratch};
use std::path::Path;
use std::sync::{Arc, Mutex};

const START: i64 = 1_700_000_000_000;
const PLAYERS: i64 = 6;
const ZONES: [i32; 6] = [1, 2, 11, 12, 21, 22];
/// Shards 0 to 3, and the directory.
const SERVERS: usize = 5;
const ROUNDS: u64 = 60;

/// A Cluster in memory: a server for each shard, and one for the directory of all players.
struct Servers {
    layout: KeyLayout,
    clock: ManualClock,
    running: Mutex<Vec<(Arc<Embedded>, Scratch)>>,
    /// What another caller does before the next transaction in a shard.
    before_next: Mutex<Option<Pending<'static, ()>>>,
}

impl Servers {
    fn start(clock: &ManualClock) -> Servers {
        let servers = Servers {
            layout: KeyLayout::cluster(),
            clock: clock.clone(),
            running: Mutex::default(),
            before_next: Mutex::default(),
        };
        for _ in 0..SERVERS {
            let folder = scratch();
            let engine = servers.open(folder.path());
            servers.running.lock().unwrap().push((engine, folder));
        }
        servers
    }

    fn open(&self, folder: &Path) -> Arc<Embedded> {
        let options =
            Embedded::builder().clock(Clock::Manual(self.clock.clone())).layout(self.layout.clone());
        Arc::new(options.data(folder).open().expect("a folder of a server can be opened"))
    }

    fn server(&self, number: usize) -> Arc<Embedded> {
        self.running.lock().unwrap()[number].0.clone()
    }

    /// The server of a partition: shards have small numbers, players have not.
    fn of(&self, partition: &[u8]) -> Arc<Embedded> {
        let number = std::str::from_utf8(partition).ok().and_then(|text| text.parse::<usize>().ok());
        self.server(number.filter(|number| *number < SERVERS - 1).unwrap_or(SERVERS - 1))
    }

    fn of_key(&self, key: &[u8]) -> Arc<Embedded> {
        let tag =
            key.split(|byte| *byte == b'{').nth(1).and_then(|rest| rest.split(|byte| *byte == b'}').next());
        self.of(tag.expect("a key of a Cluster names its partition"))
    }

    /// A copy of a server's state.
    fn copy(&self, number: usize) -> Scratch {
        let copy = scratch();
        copy_files(self.running.lock().unwrap()[number].1.path(), copy.path());
        copy
    }

    /// Replaces a server by one with an earlier state.
    async fn set_back(&self, number: usize, copy: Scratch) {
        let engine = self.open(copy.path());
        let former = std::mem::replace(&mut self.running.lock().unwrap()[number], (engine, copy));
        former.0.close().await.unwrap();
    }
}

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_files(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The engine of the whole Cluster.
struct Cluster(Arc<Servers>);

impl Engine for Cluster {
    fn name(&self) -> String {
        "servers that are set back".into()
    }

    fn key_layout(&self) -> &KeyLayout {
        &self.0.layout
    }

    fn run(&self, request: TransactionRequest) -> Pending<'_, hot::Result<Box<dyn Transaction>>> {
        let is_in_shard = request.partition.len() == 1;
        Box::pin(async move {
            let before = self.0.before_next.lock().unwrap().take_if(|_| is_in_shard);
            if let Some(before) = before {
                before.await;
            }
            self.0.of(&request.partition).run(request).await
        })
    }

    fn read_many(&self, reads: Vec<(RawKey, Read)>) -> Pending<'_, hot::Result<Vec<Reply>>> {
        Box::pin(async move {
            let mut replies = Vec::new();
            for read in reads {
                replies.extend(self.0.of_key(&read.0).read_many(vec![read]).await?);
            }
            Ok(replies)
        })
    }

    /// Only the directory is scanned.
    fn scan<'a>(
        &'a self,
        from: Option<Cursor>,
        pattern: &'a [u8],
        count: usize,
    ) -> Pending<'a, hot::Result<Page>> {
        let server = self.0.server(SERVERS - 1);
        Box::pin(async move { server.scan(from, pattern, count).await })
    }

    fn scan_members<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, hot::Result<MemberPage>> {
        let server = self.0.of_key(key);
        Box::pin(async move { server.scan_members(key, from, count).await })
    }

    fn scan_fields<'a>(
        &'a self,
        key: &'a RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'a, hot::Result<FieldPage>> {
        let server = self.0.of_key(key);
        Box::pin(async move { server.scan_fields(key, from, count).await })
    }

    fn subscribe(
        &self,
        channels: Vec<Bytes>,
        patterns: Vec<Bytes>,
    ) -> Pending<'_, hot::Result<Subscription>> {
        let server = self.0.server(0);
        Box::pin(async move { server.subscribe(channels, patterns).await })
    }

    fn now(&self) -> Pending<'_, hot::Result<i64>> {
        Box::pin(async { Ok(self.0.clock.now()) })
    }

    fn ready(&self) -> Pending<'_, hot::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn seed(&self) -> u64 {
        self.0.server(0).seed()
    }

    fn stats(&self) -> hot::Result<Stats> {
        self.0.server(0).stats()
    }

    fn close(&self) -> Pending<'_, hot::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

struct World {
    servers: Arc<Servers>,
    clock: ManualClock,
    city: City,
    random: Random,
}

impl World {
    fn new(seed: u64) -> World {
        let clock = ManualClock::at(START);
        let servers = Arc::new(Servers::start(&clock));
        let store = Store::new(Arc::new(Cluster(servers.clone())));
        let game = DarkAges::new(store, "zone-1").unwrap();
        let game = game.with_shards("1:1-9,2:10-19,3:20-29".parse().unwrap());
        let city = City { scope: game.scope(), game, first: 1_000_000 };
        World { servers, clock, city, random: Random(seed) }
    }

    fn entity(&self, number: i64) -> EntityId {
        EntityId(self.city.first + number)
    }

    async fn log_in(&self) {
        // As zone servers do: a zone that nobody enters or leaves is kept.
        for zone in ZONES.map(ZoneId) {
            self.city.game.heartbeat(zone).await.unwrap();
        }
        for number in 0..PLAYERS {
            let entity = self.entity(number);
            let zone = ZoneId(ZONES[number as usize]);
            match self.city.game.touch(entity).await {
                Ok(_) => {}
                Err(Error::NotLoggedIn { .. }) => {
                    self.city.game.login(LoginRequest::new(entity.0, "client", zone, HERE())).await.unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// What zone servers do. What the state of a player refuses is refused.
    async fn act(&mut self, times: u64) {
        for _ in 0..times {
            self.clock.advance(1 + self.random.next(2_000));
            match self.try_act().await {
                Ok(())
                | Err(
                    Error::InTransit { .. }
                    | Error::NotArrived { .. }
                    | Error::Replaced { .. }
                    | Error::NotLoggedIn { .. },
                ) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn try_act(&mut self) -> Result<(), Error> {
        let zone = ZoneId(ZONES[self.random.next(6) as usize]);
        let number = self.random.next(PLAYERS as u64) as i64;
        let entity = self.entity(number);
        let (choice, game) = (self.random.next(8), self.city.game.clone());
        match choice {
            0..5 => {
                let request = HandOffRequest { entity, zone, position: HERE() };
                let handed = game.hand_off(request).await?;
                if matches!(handed, HandOff::InTransit { .. }) && self.random.next(2) == 0 {
                    game.accept(entity, zone).await?;
                }
            }
            5 => {
                for passage in game.arrivals(zone).await? {
                    match self.random.next(4) {
                        0 => game.refuse(passage.entity(), zone).await?,
                        _ => drop(game.accept(passage.entity(), zone).await?),
                    }
                }
            }
            6 => drop(game.sweep_hand_offs(8).await?),
            _ => drop(game.close_expired(8).await?),
        }
        Ok(())
    }

    /// All sweeps pass, a minute apart.
    async fn sweep(&self) {
        for _ in 0..6 {
            self.clock.advance(61_000);
            let game = &self.city.game;
            let mut next = None;
            loop {
                let checked = game.check_directory(next).await.unwrap();
                assert_eq!(checked.failed, 0);
                next = checked.next;
                if next.is_none() {
                    break;
                }
            }
            assert_eq!(game.sweep_hand_offs(100).await.unwrap().failed, 0);
            assert_eq!(game.close_expired(100).await.unwrap().failed, 0);
        }
    }

    /// Where a player is: in one place, or in none.
    async fn find(&self, entity: EntityId) -> Option<Session> {
        let game = &self.city.game;
        let (mut sessions, mut arrivals, mut members) = (0, 0, 0);
        for scope in game.scopes() {
            sessions += usize::from(scope.exists(&SESSION.key(entity)).await.unwrap());
            arrivals += usize::from(scope.exists(&ARRIVAL.key(entity)).await.unwrap());
        }
        for zone in ZONES.map(ZoneId) {
            let is_member = game.scope_of(zone).sismember(&ZONE_PLAYERS.key(zone), &entity).await.unwrap();
            members += usize::from(is_member);
        }
        let session = game.session(entity).await.expect("it is not on its way for ever");
        let expected = usize::from(session.is_some());
        assert_eq!((sessions, arrivals, members), (expected, 0, expected), "{entity}");
        session
    }
}

/// Players are handed off, `servers` are set back to a state of some hand-offs ago, and the players go on.
async fn set_back(world: &mut World, servers: &[usize]) -> usize {
    world.log_in().await;
    let mut starts = Vec::new();
    for number in 0..PLAYERS {
        starts.push(world.city.game.session(world.entity(number)).await.unwrap().unwrap().login_time);
    }
    let before = world.random.next(10);
    world.act(before).await;
    let copies: Vec<Scratch> = servers.iter().map(|server| world.servers.copy(*server)).collect();
    let lost = 1 + world.random.next(10);
    world.act(lost).await;
    for (server, copy) in servers.iter().zip(copies) {
        world.servers.set_back(*server, copy).await;
    }
    let after = world.random.next(6);
    world.act(after).await;
    world.sweep().await;
    let mut logged_out = 0;
    for (number, start) in (0..PLAYERS).zip(starts) {
        let entity = world.entity(number);
        let ends = world.city.play_ends(entity.0).await;
        let recorded = ends.iter().filter(|end| end.play.login_time == start).count();
        match world.find(entity).await {
            Some(session) => {
                assert_eq!((session.login_time, recorded), (start, 0), "{entity} of {servers:?}")
            }
            None => {
                assert!(recorded > 0, "{entity} is lost without a trace: {servers:?}");
                logged_out += 1;
            }
        }
    }
    logged_out
}

/// Whatever one server forgets, the others know enough: no player is logged out.
#[tokio::test]
async fn a_server_that_is_set_back_loses_and_doubles_no_player() {
    let mut world = World::new(0x2545_F491_4F6C_DD1D);
    for round in 0..ROUNDS {
        let server = 1 + world.random.next(SERVERS as u64 - 1) as usize;
        assert_eq!(set_back(&mut world, &[server]).await, 0, "round {round}, server {server}");
    }
}

/// With several of them a player may be known to none, and is logged out.
#[tokio::test]
async fn servers_that_are_set_back_leave_each_player_once_or_logged_out_and_recorded() {
    let mut world = World::new(0x9E37_79B9_7F4A_7C15);
    let mut logged_out = 0;
    for _ in 0..ROUNDS {
        let servers: Vec<usize> = (1..SERVERS).filter(|_| world.random.next(2) == 0).collect();
        logged_out += set_back(&mut world, &servers).await;
    }
    report!(
        "{ROUNDS} times any servers were set back: {logged_out} of {PLAYERS} players each were logged out"
    );
}

/// The entry said that the player is in the shard of the target zone. Before the transaction another caller hands it off.
#[tokio::test]
async fn a_hand_off_behind_another_one_keeps_zones_in_their_shards() {
    let world = World::new(1);
    let (entity, game) = (world.entity(0), world.city.game.clone());
    game.login(LoginRequest::new(entity.0, "client", ZoneId(1), HERE())).await.unwrap();
    let (city, clock) = (world.city.clone(), world.clock.clone());
    let other = async move {
        clock.advance(1);
        city.hand_over(entity, ZoneId(11)).await;
    };
    *world.servers.before_next.lock().unwrap() = Some(Box::pin(other));
    let handed = game.hand_off(HandOffRequest { entity, zone: ZoneId(2), position: HERE() }).await;
    assert!(world.servers.before_next.lock().unwrap().is_none(), "the other one came before");
    assert!(matches!(handed, Ok(HandOff::InTransit { .. })), "{handed:?}");
    assert_eq!(game.accept(entity, ZoneId(2)).await.unwrap().zone_id, 2);
    assert_eq!(world.find(entity).await.map(|session| session.zone_id), Some(2));
}
