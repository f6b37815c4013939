//! Leaderboards: fed by the logs, each event once.

use super::City;
use super::combat::hit;
use emberkeep_games::darkages::archive::Archive;
use emberkeep_games::darkages::boards::{BoardRow, Boards, Leaderboards, Period};
use emberkeep_games::darkages::history::{self, BoardCategory};
use emberkeep_games::darkages::{COMBAT_LOG, EntityId, SessionChange, Shards};
use emberkeep_history::outbox::Consumers;
use emberkeep_history::{Deferred, Embedded, History, embedded::Options};
use emberkeep_hot::{self as hot, Store, Tx};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use BoardCategory::{Damage, Kills, Playtime};

pub(super) fn history_in(folder: &emberkeep_testkit::Scratch) -> History {
    History::new(Arc::new(Embedded::open(folder.path(), history::schema(), Options::default()).unwrap()))
}

fn consumers(store: &Store, history: &History) -> Consumers {
    emberkeep_games::consumers(store, history).unwrap().into_iter().collect()
}

/// The logs to the boards, the boards to their outbox, and that to history.
async fn drain(store: &Store, history: &History) {
    for _ in 0..3 {
        for drained in consumers(store, history).drain_once().await {
            assert_eq!(drained.unwrap().expect("no other consumer has the lease").dead_letters, 0);
        }
    }
}

/// The same after consumers that were stopped: their leases last for a while.
async fn drain_after_a_stop(store: &Store, history: &History) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while consumers(store, history).drain_once().await.iter().any(|drained| !matches!(drained, Ok(Some(_)))) {
        assert!(Instant::now() < deadline, "the leases do not end");
        sleep(Duration::from_millis(200)).await;
    }
    drain(store, history).await;
}

/// A hit that leaves the target alive.
async fn strike(city: &City, attacker: EntityId, target: EntityId, amount: i32) -> bool {
    let killed = city.game.damage(hit(attacker, target, amount)).await.unwrap().killed;
    if killed {
        let risen = SessionChange { health: Some(100), ..SessionChange::default() };
        city.game.change(target, risen).await.unwrap();
    }
    killed
}

async fn score(boards: &Boards, category: BoardCategory, period: Period, player: EntityId) -> Option<i64> {
    boards.standing(category, period, player.0).await.unwrap().map(|row| row.score)
}

pub async fn a_kill_is_on_the_boards_within_a_second(store: Store) {
    let (city, folder) = (City::of(&store), emberkeep_testkit::scratch());
    let (history, boards) = (history_in(&folder), city.game.boards());
    // The boards begin, and what other cases left is counted.
    drain(&store, &history).await;
    let running = tokio::spawn({
        let consumers = consumers(&store, &history);
        async move { consumers.run(pending()).await }
    });
    let ((attacker, _), (target, _)) = (city.login(1).await, city.login(2).await);
    let today = boards.today().await.unwrap();
    for round in 1..=3 {
        assert!(strike(&city, attacker, target, 100).await);
        let since = Instant::now();
        while score(&boards, Kills, today, attacker).await != Some(round) {
            assert!(
                since.elapsed() < Duration::from_secs(1),
                "kill {round} is not on the board after a second"
            );
            sleep(Duration::from_millis(5)).await;
        }
    }
    running.abort();
    let _ = running.await;
    drain_after_a_stop(&store, &history).await;
    for period in [today, Period::AllTime] {
        assert_eq!(score(&boards, Damage, period, attacker).await, Some(300));
        assert_eq!(score(&boards, Kills, period, target).await, None, "who only died has no score");
        let around = boards.around(Kills, period, attacker.0, 2).await.unwrap();
        let own = around.iter().find(|row| row.player_id == attacker.0).unwrap();
        let top = boards.top(Kills, period, 1_000).await.unwrap();
        assert_eq!(top.iter().find(|row| row.player_id == attacker.0), Some(own));
        assert!(top.is_sorted_by_key(|row| (row.rank, -row.score)));
        assert_eq!(own.player_name, attacker.0.to_string());
    }
    assert!(boards.top(Kills, today, 1_001).await.is_err());
    assert_eq!(
        boards.count(Kills, today).await.unwrap(),
        boards.top(Kills, today, 1_000).await.unwrap().len() as u64
    );
    // The time of play counts when the session ends.
    sleep(Duration::from_millis(5)).await;
    city.game.logout(attacker).await.unwrap();
    drain(&store, &history).await;
    assert!(score(&boards, Playtime, today, attacker).await.unwrap() >= 5);
    history.close().await.unwrap();
}

