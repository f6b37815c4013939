//! The behaviour of DarkAges' hot state on the embedded engine, a real Redis and a real Redis Cluster.

mod darkages_cases;

use darkages_cases::{City, HERE};
use emberkeep_games::darkages::{
    DarkAges, EntityId, LoginRequest, POSITION, Position, SESSION, ZoneId, limits,
};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::engine::Stats;
use emberkeep_testkit::{on_every_engine, unlisted_cases};
use std::sync::Arc;

// One suite: cases share the outboxes, and must not run in parallel.
on_every_engine!(mod darkages = darkages_cases {
    a_login_writes_the_documents_keys,
    a_second_login_replaces_the_first_or_is_refused,
    of_64_logins_one_session_is_left_and_each_is_recorded,
    a_logout_leaves_nothing_behind,
    a_session_of_another_program_keeps_its_fields,
    changes_are_bounded,
    a_malformed_session_is_an_error_that_names_its_key,
    a_player_is_in_one_zone,
    members_without_a_session_are_not_returned,
    of_64_moves_at_once_one_zone_is_left,
    messages_of_all_types_reach_the_subscribers_of_a_zone,
    messages_of_other_programs_arrive_as_they_are,
    a_gap_in_the_messages_is_reported,
    messages_that_are_too_long_are_refused,
    a_connection_has_the_fields_of_the_document,
    connections_end_with_the_session,
    connections_of_strangers_are_refused,
    connections_of_other_programs_keep_their_fields,
    events_beyond_the_limit_are_refused,
    rate_limits_without_a_window_are_refused,
    of_64_events_at_once_the_limit_is_admitted,
    a_connection_belongs_to_who_opened_it_last,
    ids_of_connections_are_those_of_all_shards,
    being_hit_is_no_activity,
    a_position_that_comes_after_the_logout_is_not_found,
    positions_are_in_the_shard_of_their_player,
    expired_sessions_are_found_behind_living_ones,
    a_session_that_another_program_replaced_has_ended,
    a_player_who_moved_and_then_acted_has_its_place,
    a_move_takes_the_position_along_and_activity_keeps_the_zone,
    members_are_counted_without_reading_their_sessions,
    players_of_other_programs_are_counted,
    a_member_whose_known_end_has_come_is_looked_at_again,
    ten_thousand_members_are_counted_and_kept,
    a_heartbeat_writes_positions_into_sessions,
    moving_sends_messages_to_both_zones,
    players_within_the_radius_are_found,
    a_cached_query_is_used_while_it_is_young_enough,
    queries_that_cannot_be_answered_are_refused,
    a_position_that_cannot_be_read_hides_no_other,
    one_of_64_hits_kills_and_each_is_recorded,
    a_hit_needs_a_living_target_and_valid_arguments,
    a_creature_hits_without_statistics,
    an_expired_session_is_closed_once,
    a_play_record_that_cannot_be_read_does_not_stop_the_sweep,
    a_key_of_a_wrong_type_stops_only_its_own_closing,
    a_session_of_another_program_is_closed_when_it_expires,
    a_living_session_is_not_closed,
    an_older_position_never_replaces_a_newer_one,
    thousands_of_positions_are_set_at_once,
    positions_that_are_not_numbers_are_refused,
    a_position_of_a_wrong_type_holds_up_no_hand_off,
    a_bulk_update_replaces_what_has_no_time,
    the_newer_position_of_session_and_player_counts,
    fights_are_in_history_once,
    a_hand_off_within_a_shard_is_one_transaction,
    a_hand_off_between_shards_is_accepted_once,
    hand_offs_within_and_between_shards_are_alike,
    of_64_logins_into_different_shards_one_session_is_left,
    a_login_in_another_shard_ends_the_first_session,
    players_of_different_shards_do_not_fight,
    a_hit_on_a_player_who_leaves_names_the_target,
    a_logout_on_the_way_ends_the_session_once,
    a_refused_arrival_goes_back,
    a_departure_that_was_only_announced_is_undone,
    a_session_that_the_directory_does_not_know_is_closed,
    a_player_who_was_kept_is_not_lost,
    a_login_or_logout_ends_a_player_who_was_kept,
    a_kick_that_was_only_begun_is_completed,
    of_64_logins_that_refuse_one_begins,
    a_login_that_refuses_waits_for_one_that_begins,
    a_lost_entry_is_restored_from_the_session,
    a_session_of_another_program_gets_an_entry,
    players_of_many_zones_are_handed_off_at_once,
    an_arrival_that_cannot_be_read_is_left_alone,
    sessions_of_another_program_survive_many_sweeps_at_once,
    a_session_of_another_program_survives_a_hand_off,
    a_broken_player_does_not_stop_the_sweep_of_a_shard,
    sweeps_beside_hand_offs_end_no_session,
    the_entry_of_an_arrival_ends_with_it,
    a_player_in_no_zone_returns_to_its_shard,
    an_accepted_arrival_closes_what_was_left_there,
    thousands_of_arrivals_are_listed_in_part,
    a_kill_is_on_the_boards_within_a_second,
    boards_are_totals_are_sums_of_events,
    boards_go_on_without_history,
    boards_take_scores_before_history_is_back,
    a_rename_is_on_the_boards,
    lost_boards_come_back_from_history,
    a_login_is_noted_in_the_profile,
    a_ban_ends_the_session_and_is_audited_once,
    a_ban_of_a_player_without_a_profile_is_refused,
    a_ban_and_a_login_at_once_leave_no_session,
    suspicious_activity_is_audited,
});

#[test]
fn every_case_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/darkages_cases");
    assert_eq!(unlisted_cases(include_str!("darkages.rs"), folder), [""; 0]);
}

