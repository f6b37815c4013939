//! Zone metrics: samples of many reporters in one row.

use crate::gate::{Stage, Verdict};
use crate::stores::{NOW, World, all};
use emberkeep_games::darkages::archive::zones::ZoneSample;
use emberkeep_games::darkages::archive::{Error, PageRequest};
use emberkeep_games::darkages::history::{ZoneMetrics, ZoneReport};
use emberkeep_schema::Timestamp;
use uuid::Uuid;

const HOUR_MS: i64 = 3_600_000;

fn sample(player_count: i32, tick_time_ms: f32) -> ZoneSample {
    let (packets_sent, packets_received, bytes_sent, bytes_received) = (2, 3, 200, 300);
    ZoneSample { player_count, tick_time_ms, packets_sent, packets_received, bytes_sent, bytes_received }
}

async fn rows(world: &World, zone_id: i32) -> Vec<ZoneMetrics> {
    all(5, PageRequest::default(), |page| world.archive.zone_metrics(zone_id, None, page)).await
}

pub(crate) async fn reports_are_merged(world: &World) {
    let hour = Timestamp(NOW - 7_200_000);
    let (mut one, mut two) = (
        world.archive.zone_reporter(50, "zone-a").unwrap(),
        world.archive.zone_reporter(50, "zone-b").unwrap(),
    );
    for n in 0..100_u8 {
        one.add(Timestamp(hour.0 + i64::from(n)), sample(10, 1.0 + f32::from(n))).unwrap();
    }
    for n in 0..300_u16 {
        two.add(Timestamp(hour.0 + 3_599_999), sample(30, 1.0 + f32::from(n % 100))).unwrap();
    }
    two.add(Timestamp(hour.0 + 3_600_000), sample(1, 5.0)).unwrap();
    world.archive.report_zone(&mut one).await.unwrap();
    world.archive.report_zone(&mut two).await.unwrap();
    // Reports that are written again change nothing.
    world.archive.report_zone(&mut one).await.unwrap();
    let found = rows(world, 50).await;
    assert_eq!(found.len(), 2, "two hours, the later one first");
    assert_eq!((found[0].hour_bucket, found[0].max_player_count), (Timestamp(hour.0 + 3_600_000), 1));
    let merged = &found[1];
    assert_eq!(merged.hour_bucket, hour);
    let counts = (merged.avg_player_count, merged.max_player_count, merged.min_player_count);
    assert_eq!(counts, (25, 30, 10));
    assert_eq!((merged.avg_tick_time_ms, merged.max_tick_time_ms), (50.5, 100.0));
    assert!((merged.p99_tick_time_ms - 99.0).abs() <= 1.0, "{}", merged.p99_tick_time_ms);
    assert_eq!((merged.total_packets_sent, merged.total_packets_received), (800, 1_200));
    assert_eq!((merged.total_bytes_sent, merged.total_bytes_received), (80_000, 120_000));
    assert_eq!(merged.server_instance, "zone-b", "the one with most samples");
}

pub(crate) async fn a_reporter_that_starts_again_counts_on(world: &World) {
    for tick in [10.0, 20.0, 30.0] {
        let mut reporter = world.archive.zone_reporter(51, "zone-a").unwrap();
        reporter.add(Timestamp(NOW), sample(1, tick)).unwrap();
        world.archive.report_zone(&mut reporter).await.unwrap();
        reporter.add(Timestamp(NOW + 1), sample(1, tick)).unwrap();
        world.archive.report_zone(&mut reporter).await.unwrap();
    }
    let found = rows(world, 51).await;
    assert_eq!((found[0].avg_tick_time_ms, found[0].total_packets_sent), (20.0, 12));
}