/// Two processes consume, are stopped at any point and start again: board = totals = sum of events.
pub async fn boards_are_totals_are_sums_of_events(store: Store) {
    let (city, folder) = (City::of(&store), emberkeep_testkit::scratch());
    let (history, boards) = (history_in(&folder), city.game.boards());
    drain(&store, &history).await;
    let today = boards.today().await.unwrap();
    for number in 0..6 {
        city.login(number).await;
    }
    let mut processes = JoinSet::new();
    for process in 0..2 {
        let (store, history) = (store.clone(), history.clone());
        processes.spawn(async move {
            for round in 0u64.. {
                let run = consumers(&store, &history);
                let _ =
                    timeout(Duration::from_millis(3 + (round * 7 + process) % 40), run.run(pending())).await;
            }
        });
    }
    let mut fights = JoinSet::new();
    for number in 0..3 {
        let city = city.clone();
        fights.spawn(async move {
            let (attacker, target, mut kills) = (city.player(number), city.player(number + 3), 0);
            for _ in 0..60 {
                kills += i64::from(strike(&city, attacker, target, 7).await);
            }
            (attacker, kills)
        });
    }
    let fought = fights.join_all().await;
    processes.shutdown().await;
    drain_after_a_stop(&store, &history).await;
    let archive = Archive::new(history.clone());
    for (attacker, kills) in fought {
        let stats = archive.player_stats(attacker.0).await.unwrap().unwrap().sums;
        let damage = stats.total_damage_dealt;
        assert_eq!(stats.total_kills, kills, "each kill once");
        for period in [today, Period::AllTime] {
            assert_eq!(score(&boards, Kills, period, attacker).await, Some(kills));
            assert_eq!(score(&boards, Damage, period, attacker).await, Some(damage));
        }
    }
    // History has the same boards.
    let Period::Day(day) = today else { panic!() };
    for category in [Kills, Damage] {
        let hot = boards.top(category, today, 1_000).await.unwrap();
        let own = |player: i64| (city.first..city.first + 10).contains(&player);
        let rows = archive.daily_board(category, day, 1_000, None).await.unwrap().rows;
        let stored: Vec<_> =
            rows.iter().map(|row| (row.player_id, row.score)).filter(|row| own(row.0)).collect();
        let mut shown: Vec<_> =
            hot.iter().map(|row| (row.player_id, row.score)).filter(|row| own(row.0)).collect();
        shown.sort_by_key(|(player, score)| (-score, *player));
        assert_eq!(stored, shown, "{category:?}");
    }
    history.close().await.unwrap();
}

pub async fn boards_go_on_without_history(store: Store) {
    let (city, folder) = (City::of(&store), emberkeep_testkit::scratch());
    let (history, boards) = (history_in(&folder), city.game.boards());
    drain(&store, &history).await;
    // A history that cannot be reached.
    let away = History::new(Arc::new(Deferred::new("a cluster", "it is away")));
    let running = tokio::spawn({
        let consumers = consumers(&store, &away);
        async move { consumers.run(pending()).await }
    });
    let ((attacker, _), (target, _)) = (city.login(1).await, city.login(2).await);
    for round in 1..=20 {
        strike(&city, attacker, target, 3).await;
        let since = Instant::now();
        while score(&boards, Damage, Period::AllTime, attacker).await != Some(3 * round) {
            assert!(
                since.elapsed() < Duration::from_secs(1),
                "hit {round} is not on the board after a second"
            );
            sleep(Duration::from_millis(5)).await;
        }
    }
    running.abort();
    let _ = running.await;
    // Nothing was trimmed, so that history gets all of it.
    drain_after_a_stop(&store, &history).await;
    let stats = Archive::new(history.clone()).player_stats(attacker.0).await.unwrap().unwrap().sums;
    assert_eq!(stats.total_damage_dealt, 60);
    assert_eq!(score(&boards, Damage, Period::AllTime, attacker).await, Some(60));
    history.close().await.unwrap();
}