/// A session lives through the millisecond of its deadline, and is closed with its last activity.
#[tokio::test]
async fn a_session_of_darkages_expires_an_hour_after_the_last_activity() {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    let game = DarkAges::new(store.clone(), "zone-1").unwrap();
    let session = game.login(LoginRequest::new(7, "client", ZoneId(3), HERE())).await.unwrap();
    let entity = emberkeep_games::darkages::EntityId(7);
    let life = i64::try_from(limits::SESSION_LIFE.as_millis()).unwrap();
    clock.advance(life as u64 / 2);
    game.touch(entity).await.unwrap();
    clock.advance(life as u64);
    assert!(game.session(entity).await.unwrap().is_some(), "in its last millisecond");
    assert_eq!(game.close_expired(10).await.unwrap().closed, 0);
    clock.advance(1);
    assert!(game.session(entity).await.unwrap().is_none());
    assert_eq!(game.expired(10).await.unwrap(), [entity]);
    assert_eq!(game.close_expired(10).await.unwrap().closed, 1);
    let city = City::of(&store);
    let ends = city.play_ends(7).await;
    assert_eq!((ends.len(), ends[0].ended_at), (1, session.login_time + life / 2));
    assert!(!game.scope().exists(&SESSION.key(entity)).await.unwrap());
    assert_eq!(game.close_expired(10).await.unwrap(), Default::default(), "closed once");
}

/// Two sessions that begin in one millisecond have keys of their own in history.
#[tokio::test]
async fn two_sessions_of_darkages_in_one_millisecond_begin_apart() {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock)).open().unwrap();
    let game = DarkAges::new(Store::new(Arc::new(engine)), "zone-1").unwrap();
    let mut starts = Vec::new();
    for _ in 0..3 {
        let session = game.login(LoginRequest::new(7, "client", ZoneId(3), HERE())).await.unwrap();
        starts.push(session.login_time - 1_700_000_000_000);
        game.logout(emberkeep_games::darkages::EntityId(7)).await.unwrap();
    }
    assert_eq!(starts, [0, 1, 2]);
    for entity in [100, 101] {
        let entity = Some(emberkeep_games::darkages::EntityId(entity));
        let request = LoginRequest { entity, ..LoginRequest::new(7, "client", ZoneId(3), HERE()) };
        starts.push(game.login(request).await.unwrap().login_time - 1_700_000_000_000);
    }
    assert_eq!(starts, [0, 1, 2, 3, 4], "also as another entity");
}

/// A session after a clock that went back begins behind the last one, in the future. Its positions are of now.
#[tokio::test]
async fn positions_of_darkages_count_after_a_clock_that_went_back() {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let game = DarkAges::new(Store::new(Arc::new(engine)), "zone-1").unwrap();
    let (entity, request) = (EntityId(7), || LoginRequest::new(7, "client", ZoneId(3), HERE()));
    let first = game.login(request()).await.unwrap();
    game.logout(entity).await.unwrap();
    clock.set(1_700_000_000_000 - 2_400_000);
    let second = game.login(request()).await.unwrap();
    assert!(second.login_time > first.login_time, "two sessions of a player begin apart, and in order");
    let at = |x: f64, at: i64| Position { x, y: 0.0, z: 0.0, at };
    let moved = at(5.0, clock.now() + 10);
    assert_eq!(game.set_positions(vec![(entity, moved)]).await.unwrap().written, 1);
    assert_eq!(game.position(entity).await.unwrap(), Some(moved));
    clock.advance(20);
    assert_eq!(game.heartbeat(ZoneId(3)).await.unwrap().moved, 1);
    let session = game.session(entity).await.unwrap().unwrap();
    assert_eq!(session.position.x, 5.0);
    game.set_positions(vec![(entity, at(6.0, clock.now()))]).await.unwrap();
    game.move_to(entity, ZoneId(4)).await.unwrap();
    assert_eq!(game.session(entity).await.unwrap().unwrap().position.x, 6.0);
    game.scope().put(&POSITION.key(entity), at(9.0, session.last_activity - 1_000)).await.unwrap();
    assert_eq!(game.position(entity).await.unwrap().unwrap().x, 6.0, "one of before the login");
}

/// Calls to the server between two counts.
fn calls(before: Stats, after: Stats) -> u64 {
    after.commit_calls + after.read_calls - before.commit_calls - before.read_calls
}

/// What another process wrote is not in the cache of this one: a hit reads all of it at once, and commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hit_and_a_sweep_of_darkages_take_few_round_trips() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let connect = || async { Store::new(emberkeep_hot_redis::RedisEngine::connect(&url).await.unwrap()) };
    let (writer, reader) = (City::of(&connect().await), connect().await);
    for number in 0..24 {
        writer.login(number).await;
    }
    let game = DarkAges::new(reader.clone(), "zone-2").unwrap();
    let hit = |number| darkages_cases::hit(writer.player(number), writer.player(number + 1), 1);
    game.damage(hit(22)).await.unwrap();
    let before = reader.stats().unwrap();
    for number in (0..20).step_by(2) {
        game.damage(hit(number)).await.unwrap();
    }
    assert_eq!(calls(before, reader.stats().unwrap()), 20, "each hit reads once and commits once");
    let reader = connect().await;
    let game = DarkAges::new(reader.clone(), "zone-2").unwrap();
    for number in 0..20 {
        writer.make_due(writer.player(number)).await;
    }
    let before = reader.stats().unwrap();
    assert_eq!(game.close_expired(20).await.unwrap().alive, 20);
    let taken = calls(before, reader.stats().unwrap());
    assert!(taken <= 4, "the queue, all deadlines, the commit: {taken}");
}