pub(crate) async fn reports_at_once_end_in_the_whole(world: &World) {
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let archive = world.archive.clone();
            tokio::spawn(async move {
                let mut reporter = archive.zone_reporter(52, &format!("zone-{n}")).unwrap();
                for tick in 0..5 {
                    reporter.add(Timestamp(NOW), sample(n, tick as f32)).unwrap();
                    archive.report_zone(&mut reporter).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let found = rows(world, 52).await;
    assert_eq!((found.len(), found[0].total_packets_sent), (1, 80));
    assert_eq!((found[0].min_player_count, found[0].max_player_count), (0, 7));
}

/// A report that cannot be read is left out and named; the others count.
pub(crate) async fn a_corrupt_report_is_left_out(world: &World) {
    let report = ZoneReport {
        zone_id: 54,
        hour_bucket: Timestamp(NOW),
        server_instance: "zone-bad".into(),
        incarnation: Uuid::from_u128(54),
        samples: 1_000,
        player_count_sum: 1,
        player_count_max: 1,
        player_count_min: 1,
        tick_time_ms_sum: 1.0,
        tick_time_ms_max: 1.0,
        tick_time_sketch: b"not a sketch".to_vec(),
        packets_sent: 1,
        packets_received: 1,
        bytes_sent: 1,
        bytes_received: 1,
    };
    world.archive.history().upsert_at(report, NOW * 1_000).await.unwrap();
    let mut reporter = world.archive.zone_reporter(54, "zone-a").unwrap();
    reporter.add(Timestamp(NOW), sample(7, 3.0)).unwrap();
    let corrupt = world.archive.report_zone(&mut reporter).await.unwrap();
    assert_eq!(corrupt.len(), 1);
    assert!(corrupt[0].to_string().contains("zone-bad"), "{}", corrupt[0]);
    let found = rows(world, 54).await;
    assert_eq!((found.len(), found[0].max_player_count, found[0].total_packets_sent), (1, 7, 2));
}

/// A tick of a clock that jumped is refused; the reporter goes on.
pub(crate) async fn a_clock_that_jumps_does_not_stop_a_reporter(world: &World) {
    let mut reporter = world.archive.zone_reporter(55, "zone-a").unwrap();
    for at in [NOW + 2 * HOUR_MS, NOW + 90_000_000, NOW - 3 * HOUR_MS, i64::MAX, i64::MIN, 0] {
        let refused = reporter.add(Timestamp(at), sample(1, 1.0)).unwrap_err();
        assert!(matches!(refused, Error::Invalid { what: "time of a sample", .. }), "{at}: {refused}");
    }
    for hour in -2..=1 {
        reporter.add(Timestamp(NOW + hour * HOUR_MS), sample(2, 1.0)).unwrap();
    }
    world.archive.report_zone(&mut reporter).await.unwrap();
    assert_eq!(rows(world, 55).await.len(), 4);
}

/// Hours are forgotten by their distance from now, also if history takes nothing; one that fails does not stop the others.
#[tokio::test]
async fn an_hour_that_fails_does_not_stop_the_others() {
    let world = World::embedded();
    let mut stage = Stage::of(&world);
    let now = world.clock.now();
    let clock = world.clock.clone();
    let task = stage
        .start(move |archive| async move {
            let mut reporter = archive.zone_reporter(56, "zone-a").unwrap();
            for hour in [now - 2 * HOUR_MS, now] {
                reporter.add(Timestamp(hour), sample(1, 1.0)).unwrap();
            }
            archive.report_zone(&mut reporter).await.unwrap_err();
            clock.advance(HOUR_MS as u64);
            archive.report_zone(&mut reporter).await.unwrap_err();
            assert!(format!("{reporter:?}").ends_with("with 1 hours"), "{reporter:?}");
        })
        .await;
    stage.run_to(task, "write ember_zone_reports", 1).await;
    stage.step(task, Verdict::Fail).await;
    stage.run_to(task, "write zone_metrics", 1).await;
    stage.step(task, Verdict::Go).await;
    assert_eq!(rows(&world, 56).await[0].hour_bucket, Timestamp(now), "the second hour is written");
    while stage.waits_for(task).is_some() {
        stage.step(task, Verdict::Fail).await;
    }
    stage.join(task).await;
}
