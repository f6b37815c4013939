//! Leaderboards of hot state in history: what fights and recorded events lead to.

use crate::recorder::hit;
use crate::stores::{DAY_MS, NOW, World};
use emberkeep_games::darkages::archive::recorder::{HitRecord, Recorder, StatsDelta};
use emberkeep_games::darkages::boards::{Boards, Period};
use emberkeep_games::darkages::history::BoardCategory::{self, Damage, Kills, Playtime, Wins};
use emberkeep_games::darkages::{
    DamageRequest, DarkAges, EntityId, Fighter, LoginRequest, Point, SessionChange, ZoneId, history::HitType,
};
use emberkeep_history::outbox::Consumers;
use emberkeep_history::spool::SpoolOptions;
use emberkeep_hot::Store;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_schema::Timestamp;
use emberkeep_testkit::scratch;
use std::sync::Arc;
use uuid::Uuid;

/// Hot state whose clock stands where that of history does. History of a Cassandra is shared by the cases, so each has a
/// day of its own.
pub(crate) struct Tiers {
    pub(crate) game: DarkAges,
    boards: Boards,
    consumers: Consumers,
    clock: ManualClock,
}

impl Tiers {
    pub(crate) fn new(world: &World, days_ago: i64) -> Tiers {
        let clock = ManualClock::at(NOW - days_ago * DAY_MS);
        let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
        let store = Store::new(Arc::new(engine));
        let consumers = emberkeep_games::consumers(&store, world.archive.history()).unwrap();
        let game = DarkAges::new(store, "zone-1").unwrap();
        Tiers { boards: game.boards(), game, consumers: consumers.into_iter().collect(), clock }
    }

    async fn login(&self, id: i64, name: &str) -> EntityId {
        let request = LoginRequest::new(id, "client", ZoneId(1), Point::new(0.0, 0.0, 0.0));
        self.game.login(LoginRequest { player_name: name.into(), ..request }).await.unwrap();
        EntityId(id)
    }

    async fn hit(&self, attacker: EntityId, target: EntityId, amount: i32) {
        let (attacker, hit_type) = (Fighter::Player(attacker), HitType::Normal);
        let request = DamageRequest { attacker, target, amount, hit_type, ability: None };
        if self.game.damage(request).await.unwrap().killed {
            let risen = SessionChange { health: Some(100), ..SessionChange::default() };
            self.game.change(target, risen).await.unwrap();
        }
    }

    /// The logs to the boards, the boards to their outbox, and that to history.
    pub(crate) async fn drain(&self) {
        for _ in 0..3 {
            for drained in self.consumers.drain_once().await {
                assert_eq!(drained.unwrap().unwrap().dead_letters, 0);
            }
        }
    }

    async fn today(&self) -> Period {
        self.boards.today().await.unwrap()
    }
}

/// The rows of a day in history.
async fn day(world: &World, category: BoardCategory, period: Period) -> Vec<(i64, String, i64)> {
    let Period::Day(day) = period else { panic!("not a day") };
    let page = world.archive.daily_board(category, day, 1_000, None).await.unwrap();
    page.rows.into_iter().map(|row| (row.player_id, row.player_name, row.score)).collect()
}

fn row(player: i64, name: &str, score: i64) -> (i64, String, i64) {
    (player, name.to_owned(), score)
}

pub(crate) async fn boards_follow_the_fights(world: &World) {
    let tiers = Tiers::new(world, 20);
    tiers.drain().await;
    let (ann, bob) = (tiers.login(9_001, "Ann").await, tiers.login(9_002, "Bob").await);
    for _ in 0..4 {
        tiers.hit(ann, bob, 50).await;
    }
    tiers.hit(bob, ann, 30).await;
    tiers.drain().await;
    let today = tiers.today().await;
    assert_eq!(day(world, Kills, today).await, [row(9_001, "Ann", 2)]);
    let damage = day(world, Damage, today).await;
    assert_eq!(damage, [row(9_001, "Ann", 200), row(9_002, "Bob", 30)]);
    // A score that moves leaves no row behind, and the order changes.
    for _ in 0..3 {
        tiers.hit(bob, ann, 100).await;
    }
    tiers.drain().await;
    let damage = day(world, Damage, today).await;
    // What exceeds the health of the target does not count: 70, 100 and 100.
    assert_eq!(damage, [row(9_002, "Bob", 300), row(9_001, "Ann", 200)]);
    let best = world.archive.all_time_board(Damage).await.unwrap();
    assert_eq!(best[..2], [row(9_002, "Bob", 300), row(9_001, "Ann", 200)]);
    // The same score of both: the one that reached it first stands first in hot state.
    tiers.clock.advance(1_000);
    tiers.hit(ann, bob, 99).await;
    tiers.hit(ann, bob, 1).await;
    tiers.drain().await;
    let top: Vec<_> = tiers
        .boards
        .top(Damage, today, 5)
        .await
        .unwrap()
        .iter()
        .map(|row| (row.rank, row.player_id))
        .collect();
    assert_eq!(top, [(1, 9_002), (2, 9_001)]);
    // The next day begins a board of its own, and yesterday's stays.
    tiers.clock.advance(13 * 3_600_000);
    let (ann, bob) = (tiers.login(9_001, "Ann").await, tiers.login(9_002, "Bob").await);
    tiers.hit(ann, bob, 10).await;
    tiers.drain().await;
    let tomorrow = tiers.today().await;
    assert_ne!(tomorrow, today);
    assert_eq!(day(world, Damage, tomorrow).await, [row(9_001, "Ann", 10)]);
    assert_eq!(day(world, Damage, today).await.len(), 2);
    assert_eq!(tiers.boards.count(Damage, today).await.unwrap(), 2);
    let stats = world.archive.player_stats(9_001).await.unwrap().unwrap().sums;
    let all_time = tiers.boards.standing(Damage, Period::AllTime, 9_001).await.unwrap().unwrap();
    assert_eq!((all_time.score, all_time.player_name.as_str()), (stats.total_damage_dealt, "Ann"));
    tiers.clock.advance(48 * 3_600_000);
    assert_eq!(tiers.boards.count(Damage, today).await.unwrap(), 0, "it lived for two days");
    assert_eq!(day(world, Damage, today).await.len(), 2, "and is in history");
}

