//! What callers get wrong: typed errors, and nothing is written.

use crate::combat::event;
use crate::recorder::hit;
use crate::registrations::player;
use crate::stores::{DAY_MS, NOW, World, all};
use emberkeep_games::darkages::archive::profiles::{Ban, Login, NewPlayer, ProfileUpdate};
use emberkeep_games::darkages::archive::recorder::{HitRecord, Recorder, StatsDelta};
use emberkeep_games::darkages::archive::zones::ZoneSample;
use emberkeep_games::darkages::archive::{Direction, Error, PageRequest, TimeRange};
use emberkeep_history::Error as HistoryError;
use emberkeep_history::spool::{SpoolMode, SpoolOptions};
use emberkeep_schema::Timestamp;
use uuid::Uuid;

fn range(from: i64, to: i64) -> Result<TimeRange, Error> {
    TimeRange::new(Timestamp(from), Timestamp(to))
}

fn is_invalid<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Invalid { .. }))
}

pub(crate) async fn ranges_out_of_order(world: &World) {
    for (from, to) in [(2, 1), (-1, 1), (i64::MIN, i64::MAX), (0, i64::MAX)] {
        assert!(is_invalid(range(from, to)), "{from} to {to}");
    }
    let years = range(0, NOW).unwrap();
    let error = world.archive.combat_events(years, PageRequest::default()).await.unwrap_err();
    assert!(matches!(error, Error::History(HistoryError::TooLarge { .. })), "{error}");
    for rows_max in [0, 1_001, usize::MAX] {
        let page = PageRequest { rows_max, ..PageRequest::default() };
        let error = world.archive.kills(range(0, 1).unwrap(), page).await.unwrap_err();
        assert!(matches!(error, Error::History(HistoryError::Invalid { .. })), "{error}");
    }
}

pub(crate) async fn cursors_of_others(world: &World) {
    let archive = &world.archive;
    let rows: Vec<_> = (0..4).map(|n| event(6_000 + n, NOW - 25 * DAY_MS, 800, 801, 80)).collect();
    archive.history().insert_many(rows).await.unwrap();
    let day = TimeRange::day(Timestamp(NOW - 25 * DAY_MS).day());
    let request = PageRequest { rows_max: 2, ..PageRequest::default() };
    let next = archive.combat_events_in_zone(80, day, request.clone()).await.unwrap().next.unwrap();
    let mut text = next.to_string();
    let last = if text.ends_with('A') { "B" } else { "A" };
    text.replace_range(text.len() - 3..text.len() - 2, last);
    let tampered = PageRequest { after: text.parse().ok(), ..request.clone() };
    let other_way =
        PageRequest { after: Some(next.clone()), direction: Direction::OldestFirst, ..request.clone() };
    let of_another = PageRequest { after: Some(next), ..request };
    for error in [
        archive.combat_events_in_zone(80, day, tampered).await.unwrap_err(),
        archive.combat_events_in_zone(80, day, other_way).await.unwrap_err(),
        archive.combat_events_in_zone(81, day, of_another.clone()).await.unwrap_err(),
        archive.combat_events(day, of_another).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::History(HistoryError::InvalidCursor { .. })), "{error}");
    }
}

pub(crate) async fn ids_at_their_limits(world: &World) {
    let archive = &world.archive;
    for (number, id) in [(0, i64::MIN), (1, i64::MAX), (2, -1), (3, 0)] {
        let zone = [i32::MIN, i32::MAX, -1, 0][number];
        let row = event(7_000 + number as u128, NOW - 26 * DAY_MS, id, id, zone);
        archive.history().insert(row.clone()).await.unwrap();
        let day = TimeRange::day(row.timestamp.day());
        let request = PageRequest::default;
        let expected = std::slice::from_ref(&row);
        assert_eq!(
            all(5, request(), |page| archive.combat_events_by_attacker(id, day, page)).await,
            expected
        );
        assert_eq!(all(5, request(), |page| archive.combat_events_by_target(id, day, page)).await, expected);
        assert_eq!(all(5, request(), |page| archive.combat_events_in_zone(zone, day, page)).await, expected);
        let profile = archive.register(player(id, &format!("limit {number}"))).await.unwrap();
        assert_eq!(archive.profile(id).await.unwrap(), Some(profile));
    }
}

