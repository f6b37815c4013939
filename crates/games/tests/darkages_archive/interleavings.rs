//! Renames and registrations that meet: calls of several tasks in any order, answers that are lost, processes that die, and
//! the take-over after 60 seconds. At every moment a name belongs to one player, and a player is found by the name.

use crate::gate::{Stage, Verdict};
use crate::registrations::player;
use crate::stores::World;
use emberkeep_games::darkages::archive::profiles::Login;
use emberkeep_games::darkages::archive::{Archive, Error, Result};
use emberkeep_games::darkages::history::{ClaimKind, PlayerProfile};
use emberkeep_schema::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

const PROFILE: &str = "write_if player_profiles";
const CLAIM: &str = "write_if ember_profile_claims";
const TAKEN: Error = Error::Taken { kind: ClaimKind::Username };

type Outcome = Arc<Mutex<Option<Result<PlayerProfile>>>>;

async fn rename(stage: &mut Stage, player_id: i64, name: &'static str) -> (usize, Outcome) {
    let outcome = Outcome::default();
    let into = outcome.clone();
    let run = move |archive: Archive| async move {
        let renamed = archive.rename(player_id, name).await;
        *into.lock().unwrap() = Some(renamed);
    };
    (stage.start(run).await, outcome)
}

fn taken(outcome: &Outcome) -> Result<PlayerProfile> {
    outcome.lock().unwrap().take().expect("it ended")
}

async fn name_of(world: &World, player_id: i64) -> String {
    let profile = world.archive.profile(player_id).await.unwrap().expect("the player is registered");
    let found = world.archive.profile_by_username(&profile.username).await.unwrap();
    assert_eq!(found.map(|found| found.player_id), Some(player_id), "found by {}", profile.username);
    profile.username
}

/// The profile was written, the answer is lost, and another call changes the row before it is read again.
#[tokio::test]
async fn a_rename_whose_answer_is_lost_keeps_its_claim() {
    let world = World::embedded();
    world.archive.register(player(1, "Ann")).await.unwrap();
    let mut stage = Stage::of(&world);
    let (task, outcome) = rename(&mut stage, 1, "Bea").await;
    stage.run_to(task, PROFILE, 1).await;
    stage.step(task, Verdict::LoseAnswer).await;
    let login = Login { at: Timestamp(world.clock.now()), ip: None, client_version: "1.0".into() };
    world.archive.record_login(1, login).await.unwrap();
    stage.finish(task).await;
    assert_eq!(taken(&outcome).unwrap().username, "Bea");
    assert_eq!(world.archive.register(player(2, "bea")).await.unwrap_err(), TAKEN);
    assert_eq!(name_of(&world, 1).await, "Bea");
    world.archive.register(player(3, "Ann")).await.unwrap();
}

/// As before, but the profile cannot be read either: the claim is kept, and a repeated call ends the rename.
#[tokio::test]
async fn a_rename_that_cannot_be_found_out_is_ended_by_the_next() {
    let world = World::embedded();
    world.archive.register(player(1, "Ann")).await.unwrap();
    let mut stage = Stage::of(&world);
    let (task, outcome) = rename(&mut stage, 1, "Bea").await;
    stage.run_to(task, PROFILE, 1).await;
    stage.step(task, Verdict::LoseAnswer).await;
    while stage.waits_for(task).is_some() {
        stage.step(task, Verdict::Fail).await;
    }
    assert!(matches!(taken(&outcome), Err(Error::History(_))));
    assert_eq!(name_of(&world, 1).await, "Ann", "until it is confirmed");
    assert_eq!(world.archive.register(player(2, "Bea")).await.unwrap_err(), TAKEN);
    assert_eq!(world.archive.rename(1, "Bea").await.unwrap().username, "Bea");
    assert_eq!(name_of(&world, 1).await, "Bea");
}

/// Confirming fails without an effect. The repeated call confirms, it does not only report success.
#[tokio::test]
async fn a_repeated_rename_confirms() {
    let world = World::embedded();
    world.archive.register(player(1, "Ann")).await.unwrap();
    let mut stage = Stage::of(&world);
    let (task, outcome) = rename(&mut stage, 1, "Bea").await;
    stage.run_to(task, CLAIM, 2).await;
    stage.step(task, Verdict::Fail).await;
    stage.finish(task).await;
    assert!(matches!(taken(&outcome), Err(Error::History(_))));
    assert_eq!(name_of(&world, 1).await, "Ann");
    assert_eq!(world.archive.rename(1, "BEA").await.unwrap().username, "BEA");
    assert_eq!(name_of(&world, 1).await, "BEA");
    world.clock.advance(61_000);
    assert_eq!(world.archive.register(player(2, "bea")).await.unwrap_err(), TAKEN);
    world.archive.register(player(3, "Ann")).await.unwrap();
}