/// All logs, with a spool for each.
fn with_spools(store: &Store, history: &History, folder: &emberkeep_testkit::Scratch) -> Consumers {
    let consumers = emberkeep_games::consumers_of_shards(store, history, &Shards::default()).unwrap();
    let at_once = consumers.into_iter().map(|consumer| consumer.spool_after(Duration::ZERO)).collect();
    Consumers::through_spools(at_once, folder.path(), 8 * 1024 * 1024).unwrap().0
}

/// Boards that were lost while history is away: hits do not stay in the log, and history's scores are added once when it is back.
pub async fn boards_take_scores_before_history_is_back(store: Store) {
    let (city, folder, spools) =
        (City::of(&store), emberkeep_testkit::scratch(), emberkeep_testkit::scratch());
    let (history, boards) = (history_in(&folder), city.game.boards());
    drain(&store, &history).await;
    boards.scope().transact::<(), hot::Error, _>(remove_boards).await.unwrap();
    drain(&store, &history).await;
    let ((attacker, _), (target, _), (late, _)) =
        (city.login(1).await, city.login(2).await, city.login(3).await);
    strike(&city, attacker, target, 30).await;
    drain(&store, &history).await;
    boards.scope().transact::<(), hot::Error, _>(remove_boards).await.unwrap();
    let today = boards.today().await.unwrap();
    let away =
        with_spools(&store, &History::new(Arc::new(Deferred::new("a cluster", "it is away"))), &spools);
    for _ in 0..20 {
        strike(&city, attacker, target, 3).await;
    }
    strike(&city, late, target, 7).await;
    let left = async || city.scope.log_after(&COMBAT_LOG.key(), 0, 1_000).await.unwrap().entries.len();
    let since = Instant::now();
    while left().await > 1 || score(&boards, Damage, today, attacker).await != Some(60) {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "{} hits stay in the log: {:?}",
            left().await,
            away.stats()
        );
        let _ = timeout(Duration::from_millis(100), away.run(pending())).await;
    }
    assert_eq!(score(&boards, Damage, Period::AllTime, attacker).await, Some(60));
    drop(away);
    // History is back, and the restore ends at any point.
    let back = with_spools(&store, &history, &spools);
    for ms in 0..20 {
        let _ = timeout(Duration::from_millis(ms), back.run(pending())).await;
        strike(&city, attacker, target, 1).await;
    }
    let since = Instant::now();
    while !back.drain_once().await.iter().all(|drained| matches!(drained, Ok(Some(_)))) {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", back.stats());
        sleep(Duration::from_millis(100)).await;
    }
    for _ in 0..2 {
        back.drain_once().await;
        for period in [today, Period::AllTime] {
            assert_eq!(score(&boards, Damage, period, attacker).await, Some(30 + 60 + 20), "{period:?}");
            assert_eq!(score(&boards, Damage, period, late).await, Some(7), "{period:?}");
        }
    }
    let (archive, Period::Day(day)) = (Archive::new(history.clone()), today) else { panic!() };
    let rows = archive.daily_board(Damage, day, 1_000, None).await.unwrap().rows;
    let own = |player: EntityId| -> Vec<i64> {
        rows.iter().filter(|row| row.player_id == player.0).map(|row| row.score).collect()
    };
    assert_eq!((own(attacker), own(late)), (vec![110], vec![7]));
    assert_eq!(archive.player_stats(attacker.0).await.unwrap().unwrap().sums.total_damage_dealt, 110);
    history.close().await.unwrap();
}

