//! Both tiers: what happened in hot state is in history, once.

use super::City;
use super::combat::hit;
use emberkeep_games::darkages::archive::{Archive, PageRequest, TimeRange};
use emberkeep_games::darkages::{consumers, history};
use emberkeep_history::{Embedded, History, embedded::Options};
use emberkeep_hot::Store;
use emberkeep_schema::Timestamp;
use std::sync::Arc;

pub async fn fights_are_in_history_once(store: Store) {
    let city = City::of(&store);
    let folder = emberkeep_testkit::scratch();
    let embedded = Embedded::open(folder.path(), history::schema(), Options::default()).unwrap();
    let history = History::new(Arc::new(embedded));
    let began = store.now().await.unwrap();
    let ((attacker, _), (target, _)) = (city.login(1).await, city.login(2).await);
    for _ in 0..4 {
        city.game.damage(hit(attacker, target, 30)).await.unwrap();
    }
    city.game.logout(target).await.unwrap();
    // Twice, as two processes would: what was delivered does not count again.
    for _ in 0..2 {
        for consumer in consumers(&city.scope, &history).unwrap() {
            let drained = consumer.drain_once().await.unwrap().expect("no other consumer has the lease");
            assert_eq!(drained.dead_letters, 0, "{}", consumer.log());
        }
    }
    let archive = Archive::new(history.clone());
    let stats = archive.player_stats(attacker.0).await.unwrap().unwrap().sums;
    assert_eq!((stats.total_kills, stats.total_damage_dealt, stats.total_deaths), (1, 100, 0));
    let stats = archive.player_stats(target.0).await.unwrap().unwrap().sums;
    assert_eq!((stats.total_deaths, stats.total_damage_taken, stats.total_kills), (1, 100, 0));
    let range = TimeRange::new(Timestamp(began - 60_000), Timestamp(began + 600_000)).unwrap();
    let page = archive.combat_events_by_attacker(attacker.0, range, PageRequest::default()).await.unwrap();
    assert_eq!(page.rows.iter().map(|event| event.damage).sum::<i32>(), 100);
    assert_eq!(page.rows.len(), 4);
    let kills = archive.kills(range, PageRequest::default()).await.unwrap().rows;
    assert_eq!(kills.iter().filter(|kill| kill.target_id == target.0).count(), 1);
    let sessions = archive.play_sessions(target.0, None, PageRequest::default()).await.unwrap().rows;
    assert_eq!((sessions.len(), sessions[0].deaths, sessions[0].damage_taken), (1, 1, 100));
    history.close().await.unwrap();
}