/// A rename stops after it confirmed; its player takes the old name again meanwhile.
#[tokio::test]
async fn a_slow_rename_releases_only_the_claim_that_it_found() {
    let world = World::embedded();
    world.archive.register(player(1, "Ann")).await.unwrap();
    let mut stage = Stage::of(&world);
    let (task, _) = rename(&mut stage, 1, "Bea").await;
    // Claim, confirm, release.
    stage.run_to(task, CLAIM, 3).await;
    world.archive.rename(1, "Ann").await.unwrap();
    stage.finish(task).await;
    assert_eq!(name_of(&world, 1).await, "Ann");
    assert_eq!(world.archive.register(player(2, "ann")).await.unwrap_err(), TAKEN);
    world.archive.register(player(3, "Bea")).await.unwrap();
}

/// Between profile and confirmation the old name is the player's still, however old its claim is.
#[tokio::test]
async fn the_old_name_is_not_free_before_the_new_one_is_confirmed() {
    let world = World::embedded();
    world.archive.register(player(1, "Ann")).await.unwrap();
    world.clock.advance(3_600_000);
    let mut stage = Stage::of(&world);
    let (task, _) = rename(&mut stage, 1, "Bea").await;
    stage.run_to(task, CLAIM, 2).await;
    assert_eq!(world.archive.register(player(2, "Ann")).await.unwrap_err(), TAKEN);
    stage.crash(task);
    assert_eq!(name_of(&world, 1).await, "Ann");
    world.clock.advance(61_000);
    assert_eq!(world.archive.register(player(3, "Bea")).await.unwrap_err(), TAKEN);
    assert_eq!(name_of(&world, 1).await, "Bea");
    world.archive.register(player(4, "Ann")).await.unwrap();
}

/// A rename stops for longer than 60 seconds before it writes the profile, and loses the new name.
#[tokio::test]
async fn a_rename_that_lost_its_name_never_shows_it() {
    for dies in [false, true] {
        let world = World::embedded();
        world.archive.register(player(1, "Ann")).await.unwrap();
        let mut stage = Stage::of(&world);
        let (task, outcome) = rename(&mut stage, 1, "Bea").await;
        stage.run_to(task, PROFILE, 1).await;
        world.clock.advance(61_000);
        world.archive.register(player(2, "Bea")).await.unwrap();
        // The profile has a name that is another player's.
        stage.step(task, Verdict::Go).await;
        assert_eq!((name_of(&world, 1).await, name_of(&world, 2).await), ("Ann".into(), "Bea".into()));
        assert_eq!(world.archive.register(player(3, "Ann")).await.unwrap_err(), TAKEN);
        if dies {
            stage.crash(task);
        } else {
            stage.finish(task).await;
            assert!(matches!(taken(&outcome), Err(Error::Conflict { player_id: 1, .. })));
        }
        assert_eq!((name_of(&world, 1).await, name_of(&world, 2).await), ("Ann".into(), "Bea".into()));
        assert_eq!(world.archive.rename(1, "Cleo").await.unwrap().username, "Cleo");
        world.archive.register(player(4, "Ann")).await.unwrap();
    }
}

#[derive(Debug, Clone, Copy)]
enum Call {
    /// One of two players takes one of three names.
    Rename(i64, usize),
    /// A third player registers by one of them.
    Register(usize),
    Login(i64),
}

#[derive(Debug, Clone, Copy)]
enum Turn {
    Call(usize, Verdict),
    Crash(usize),
    Minute,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        6 => (0_i64..2, 0_usize..3).prop_map(|(player, name)| Call::Rename(player, name)),
        3 => (0_usize..3).prop_map(Call::Register),
        1 => (0_i64..2).prop_map(Call::Login),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let verdict =
        prop_oneof![20 => Just(Verdict::Go), 2 => Just(Verdict::LoseAnswer), 1 => Just(Verdict::Fail)];
    prop_oneof![
        24 => (0_usize..3, verdict).prop_map(|(task, verdict)| Turn::Call(task, verdict)),
        1 => (0_usize..3).prop_map(Turn::Crash),
        1 => Just(Turn::Minute),
    ]
}