pub async fn a_rename_is_on_the_boards(store: Store) {
    let (city, folder) = (City::of(&store), emberkeep_testkit::scratch());
    let (history, boards) = (history_in(&folder), city.game.boards());
    drain(&store, &history).await;
    let ((attacker, _), (target, _)) = (city.login(1).await, city.login(2).await);
    strike(&city, attacker, target, 3).await;
    // Not applied yet: it must not bring the old name back.
    city.game.rename(attacker, "Ember").await.unwrap();
    strike(&city, attacker, target, 3).await;
    drain(&store, &history).await;
    let today = boards.today().await.unwrap();
    for period in [today, Period::AllTime] {
        let row = boards.standing(Damage, period, attacker.0).await.unwrap().unwrap();
        assert_eq!((row.player_name.as_str(), row.score), ("Ember", 6));
    }
    city.game.rename(attacker, "Ash").await.unwrap();
    drain(&store, &history).await;
    let Period::Day(day) = today else { panic!() };
    let archive = Archive::new(history.clone());
    let rows = archive.daily_board(Damage, day, 1_000, None).await.unwrap().rows;
    let own: Vec<_> = rows.iter().filter(|row| row.player_id == attacker.0).collect();
    assert_eq!((own.len(), own[0].player_name.as_str(), own[0].score), (1, "Ash", 6));
    assert!(city.game.rename(attacker, &"x".repeat(129)).await.is_err());
    history.close().await.unwrap();
}

/// Boards that are rebuilt, or were lost, are as before, and what comes afterwards counts once.
pub async fn lost_boards_come_back_from_history(store: Store) {
    let (city, folder) = (City::of(&store), emberkeep_testkit::scratch());
    let (history, boards) = (history_in(&folder), city.game.boards());
    drain(&store, &history).await;
    // This history begins here, and has nothing of the boards of other cases.
    boards.scope().transact::<(), hot::Error, _>(remove_boards).await.unwrap();
    drain(&store, &history).await;
    for number in 0..4 {
        city.login(number).await;
    }
    let fight = async |amount| {
        for number in 0..3 {
            strike(&city, city.player(number), city.player(number + 1), amount + number as i32).await;
        }
    };
    fight(10).await;
    drain(&store, &history).await;
    let (today, archive) = (boards.today().await.unwrap(), Archive::new(history.clone()));
    let shown = async || {
        let mut all: Vec<Vec<BoardRow>> = Vec::new();
        for period in [today, Period::AllTime] {
            let mut rows = boards.top(Damage, period, 1_000).await.unwrap();
            // History has no times of the scores of a day.
            rows.iter_mut().for_each(|row| row.reached_at = 0);
            all.push(rows);
        }
        all
    };
    let before = shown().await;
    assert!(before.iter().all(|rows| rows.len() == 3));
    let rebuilt = boards.rebuild(&archive).await.unwrap();
    assert!(rebuilt.of_all_time >= 3 && rebuilt.of_days >= 3, "{rebuilt:?}");
    assert_eq!(shown().await, before);
    drain(&store, &history).await;
    assert_eq!(shown().await, before, "nothing counts again");
    fight(1).await;
    boards.scope().transact::<(), hot::Error, _>(remove_boards).await.unwrap();
    drain(&store, &history).await;
    let totals: Vec<_> = shown().await[1].iter().map(|row| row.score).collect();
    assert_eq!(totals, [12 + 3, 11 + 2, 10 + 1]);
    history.close().await.unwrap();
}

/// All of the boards themselves is gone; what was applied of the logs is known.
fn remove_boards(tx: &mut Tx<'_, Leaderboards>) -> hot::Result<()> {
    use emberkeep_games::darkages::boards::*;
    use emberkeep_schema::Name;
    let now = tx.now();
    for category in CATEGORIES {
        let category = Name::new(category.text()).unwrap();
        for ms in [now, now - 86_400_000] {
            let day = Name::new(emberkeep_schema::Timestamp(ms).day().to_string()).unwrap();
            tx.del(&DAY_ORDER.key(category.clone(), day.clone()))?;
            tx.del(&DAY_PLAYERS.key(category.clone(), day.clone()))?;
            tx.del(&DAY_STORED.key(category.clone(), day))?;
        }
        tx.del(&EVER_ORDER.key(category.clone()))?;
        tx.del(&EVER_PLAYERS.key(category))?;
    }
    tx.del(&BOARD_NAMES.key())?;
    tx.del(&BOARD_CHANGED.key())?;
    tx.del(&BOARD_BEGUN.key())
}
