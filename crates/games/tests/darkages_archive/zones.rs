//! Zone metrics: samples of many reporters in one row.

use crate::stores::{NOW, World, all};
use emberkeep_games::darkages::archive::PageRequest;
use emberkeep_games::darkages::archive::zones::{ZoneReporter, ZoneSample};
use emberkeep_games::darkages::history::ZoneMetrics;
use emberkeep_schema::Timestamp;

fn sample(player_count: i32, tick_time_ms: f32) -> ZoneSample {
    let (packets_sent, packets_received, bytes_sent, bytes_received) = (2, 3, 200, 300);
    ZoneSample { player_count, tick_time_ms, packets_sent, packets_received, bytes_sent, bytes_received }
}

async fn rows(world: &World, zone_id: i32) -> Vec<ZoneMetrics> {
    all(5, PageRequest::default(), |page| world.archive.zone_metrics(zone_id, None, page)).await
}

pub(crate) async fn reports_are_merged(world: &World) {
    let hour = Timestamp(NOW - 7_200_000);
    let (mut one, mut two) =
        (ZoneReporter::new(50, "zone-a").unwrap(), ZoneReporter::new(50, "zone-b").unwrap());
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
        let mut reporter = ZoneReporter::new(51, "zone-a").unwrap();
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
                let mut reporter = ZoneReporter::new(52, &format!("zone-{n}")).unwrap();
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