pub(crate) async fn numbers_that_are_refused(world: &World) {
    let mut reporter = world.archive.zone_reporter(53, "zone-a").unwrap();
    let sample = ZoneSample { player_count: 1, tick_time_ms: 1.0, ..ZoneSample::default() };
    for tick_time_ms in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, f32::MAX] {
        assert!(is_invalid(reporter.add(Timestamp(NOW), ZoneSample { tick_time_ms, ..sample })));
    }
    assert!(is_invalid(reporter.add(Timestamp(NOW), ZoneSample { player_count: -1, ..sample })));
    assert!(is_invalid(reporter.add(Timestamp(NOW), ZoneSample { bytes_sent: i64::MIN, ..sample })));
    assert!(is_invalid(reporter.add(Timestamp(i64::MAX), sample)));
    world.archive.report_zone(&mut reporter).await.unwrap();
    let found = world.archive.zone_metrics(53, None, PageRequest::default()).await.unwrap();
    assert_eq!(found.rows, []);

    let options = SpoolOptions { mode: SpoolMode::Memory, ..SpoolOptions::default() };
    let recorder = Recorder::open("unused", options).unwrap();
    for position in [[f64::NAN, 0.0, 0.0], [0.0, f64::INFINITY, 0.0]] {
        let bad = HitRecord { position, ..hit(8_000, false) };
        // A good one beside it is not recorded either.
        assert!(is_invalid(recorder.record_events(vec![hit(8_001, false), bad]).await));
    }
    assert!(is_invalid(recorder.record_events(vec![HitRecord { damage: -1, ..hit(8_000, false) }]).await));
    assert!(is_invalid(recorder.record_events(vec![HitRecord { timestamp: -1, ..hit(8_000, false) }]).await));
    assert!(is_invalid(recorder.record_events(vec![hit(8_000, false); 1_001]).await));
    for wins in [-1, i64::MAX] {
        let delta = StatsDelta { wins, ..StatsDelta::default() };
        assert!(is_invalid(recorder.record_stats(1, delta, Uuid::nil(), Timestamp(NOW)).await));
    }
    assert_eq!(recorder.stats().waiting, 0);
    for update in [
        ProfileUpdate { level: Some(0), ..ProfileUpdate::default() },
        ProfileUpdate { experience: Some(-1), ..ProfileUpdate::default() },
        ProfileUpdate { settings: Some(Some(b"{".to_vec())), ..ProfileUpdate::default() },
        ProfileUpdate { settings: Some(Some(vec![b'1'; 65_537])), ..ProfileUpdate::default() },
    ] {
        assert!(is_invalid(world.archive.update_profile(1, update).await));
    }
}

pub(crate) async fn texts_that_are_refused(world: &World) {
    let archive = &world.archive;
    for name in ["", " a", "a\u{200b}", "a\0", &"x".repeat(33)] {
        assert!(is_invalid(
            archive.register(NewPlayer { username: name.into(), ..player(9_000, "x") }).await
        ));
    }
    assert!(is_invalid(archive.register(NewPlayer { email: "x".into(), ..player(9_000, "x") }).await));
    assert!(is_invalid(archive.rename(9_000, "").await));
    let long = "x".repeat(1_025);
    assert!(is_invalid(archive.ban(9_000, Ban { reason: long.clone(), expires: None }).await));
    let login = Login { at: Timestamp(NOW), ip: None, client_version: long.clone() };
    assert!(is_invalid(archive.record_login(9_000, login).await));
    assert!(is_invalid(world.archive.zone_reporter(1, &long)));
    assert_eq!(archive.profile(9_000).await.unwrap(), None);
    let mut unknown = serde_json::to_value(hit(8_100, false)).unwrap();
    unknown["hit_type"] = "glancing".into();
    let error = serde_json::from_value::<HitRecord>(unknown).unwrap_err().to_string();
    assert!(error.contains("glancing") && error.contains("critical"), "{error}");
}
