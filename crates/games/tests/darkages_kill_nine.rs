//! Fights whose process is killed: it fights, answers each hit, and its consumers bring events into history and onto the
//! boards. It is killed without warning at random points. In the end events = totals = boards = sessions, and all that
//! was answered is there.

use emberkeep_games::darkages::archive::{Archive, PageRequest, TimeRange};
use emberkeep_games::darkages::boards::{BOARDS_DRAINER, Period};
use emberkeep_games::darkages::history::{self, BoardCategory, HitType};
use emberkeep_games::darkages::{
    DRAINER, DamageRequest, DarkAges, EntityId, Fighter, LoginRequest, PLAY, Point, SessionChange, ZoneId,
};
use emberkeep_history::embedded::Options;
use emberkeep_history::outbox::Consumers;
use emberkeep_history::{Embedded as EmbeddedHistory, History};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::Embedded;
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{Name, Timestamp};
use emberkeep_testkit::report;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const FOLDER: &str = "EMBERKEEP_FIGHT_CHILD_FOLDER";
const REDIS: &str = "EMBERKEEP_FIGHT_CHILD_REDIS";
/// For each engine.
const KILLS_MAX: usize = 200;
/// Pairs of an attacker and a target.
const PAIRS: i64 = 3;
/// The child is killed long before.
const CHILD_TIME_MAX: Duration = Duration::from_secs(30);
/// What a test may take, on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(400);

async fn open(folder: &Path, redis: Option<&str>) -> (Store, History) {
    let store = match redis {
        Some(url) => Store::new(RedisEngine::connect(url).await.unwrap()),
        None => Store::new(Arc::new(Embedded::builder().data(folder.join("hot")).open().unwrap())),
    };
    let options = Options { free_bytes_min: 0, ..Options::default() };
    let history = EmbeddedHistory::open(folder.join("history"), history::schema(), options).unwrap();
    // The process before had the leases and is dead.
    let game = DarkAges::new(store.clone(), "zone-1").unwrap();
    for log in ["combat", "plays", "audit"] {
        game.scope().del(&DRAINER.key(Name::new(log).unwrap())).await.unwrap();
    }
    game.boards().scope().del(&BOARDS_DRAINER.key()).await.unwrap();
    (store, History::new(Arc::new(history)))
}

fn consumers(store: &Store, history: &History) -> Consumers {
    emberkeep_games::consumers(store, history).unwrap().into_iter().collect()
}

async fn login(game: &DarkAges, id: i64) -> EntityId {
    let here = Point::new(1.0, 2.0, 3.0);
    game.login(LoginRequest::new(id, "client", ZoneId(1), here)).await.unwrap();
    EntityId(id)
}

/// The process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (store, history) = open(Path::new(&folder), std::env::var(REDIS).ok().as_deref()).await;
    let game = DarkAges::new(store.clone(), "zone-1").unwrap();
    let running = consumers(&store, &history);
    tokio::spawn(async move { running.run(std::future::pending()).await });
    let fight = |pair: i64| {
        let game = game.clone();
        tokio::spawn(async move {
            let (attacker, target) = (login(&game, pair).await, login(&game, pair + PAIRS).await);
            let begun = Instant::now();
            while begun.elapsed() < CHILD_TIME_MAX {
                let (attacker, hit_type) = (Fighter::Player(attacker), HitType::Normal);
                let request = DamageRequest { attacker, target, amount: 9, hit_type, ability: None };
                let damage = game.damage(request).await.unwrap();
                writeln!(std::io::stdout(), "answered {}", damage.actual).unwrap();
                if damage.killed {
                    let risen = SessionChange { health: Some(100), ..SessionChange::default() };
                    game.change(target, risen).await.unwrap();
                }
            }
        })
    };
    for task in (1..=PAIRS).map(fight).collect::<Vec<_>>() {
        let _ = task.await;
    }
}

fn random(below: u128) -> usize {
    (Uuid::new_v4().as_u128() % below) as usize
}

/// Starts a child, kills it after some answers and a part of a moment. Returns the damage that it answered.
fn kill_one(folder: &Path, redis: Option<&str>) -> i64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(FOLDER, folder);
    if let Some(url) = redis {
        command.env(REDIS, url);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut answers = lines.filter_map(|line| line.split_once("answered ")?.1.trim().parse::<i64>().ok());
    // One in ten dies while it starts.
    let wanted = if random(10) == 0 { 0 } else { 1 + random(150) };
    let before: i64 = answers.by_ref().take(wanted).sum();
    std::thread::sleep(Duration::from_micros(random(8_000) as u64));
    child.kill().unwrap();
    child.wait().unwrap();
    // Those that were in the pipe when it was killed.
    before + answers.sum::<i64>()
}