/// The players and names of one schedule: others than those of all schedules before, on the same store.
#[derive(Clone)]
struct Cast {
    first: i64,
}

static NEXT: AtomicI64 = AtomicI64::new(0);

impl Cast {
    fn new() -> Cast {
        Cast { first: NEXT.fetch_add(100, Ordering::Relaxed) }
    }

    fn name(&self, name: usize) -> String {
        format!("{} {}", ["Ann", "Bea", "Cleo"][name], self.first)
    }

    async fn run(self, archive: Archive, task: usize, calls: Vec<Call>) {
        for (number, call) in calls.into_iter().enumerate() {
            // Callers see errors; what they leave behind is what counts.
            let _ = match call {
                Call::Rename(player, name) => archive.rename(self.first + player, &self.name(name)).await,
                Call::Register(name) => {
                    let id = self.first + 10 + 10 * task as i64 + number as i64;
                    archive.register(player(id, &self.name(name))).await
                }
                Call::Login(player) => {
                    let login = Login { at: Timestamp(1), ip: None, client_version: format!("{task}") };
                    archive.record_login(self.first + player, login).await
                }
            };
        }
    }

    /// Names belong to one player each, and players are found by them. Returns the names.
    async fn check(&self, world: &World, when: &str) -> BTreeMap<String, i64> {
        let mut names = BTreeMap::new();
        for player_id in (0..60).map(|n| self.first + n) {
            // The ids that calls use.
            if (2..10).contains(&(player_id - self.first)) || (player_id - self.first) % 10 > 5 {
                continue;
            }
            let Some(profile) = world.archive.profile(player_id).await.unwrap() else {
                assert!(player_id > self.first + 1, "{when}: {player_id} is registered no more");
                continue;
            };
            let name = profile.username;
            let found = world.archive.profile_by_username(&name).await.unwrap();
            let found = found.map(|found| found.player_id);
            assert_eq!(found, Some(player_id), "{when}: {player_id} is found by {name}");
            let other = names.insert(name.to_lowercase(), player_id);
            assert_eq!(other, None, "{when}: {name} is the name of {player_id}, too");
        }
        names
    }
}

async fn play(world: &World, calls: Vec<Vec<Call>>, turns: Vec<Turn>) {
    let cast = Cast::new();
    for number in 0..2 {
        let new = player(cast.first + number, &cast.name(number as usize));
        world.archive.register(new).await.unwrap();
    }
    let mut stage = Stage::of(world);
    for (task, calls) in calls.into_iter().enumerate() {
        let cast = cast.clone();
        stage.start(move |archive| cast.run(archive, task, calls)).await;
    }
    for (number, turn) in turns.iter().enumerate() {
        match *turn {
            Turn::Call(task, verdict) => stage.step(task % stage.count(), verdict).await,
            Turn::Crash(task) => stage.crash(task % stage.count()),
            Turn::Minute => world.clock.advance(61_000),
        }
        cast.check(world, &format!("after turn {number}, {turn:?}")).await;
    }
    for task in 0..stage.count() {
        stage.finish(task).await;
    }
    world.clock.advance(61_000);
    cast.check(world, "when all is quiet").await;
    // What is left behind is put in order by those who meet it: then each name has a player, or can be had.
    for (round, first) in [(0, 50), (1, 53)] {
        for name in 0..3 {
            let id = cast.first + first + name as i64;
            let registered = world.archive.register(player(id, &cast.name(name))).await;
            assert!(registered.is_ok() || registered.as_ref().err() == Some(&TAKEN), "{registered:?}");
            let names = cast.check(world, &format!("in round {round}")).await;
            let owner = names.get(&cast.name(name).to_lowercase());
            assert!(round == 0 || owner.is_some(), "{} is lost", cast.name(name));
        }
    }
}

/// EMBERKEEP_SCHEDULES = how many, for a longer search.
#[test]
fn names_are_unique_at_every_moment() {
    let cases = std::env::var("EMBERKEEP_SCHEDULES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::embedded();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let calls = prop::collection::vec(prop::collection::vec(call(), 1..3), 2..4);
    let schedules = (calls, prop::collection::vec(turn(), 0..80));
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&schedules, |(calls, turns)| {
        runtime.block_on(play(&world, calls, turns));
        Ok(())
    });
    result.unwrap_or_else(|failed| panic!("{failed}"));
}
