//! Reading events, kills, play sessions and audit entries.

use crate::stores::{DAY_MS, MINUTE_MS, NOW, World, all};
use emberkeep_games::darkages::archive::{AuditFilter, Direction, PageRequest, TimeRange};
use emberkeep_games::darkages::history::{
    AuditEntry, AuditEvent, CombatEvent, HitType, Kill, PlayerSession, Severity,
};
use emberkeep_schema::Timestamp;
use uuid::Uuid;

pub(crate) fn event(number: u128, at: i64, attacker_id: i64, target_id: i64, zone_id: i32) -> CombatEvent {
    CombatEvent {
        timestamp: Timestamp(at),
        event_id: Uuid::from_u128(number),
        attacker_id,
        target_id,
        damage: 12,
        hit_type: HitType::Critical,
        ability_name: Some("fireball".into()),
        zone_id,
        position_x: 1.5,
        position_y: 0.0,
        position_z: -2.25,
        server_instance: "zone-1".into(),
        shard_id: 3,
    }
}

fn range(from: i64, to: i64) -> TimeRange {
    TimeRange::new(Timestamp(from), Timestamp(to)).unwrap()
}

fn oldest_first() -> PageRequest {
    PageRequest { direction: Direction::OldestFirst, ..PageRequest::default() }
}

pub(crate) async fn events_by_time_over_several_days(world: &World) {
    let archive = &world.archive;
    // Far from the times of other cases.
    let base = NOW - 20 * DAY_MS;
    let mut rows: Vec<_> =
        (0..30).map(|n| event(n as u128, base - n * 3 * 60 * MINUTE_MS, 100, 101, 10)).collect();
    archive.history().insert_many(rows.clone()).await.unwrap();
    let (first, last) = (rows[29].timestamp.0, rows[0].timestamp.0);
    let read = |page| archive.combat_events(range(first, last + 1), page);
    assert_eq!(all(7, PageRequest::default(), read).await, rows);
    let without_last = |page| archive.combat_events(range(first, last), page);
    assert_eq!(all(100, PageRequest::default(), without_last).await, rows[1..], "the end is not in it");
    assert_eq!(
        all(7, PageRequest::default(), |page| archive.combat_events(range(first, first), page)).await,
        []
    );
    rows.reverse();
    assert_eq!(all(7, oldest_first(), read).await, rows);
}

pub(crate) async fn events_by_attacker_target_and_zone(world: &World) {
    let archive = &world.archive;
    let rows: Vec<_> = (0..12)
        .map(|n| {
            event(
                1_000 + n as u128,
                NOW - n * 9 * 60 * MINUTE_MS,
                200 + n % 2,
                210 + n % 3,
                20 + (n % 4) as i32,
            )
        })
        .collect();
    archive.history().insert_many(rows.clone()).await.unwrap();
    let days = range(NOW - 5 * DAY_MS, NOW + 1);
    let of =
        |is: &dyn Fn(&CombatEvent) -> bool| rows.iter().filter(|row| is(row)).cloned().collect::<Vec<_>>();
    let by_attacker = |page| archive.combat_events_by_attacker(201, days, page);
    assert_eq!(all(2, PageRequest::default(), by_attacker).await, of(&|row| row.attacker_id == 201));
    let mut reversed = of(&|row| row.attacker_id == 201);
    reversed.reverse();
    assert_eq!(all(2, oldest_first(), by_attacker).await, reversed);
    let by_target = |page| archive.combat_events_by_target(212, days, page);
    assert_eq!(all(3, PageRequest::default(), by_target).await, of(&|row| row.target_id == 212));
    let in_zone = |page| archive.combat_events_in_zone(22, days, page);
    assert_eq!(all(1, PageRequest::default(), in_zone).await, of(&|row| row.zone_id == 22));
    let early = range(NOW - 5 * DAY_MS, NOW - DAY_MS);
    let in_zone = |page| archive.combat_events_in_zone(22, early, page);
    let expected = of(&|row| row.zone_id == 22 && row.timestamp.0 < NOW - DAY_MS);
    assert!(!expected.is_empty());
    assert_eq!(all(5, PageRequest::default(), in_zone).await, expected);
}

