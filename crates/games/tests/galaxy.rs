//! The behaviour of Galaxy's hot state on the embedded engine, a real Redis and a real Redis Cluster.

mod galaxy_cases;

use emberkeep_testkit::{on_every_engine, unlisted_cases};

// One suite: a store has one galaxy, so cases must not run in parallel.
on_every_engine!(mod galaxy = galaxy_cases {
    unknown_words_are_refused,
    controls_out_of_range_are_refused,
    entities_that_cannot_be_are_refused,
    rates_and_scales_out_of_range_are_refused,
    rules_that_cannot_be_are_refused,
    a_spawned_ship_has_the_fields_of_the_document,
    a_ship_of_another_program_is_read_with_defaults,
    controls_are_stored_and_removed,
    stations_and_gates_have_split_fields,
    bodies_are_created_by_the_initializer,
    a_ship_that_jumps_is_in_the_other_system,
    stale_entries_are_left_out_and_removed_by_their_owner,
    a_removed_ship_takes_everything_along,
    of_32_spawns_of_one_ship_one_succeeds,
    a_login_verifies_the_fleet,
    only_own_ships_are_switched_and_renamed,
    registration_is_open_by_default,
    a_deleted_player_leaves_nothing_behind,
    a_service_writes_only_its_own_families,
    a_granted_field_is_only_that_field,
    a_player_is_online_until_the_last_connection_closes,
    connections_of_a_dead_gateway_are_swept,
    a_renewal_enters_what_was_lost,
    settings_of_the_clock_have_their_defaults_and_texts,
    game_time_meets_utc_by_at_most_5_percent,
    rules_are_listed_by_priority,
    a_ship_has_one_maneuver,
    a_tick_is_in_hashes_chunks_and_keys,
    thousands_of_ships_are_one_tick,
    queued_changes_are_in_the_next_tick,
    a_removed_ship_does_not_come_back,
    a_key_of_another_type_does_not_stop_the_ticks,
    a_staged_tick_is_completed_by_the_next_engine,
    a_stalled_engine_changes_nothing,
    a_step_that_is_not_the_next_one_is_refused,
    readers_beside_ticks_see_whole_ticks,
    a_reset_begins_the_next_generation,
    a_reset_that_was_interrupted_is_completed,
    pinned_ticks_are_kept,
    a_galaxy_of_another_program_is_taken_over,
});

#[test]
fn every_case_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/galaxy_cases");
    assert_eq!(unlisted_cases(include_str!("galaxy.rs"), folder), [""; 0]);
}
