//! The behaviour of monsters on the embedded engine, a real Redis and a real Redis Cluster.

mod monsters_cases;

use emberkeep_testkit::{on_every_engine, on_two_connections, scratch, unlisted_cases};

// One suite: sweeps and teardowns visit the whole store, so cases on a server must not run in parallel.
on_every_engine!(mod monsters = monsters_cases {
    a_spawned_monster_is_in_its_record_and_in_its_field,
    a_field_lists_its_own_monsters_only,
    a_field_of_any_size_is_read_in_pages,
    a_stale_entry_is_not_listed_and_is_pruned,
    an_index_entry_of_a_monster_elsewhere_is_pruned,
    a_corrupt_record_does_not_hide_the_others,
    a_member_that_is_no_id_does_not_hide_the_others,
    a_monster_moves_within_its_field,
    a_monster_moves_to_another_field_whole,
    a_monster_that_many_move_is_in_one_field,
    ids_are_counted_from_the_start_of_the_range,
    the_id_that_was_released_last_is_handed_out_first,
    spawns_at_the_same_time_get_different_ids,
    a_lost_counter_hands_out_no_living_id,
    a_counter_outside_of_the_range_re_enters_it,
    a_counter_that_is_no_number_is_an_error_that_names_its_key,
    rubbish_in_the_free_list_is_dropped,
    of_many_removals_one_wins_and_the_id_is_released_once,
    an_id_rests_before_it_comes_back,
    a_lost_counter_hands_out_no_resting_id,
    a_rest_over_the_limit_is_refused,
    a_lost_rest_brings_no_id_back_early,
    a_monster_without_health_is_not_spawned,
    hits_at_the_same_time_are_all_counted_and_one_kills,
    a_hit_on_a_corpse_changes_nothing,
    a_hit_of_nothing_is_refused,
    damage_over_time_never_kills_and_is_credited,
    the_leader_did_most_in_sum,
    entries_stay_bounded_and_totals_exact,
    healing_stops_at_the_full_health,
    a_corpse_is_not_healed_and_does_nothing,
    mana_is_clamped,
    control_changes_hands_and_only_its_holder_releases_it,
    of_many_releases_one_wins,
    an_effect_is_stored_in_the_names_that_others_read,
    the_same_status_replaces_and_others_stay,
    venom_stacks_to_three_and_the_one_that_ends_soonest_leaves,
    effects_at_the_same_time_replace_one_another,
    an_effect_that_makes_no_sense_is_refused,
    a_monster_bears_no_more_effects_than_the_bound,
    effects_are_cancelled_by_id_by_name_or_all,
    ticks_are_damage_credited_to_who_cast_the_effect,
    poison_leaves_the_last_point_of_health,
    an_effect_that_ended_leaves_after_its_last_tick,
    each_tick_is_handed_to_one_caller,
    at_most_the_limit_is_run_and_the_longest_overdue_first,
    a_corpse_suffers_no_more,
    a_deadline_without_its_monster_is_dropped,
    a_corrupt_record_does_not_stop_the_effects_of_others,
    a_skill_cools_down_until_its_marker_ends,
    cooldowns_are_cleared_one_by_one_or_all,
    a_cooldown_of_nothing_or_of_too_long_is_refused,
    a_marker_of_another_service_counts,
    a_recycled_id_inherits_no_cooldown_of_the_one_that_was_removed,
    a_recycled_id_inherits_nothing_of_one_that_was_deleted,
    more_cooldowns_than_a_transaction_clears_go_with_their_monster,
    cooldowns_of_tenants_are_their_own,
    a_timer_is_stored_in_the_names_that_others_read,
    a_drop_comes_after_its_period_once_and_again,
    a_hit_puts_the_next_drop_off,
    each_drop_is_handed_to_one_caller,
    a_timer_is_unregistered_once,
    a_timer_of_a_dead_monster_goes_with_it,
    a_period_of_nothing_or_of_too_long_is_refused,
    a_corrupt_timer_does_not_stop_the_others,
    a_hit_that_another_service_noted_counts,
    a_monster_of_another_tenant_is_not_found,
    a_monster_that_vanished_between_two_calls_is_not_found,
    an_id_out_of_range_is_not_found,
    what_other_services_wrote_survives_a_hit,
    what_other_services_wrote_survives_everything_else,
    a_record_that_is_no_monster_is_an_error_and_stays,
    a_record_that_names_another_id_does_no_harm,
    a_removal_takes_everything_of_a_monster,
    nothing_brings_a_removed_monster_back,
    a_field_is_destroyed_whole_and_others_stay,
    a_field_of_more_than_a_transaction_reads_is_listed_and_destroyed,
    a_teardown_leaves_nothing_of_a_tenant_and_others_alone,
    a_teardown_lets_ids_rest,
    a_teardown_of_all_leaves_nothing_of_any_tenant,
    a_corrupt_cooldown_index_stops_no_removal_and_no_spawn,
    corrupt_deadlines_stop_no_spawn_no_kill_and_no_removal,
    an_id_that_cannot_be_released_stops_no_removal,
    damage_that_no_hits_add_up_to_is_a_corrupt_monster,
    a_field_whose_index_is_corrupt_can_be_cleared,
    a_teardown_leaves_nothing_whatever_is_corrupt,
    a_sweep_prunes_stale_entries_and_finds_orphans,
    a_sweep_removes_keys_without_a_record,
    a_sweep_makes_known_what_other_services_wrote,
    a_second_sweep_finds_nothing_to_do,
    a_sweep_names_what_it_cannot_read_and_leaves_it,
    a_sweep_goes_on_turn_by_turn,
    a_monsters_record_is_that_of_the_services_beside_us,
    a_service_beside_us_reads_every_record_of_ours,
    damage_above_32_bits_stays_exact_in_entries_of_32_bits,
    a_record_of_a_service_beside_us_survives_our_writes,
    records_of_the_former_shape_are_read_and_written_in_the_present_one,
    a_sweep_mends_lists_that_a_script_left_as_objects,
    a_teardown_keeps_what_says_which_ids_are_in_use,
    whatever_many_do_at_once_everything_stays_together,
});

#[tokio::test]
async fn deadlines_are_met_to_the_millisecond() {
    monsters_cases::deadlines_are_met_to_the_millisecond().await;
}

#[tokio::test]
async fn timers_survive_a_restart() {
    let folder = scratch();
    monsters_cases::timers_survive_a_restart(folder.path()).await;
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_is_an_error() {
    monsters_cases::a_store_that_cannot_be_asked_is_an_error().await;
}

on_two_connections!(mod two_monster_processes = monsters_cases {
    two_processes_share_what_is_due,
});

/// A case that is not listed would never run.
#[test]
fn every_case_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/monsters_cases");
    assert_eq!(unlisted_cases(include_str!("monsters.rs"), folder), [""; 0]);
}