pub(crate) async fn the_kill_feed(world: &World) {
    let kill = |n: i64| Kill {
        timestamp: Timestamp(NOW - 15 * DAY_MS - n * 5 * 60 * MINUTE_MS),
        event_id: Uuid::from_u128(2_000 + n as u128),
        attacker_id: 300,
        target_id: 301 + n,
        damage: 7,
        ability_name: None,
        zone_id: 30,
        server_instance: "zone-1".into(),
    };
    let mut kills: Vec<_> = (0..10).map(kill).collect();
    world.archive.history().insert_many(kills.clone()).await.unwrap();
    let days = range(NOW - 18 * DAY_MS, NOW - 14 * DAY_MS);
    let read = |page| world.archive.kills(days, page);
    assert_eq!(all(3, PageRequest::default(), read).await, kills);
    kills.reverse();
    assert_eq!(all(3, oldest_first(), read).await, kills);
}

pub(crate) async fn play_sessions_by_page(world: &World) {
    let session = |n: i64| PlayerSession {
        player_id: 400,
        session_start: Timestamp(NOW - n * DAY_MS),
        session_end: Timestamp(NOW - n * DAY_MS + 30 * MINUTE_MS),
        zone_id: 40,
        kills: 1,
        deaths: 2,
        damage_dealt: i64::MAX,
        damage_taken: 4,
        playtime_minutes: 30,
        client_version: "1.0".into(),
        server_instance: "zone-1".into(),
        session_id: Uuid::from_u128(n as u128),
    };
    let sessions: Vec<_> = (0..20).map(session).collect();
    world.archive.history().insert_many(sessions.clone()).await.unwrap();
    let read = |page| world.archive.play_sessions(400, None, page);
    assert_eq!(all(6, PageRequest::default(), read).await, sessions);
    let some = range(NOW - 9 * DAY_MS, NOW - 4 * DAY_MS);
    let read = |page| world.archive.play_sessions(400, Some(some), page);
    assert_eq!(all(2, PageRequest::default(), read).await, sessions[5..=9]);
    assert_eq!(all(2, PageRequest::default(), |page| world.archive.play_sessions(401, None, page)).await, []);
}

pub(crate) async fn audit_entries_by_day_type_and_severity(world: &World) {
    let types = [AuditEvent::Login, AuditEvent::Kick, AuditEvent::Suspicious];
    let severities = [Severity::Info, Severity::Critical];
    let entry = |n: usize| AuditEntry {
        timestamp: Timestamp(NOW - n as i64 * 5 * 60 * MINUTE_MS),
        event_id: Uuid::from_u128(3_000 + n as u128),
        event_type: types[n % 3],
        player_id: 500,
        player_ip: Some("2001:db8::7".parse().unwrap()),
        details: Some(br#"{"why":"test"}"#.to_vec()),
        severity: severities[n % 2],
    };
    let entries: Vec<_> = (0..24).map(entry).collect();
    for entry in &entries {
        world.archive.record_audit(entry.clone()).await.unwrap();
    }
    world.archive.record_audit(entries[3].clone()).await.unwrap();
    let days = range(NOW - 10 * DAY_MS, NOW + 1);
    for event_type in [None, Some(AuditEvent::Kick)] {
        for severity in [None, Some(Severity::Critical)] {
            let filter = AuditFilter { event_type, severity };
            let read = |page| world.archive.audit_entries(filter, days, page);
            let is_wanted = |entry: &&AuditEntry| {
                event_type.is_none_or(|wanted| entry.event_type == wanted)
                    && severity.is_none_or(|wanted| entry.severity == wanted)
            };
            let expected: Vec<_> = entries.iter().filter(is_wanted).cloned().collect();
            assert_eq!(all(5, PageRequest::default(), read).await, expected, "{filter:?}");
            let reversed: Vec<_> = expected.into_iter().rev().collect();
            assert_eq!(all(4, oldest_first(), read).await, reversed, "{filter:?}");
        }
    }
    let mut broken = entry(99);
    broken.details = Some(b"{".to_vec());
    assert!(world.archive.record_audit(broken).await.is_err());
}