/// Hits of servers that compute damage themselves, and deltas of statistics.
pub(crate) async fn recorded_events_are_on_the_boards(world: &World) {
    let (tiers, folder) = (Tiers::new(world, 10), scratch());
    let now = tiers.game.scope().store().now().await.unwrap();
    tiers.drain().await;
    let recorder = Recorder::open(folder.path(), SpoolOptions::default()).unwrap();
    let hits: Vec<_> = (0..40)
        .map(|number| HitRecord {
            timestamp: now,
            attacker_id: 9_100 + number % 2,
            // A target and a zone that no other case reads.
            target_id: 9_102,
            zone_id: 9_100,
            attacker_name: Some(format!("Hero {}", number % 2)),
            ..hit(9_100_000 + number as u128, number % 10 == 0)
        })
        .collect();
    recorder.record_events(hits).await.unwrap();
    let delta = StatsDelta { wins: 3, playtime_ms: 90_000, ..StatsDelta::default() };
    recorder.record_stats(9_101, delta, Uuid::from_u128(9_200_000), Timestamp(now)).await.unwrap();
    // An old one counts for all time only: the board of its day is gone.
    let old = Timestamp(now - 5 * DAY_MS);
    recorder.record_stats(9_101, delta, Uuid::from_u128(9_200_001), old).await.unwrap();
    // Twice, as after a crash before the acknowledgement.
    for _ in 0..2 {
        let consumer =
            recorder.consumer(world.archive.history().clone()).with_reader(tiers.boards.fed_by_records());
        consumer.drain_once().await.unwrap();
    }
    tiers.drain().await;
    let today = tiers.today().await;
    assert_eq!(day(world, Kills, today).await, [row(9_100, "Hero 0", 4)]);
    assert_eq!(day(world, Damage, today).await, [row(9_100, "Hero 0", 200), row(9_101, "Hero 1", 200)]);
    assert_eq!(day(world, Wins, today).await, [row(9_101, "Hero 1", 3)]);
    assert_eq!(day(world, Playtime, today).await, [row(9_101, "Hero 1", 90_000)]);
    assert_eq!(day(world, Wins, Period::Day(old.day())).await, []);
    let wins = tiers.boards.standing(Wins, Period::AllTime, 9_101).await.unwrap().unwrap();
    assert_eq!(wins.score, 6);
}

/// A hot store that lost everything begins with the boards of history.
pub(crate) async fn boards_of_a_new_hot_store_come_from_history(world: &World) {
    let before = Tiers::new(world, 5);
    before.drain().await;
    let (ann, bob) = (before.login(9_301, "Ann").await, before.login(9_302, "Bob").await);
    before.hit(ann, bob, 40).await;
    before.hit(bob, ann, 20).await;
    before.drain().await;
    let after = Tiers::new(world, 5);
    after.drain().await;
    let today = after.today().await;
    for period in [today, Period::AllTime] {
        let row = after.boards.standing(Damage, period, 9_301).await.unwrap().unwrap();
        assert_eq!((row.score, row.player_name.as_str()), (40, "Ann"));
    }
    let (ann, bob) = (after.login(9_301, "Ann").await, after.login(9_302, "Bob").await);
    after.hit(ann, bob, 5).await;
    after.drain().await;
    assert_eq!(day(world, Damage, today).await, [row(9_301, "Ann", 45), row(9_302, "Bob", 20)]);
    let best = world.archive.all_time_board(Damage).await.unwrap();
    assert!(best.contains(&row(9_301, "Ann", 45)), "{best:?}");
    let stats = world.archive.player_stats(9_301).await.unwrap().unwrap().sums;
    assert_eq!(stats.total_damage_dealt, 45);
}
