//! Recording hits and statistics through the spool.

use crate::stores::{DAY_MS, MINUTE_MS, NOW, World, all};
use emberkeep_games::darkages::archive::recorder::{HitRecord, Recorder, StatsDelta};
use emberkeep_games::darkages::archive::{Error, PageRequest, TimeRange};
use emberkeep_games::darkages::history::{HitType, PlayerStats};
use emberkeep_history::Clock;
use emberkeep_history::spool::{SpoolMode, SpoolOptions};
use emberkeep_schema::Timestamp;
use emberkeep_testkit::scratch;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use uuid::Uuid;

pub(crate) fn hit(number: u128, is_kill: bool) -> HitRecord {
    HitRecord {
        timestamp: NOW - MINUTE_MS,
        event_id: Uuid::from_u128(number),
        attacker_id: 600,
        attacker_is_player: true,
        attacker_name: None,
        target_id: 601,
        target_is_player: number.is_multiple_of(2),
        damage: 10,
        hit_type: HitType::Normal,
        is_kill,
        ability_name: None,
        zone_id: 60,
        position: [1.0, 2.0, -0.5],
        server_instance: "zone-1".into(),
        shard_id: 1,
    }
}

/// Delivers everything that waits.
async fn deliver(world: &World, recorder: &Recorder) {
    let consumer = recorder.consumer(world.archive.history().clone());
    let stop = async {
        while recorder.stats().waiting > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let run = tokio::time::timeout(Duration::from_secs(60), consumer.run(stop));
    run.await.expect("delivered in time");
    assert_eq!(consumer.stats().dead_letters, 0);
}

async fn stats(world: &World, player_id: i64) -> Option<PlayerStats> {
    world.archive.player_stats(player_id).await.unwrap().map(|totals| totals.sums)
}

pub(crate) async fn hits_reach_history_once(world: &World) {
    let folder = scratch();
    let options = || SpoolOptions { mode: SpoolMode::Always, ..SpoolOptions::default() };
    let recorder = Recorder::open(folder.path(), options()).unwrap();
    let hits: Vec<_> = (4_000..4_040).map(|n| hit(n, n == 4_001 || n == 4_002)).collect();
    let first = recorder.record_events(hits.clone()).await.unwrap();
    assert_eq!((first.recorded, first.repeated, first.mode), (40, 0, SpoolMode::Always));
    let mut again = hits[..5].to_vec();
    again.extend([hit(4_040, false), hit(4_040, false)]);
    let second = recorder.record_events(again).await.unwrap();
    assert_eq!((second.recorded, second.repeated), (1, 6));
    // What waits is delivered after the next opening.
    recorder.close().unwrap();
    drop(recorder);
    let recorder = Recorder::open(folder.path(), options()).unwrap();
    deliver(world, &recorder).await;
    let range = TimeRange::new(Timestamp(NOW - 2 * MINUTE_MS), Timestamp(NOW)).unwrap();
    let found =
        all(30, PageRequest::default(), |page| world.archive.combat_events_in_zone(60, range, page)).await;
    assert_eq!(found.len(), 41);
    let kills = all(30, PageRequest::default(), |page| world.archive.kills(range, page)).await;
    assert_eq!(kills.iter().filter(|kill| kill.attacker_id == 600).count(), 2);
    let attacker = stats(world, 600).await.unwrap();
    assert_eq!((attacker.total_kills, attacker.total_damage_dealt, attacker.total_deaths), (2, 410, 0));
    let target = stats(world, 601).await.unwrap();
    let sums = (target.total_deaths, target.total_damage_taken, target.total_kills);
    assert_eq!(sums, (1, 210, 0), "only as a player has it statistics");
}

pub(crate) async fn statistics_of_all_columns(world: &World) {
    let folder = scratch();
    let recorder = Recorder::open(folder.path(), SpoolOptions::default()).unwrap();
    let delta = StatsDelta {
        kills: 1,
        deaths: 2,
        assists: 3,
        damage_dealt: 4,
        damage_taken: 5,
        damage_blocked: 6,
        healing_done: 7,
        playtime_ms: 90_000,
        matches: 9,
        wins: 10,
    };
    for id in [5_000, 5_001, 5_001] {
        recorder.record_stats(700, delta, Uuid::from_u128(id), Timestamp(NOW)).await.unwrap();
    }
    assert_eq!(stats(world, 700).await, None);
    deliver(world, &recorder).await;
    let expected = PlayerStats {
        total_kills: 2,
        total_deaths: 4,
        total_assists: 6,
        total_damage_dealt: 8,
        total_damage_taken: 10,
        total_damage_blocked: 12,
        total_healing_done: 14,
        total_playtime_minutes: 3,
        total_matches: 18,
        total_wins: 20,
    };
    assert_eq!(stats(world, 700).await, Some(expected));
}

/// A caller stops waiting after its events are in the spool, and repeats the call.
pub(crate) async fn calls_that_are_dropped_count_once(world: &World) {
    let folder = scratch();
    let options = SpoolOptions { mode: SpoolMode::Always, ..SpoolOptions::default() };
    let recorder = Recorder::open(folder.path(), options).unwrap();
    let mut dropped = 0;
    for n in 0..40 {
        let delta = StatsDelta { kills: 1, ..StatsDelta::default() };
        let call = || recorder.record_stats(701, delta, Uuid::from_u128(6_100 + n), Timestamp(NOW));
        // The first poll appends and waits for the disk; there is no second one.
        let mut first = Box::pin(call());
        dropped += usize::from(poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await);
        drop(first);
        let again = call().await.unwrap();
        assert_eq!((again.recorded, again.repeated), (0, 1), "{n}");
    }
    assert!(dropped > 0, "a sync takes longer than a poll");
    assert_eq!(recorder.stats().recorded, 40);
    deliver(world, &recorder).await;
    assert_eq!(stats(world, 701).await.unwrap().total_kills, 40);
}

/// What history would refuse later is refused at once.
pub(crate) async fn times_that_history_refuses(world: &World) {
    let options = SpoolOptions { mode: SpoolMode::Memory, ..SpoolOptions::default() };
    let recorder = Recorder::open("unused", options).unwrap().with_clock(Clock::Manual(world.clock.clone()));
    let last = world.clock.now() + DAY_MS;
    for at in [last + 1, Timestamp::MAX.0, i64::MAX, -1] {
        let late = HitRecord { timestamp: at, ..hit(6_200, false) };
        let refused = recorder.record_events(vec![late]).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { what: "time of an event", .. }), "{refused}");
        let stats = recorder.record_stats(702, StatsDelta::default(), Uuid::nil(), Timestamp(at)).await;
        assert!(matches!(stats, Err(Error::Invalid { .. })), "{at}");
    }
    let in_time = HitRecord { timestamp: last, attacker_id: 702, zone_id: 61, ..hit(6_201, false) };
    recorder.record_events(vec![in_time]).await.unwrap();
    // `deliver` sees that nothing becomes a dead letter.
    deliver(world, &recorder).await;
    assert_eq!(stats(world, 702).await.unwrap().total_damage_dealt, 10);
}