/// What history has of the events of an attacker: damage and kills.
async fn events_of(archive: &Archive, attacker: i64, range: TimeRange) -> (i64, i64) {
    let (mut damage, mut after) = (0, None);
    loop {
        let request = PageRequest { rows_max: 1_000, after: after.take(), ..PageRequest::default() };
        let page = archive.combat_events_by_attacker(attacker, range, request).await.unwrap();
        damage += page.rows.iter().map(|event| i64::from(event.damage)).sum::<i64>();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut kills = 0;
    loop {
        let request = PageRequest { rows_max: 1_000, after: after.take(), ..PageRequest::default() };
        let page = archive.kills(range, request).await.unwrap();
        kills += page.rows.iter().filter(|kill| kill.attacker_id == attacker).count() as i64;
        after = page.next;
        if after.is_none() {
            return (damage, kills);
        }
    }
}

/// What the play sessions of a player have, those that ended and the living one.
async fn sessions_of(game: &DarkAges, archive: &Archive, player: i64) -> (i64, i64) {
    let living = game.scope().get(&PLAY.key(EntityId(player))).await.unwrap();
    let (mut damage, mut kills) = living.map_or((0, 0), |play| (play.damage_dealt, i64::from(play.kills)));
    let mut after = None;
    loop {
        let request = PageRequest { rows_max: 1_000, after: after.take(), ..PageRequest::default() };
        let page = archive.play_sessions(player, None, request).await.unwrap();
        damage += page.rows.iter().map(|session| session.damage_dealt).sum::<i64>();
        kills += page.rows.iter().map(|session| i64::from(session.kills)).sum::<i64>();
        after = page.next;
        if after.is_none() {
            return (damage, kills);
        }
    }
}

async fn kill_many(redis: Option<&str>) {
    let folder = emberkeep_testkit::scratch();
    let (begun, mut answered, mut with_answers) = (Instant::now(), 0, 0);
    for _ in 0..KILLS_MAX {
        let answers = kill_one(folder.path(), redis);
        answered += answers;
        with_answers += usize::from(answers > 0);
        assert!(begun.elapsed() < TIME_MAX, "{KILLS_MAX} kills take too long");
    }
    let (store, history) = open(folder.path(), redis).await;
    let game = DarkAges::new(store.clone(), "zone-1").unwrap();
    for _ in 0..3 {
        for drained in consumers(&store, &history).drain_once().await {
            assert_eq!(drained.unwrap().expect("no other consumer has the lease").dead_letters, 0);
        }
    }
    let (archive, boards) = (Archive::new(history.clone()), game.boards());
    let Period::Day(today) = boards.today().await.unwrap() else { panic!("not a day") };
    let now = store.now().await.unwrap();
    let range = TimeRange::new(Timestamp(now - 3_600_000), Timestamp(now + 3_600_000)).unwrap();
    let (mut all_damage, mut all_kills) = (0, 0);
    for attacker in 1..=PAIRS {
        let events = events_of(&archive, attacker, range).await;
        let stats = archive.player_stats(attacker).await.unwrap().unwrap().sums;
        assert_eq!((stats.total_damage_dealt, stats.total_kills), events, "totals of {attacker}");
        assert_eq!(sessions_of(&game, &archive, attacker).await, events, "sessions of {attacker}");
        let mut scores = Vec::new();
        for category in [BoardCategory::Damage, BoardCategory::Kills] {
            let row = boards.standing(category, Period::AllTime, attacker).await.unwrap().unwrap();
            // A run around midnight is on two boards.
            let mut of_days = 0;
            for day in [today, emberkeep_schema::Day::from_number(today.number() - 1).unwrap()] {
                let row = boards.standing(category, Period::Day(day), attacker).await.unwrap();
                of_days += row.map_or(0, |row| row.score);
            }
            assert_eq!(row.score, of_days, "{category:?} of {attacker} by day");
            let best = archive.all_time_board(category).await.unwrap();
            let stored = best.iter().find(|one| one.0 == attacker).unwrap();
            assert_eq!(stored.2, row.score, "{category:?} of {attacker} in history");
            scores.push(row.score);
        }
        assert_eq!((scores[0], scores[1]), events, "boards of {attacker}");
        (all_damage, all_kills) = (all_damage + events.0, all_kills + events.1);
    }
    report!(
        "fights: {KILLS_MAX} kills -9, damage {answered} answered, {all_damage} in events, totals, boards and sessions, {all_kills} kills, {:?}",
        begun.elapsed()
    );
    let unanswered = all_damage - answered;
    let most = PAIRS * 9 * KILLS_MAX as i64;
    assert!((0..=most).contains(&unanswered), "{unanswered} of damage were committed and not answered");
    assert!(with_answers > KILLS_MAX / 2, "most children must have answered something");
    history.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn boards_totals_and_events_agree_after_kills_in_process() {
    kill_many(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn boards_totals_and_events_agree_after_kills_on_redis() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    kill_many(Some(&server.fresh_db())).await;
}
