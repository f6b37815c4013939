//! The primitives' behaviours on the embedded engine, a real Redis and a real Redis Cluster.

mod cases;

use emberkeep_testkit::{on_every_engine, on_two_connections, unlisted_cases};

on_every_engine!(mod id_pools = cases::id_pool {
    ids_are_counted_and_the_counter_wraps,
    released_ids_come_first_and_the_last_one_before_the_others,
    when_every_id_lives_the_pool_is_exhausted,
    a_pool_larger_than_a_transaction_is_searched_to_its_end,
    the_one_free_id_is_found_wherever_it_is,
    an_id_that_stands_twice_in_the_free_list_is_given_once,
    an_id_outside_of_the_range_is_not_taken_in,
    takers_at_the_same_time_get_different_ids,
    a_released_id_rests_before_it_is_handed_out_again,
    a_living_id_that_rests_is_not_handed_out,
});

on_every_engine!(mod due_queue = cases::due_queue {
    what_is_due_comes_first_and_once,
    a_later_word_replaces_an_earlier_one,
    each_deadline_is_handed_to_one_caller,
    what_is_no_member_is_dropped_when_its_time_comes,
    a_driver_handles_what_is_due_in_order,
    a_driver_wakes_for_an_earlier_deadline,
    an_entry_that_fails_is_reported_and_does_not_stop_the_others,
    many_drivers_share_a_queue,
});

on_every_engine!(mod cooldowns = cases::cooldown {
    a_skill_cools_down_for_its_time,
    times_out_of_bounds_are_refused,
    one_owners_cooldowns_go_together,
    more_cooldowns_than_a_transaction_clears,
    an_external_marker_counts_and_can_be_adopted,
    rubbish_in_the_index_holds_nothing_up,
    an_index_that_is_none_holds_nothing_up,
});

on_every_engine!(mod log_feeds = cases::log_feed {
    entries_count_once_and_in_order,
    many_feeds_apply_each_entry_once,
    an_entry_is_applied_within_a_second,
    a_log_that_is_set_back_does_not_count_again,
    entries_that_cannot_be_applied_do_not_stop_the_others,
    entries_wait_for_a_rebuild,
    numbered_entries_count_once,
});

on_every_engine!(mod claims = cases::claim {
    each_side_is_taken_once,
    a_release_frees_both_sides,
    half_a_claim_belongs_to_no_owner_and_blocks_others,
    two_halves_that_disagree_are_no_claim_and_can_be_released,
    of_many_takers_each_right_has_one,
});

on_every_engine!(mod ballots = cases::ballot {
    the_first_vote_of_each_counts,
    nothing_counts_at_or_after_the_deadline,
    an_external_vote_counts_with_or_without_its_receipt,
    votes_are_struck_and_cleared_with_their_receipts,
    of_many_votes_of_one_voter_one_counts,
});

on_every_engine!(mod presence = cases::presence {
    a_connection_is_listed_while_its_record_exists,
    a_closed_connection_cannot_be_renewed,
    all_connections_of_an_owner_are_closed_at_once,
    a_record_that_another_owner_took_is_left_alone,
});

on_every_engine!(mod groups = cases::expiring_group {
    all_keys_of_a_group_get_one_end,
    a_group_goes_whole,
    a_key_leaves_its_group,
    strange_names_on_a_roster_are_dropped,
});

on_every_engine!(mod indexes = cases::index {
    a_record_and_its_entry_come_and_go_together,
    stale_entries_are_not_listed_and_are_pruned,
    a_record_that_cannot_be_read_does_not_hide_the_others,
    an_index_larger_than_a_reply_is_listed_whole,
    an_index_of_any_size_is_read_in_pages,
    an_id_that_comes_back_is_not_pruned,
    a_sweep_repairs_what_is_never_read,
    a_turn_of_a_sweep_takes_many_small_indexes,
    an_index_that_is_no_set_does_not_stop_a_sweep,
    a_record_of_another_partition_is_no_member,
});

on_every_engine!(mod records = cases::record {
    a_record_is_created_once,
    changes_at_the_same_time_are_all_made,
    what_others_wrote_stays_in_its_bytes,
    a_rule_may_leave_it_as_it_is,
    a_broken_record_is_named_and_stays,
});

on_every_engine!(mod idempotency = cases::once {
    a_repeated_request_gets_the_first_answer,
    an_id_with_other_parameters_is_refused,
    a_refusal_is_stored_only_if_it_is_asked_for,
    a_corrupt_receipt_stops_the_call,
    of_many_calls_with_one_id_one_runs,
});

on_every_engine!(mod directories = cases::directory {
    a_claim_names_what_is_behind,
    a_claim_that_compares_is_refused_if_the_entry_changed,
    a_realm_admits_no_lower_number,
    a_move_is_begun_and_confirmed,
    an_entry_that_was_lost_is_confirmed_again,
    what_has_ended_is_nowhere,
    a_kept_state_outlives_the_end_of_its_departure,
    of_64_claims_one_state_is_left,
});

on_every_engine!(mod leases = cases::lease {
    one_holder_at_a_time_and_the_epoch_grows,
    a_holder_renews_and_releases_its_own_lease_only,
    a_restarted_holder_fences_its_former_self,
    an_epoch_survives_the_loss_of_its_key,
    bad_times_holders_and_epochs_are_refused,
    of_many_acquirers_one_wins,
});

on_every_engine!(mod rate_limits = cases::rate_limit {
    events_are_admitted_up_to_the_limit,
    a_limit_is_part_of_the_callers_transaction,
    events_leave_the_window,
    events_of_other_services_count,
    the_key_lives_as_long_as_the_window,
    limits_out_of_bounds_are_refused,
    of_many_events_at_once_the_limit_is_admitted,
});

on_every_engine!(mod leaderboards = cases::leaderboard {
    players_stand_by_score_then_time_then_id,
    scores_and_ids_are_exact_at_their_limits,
    ids_are_texts_and_uuids_too,
    a_score_that_is_set_again_keeps_its_time,
    an_overflow_is_refused_and_writes_nothing,
    a_transaction_reads_its_own_changes,
    windows_end_at_the_board,
    a_board_is_reset_and_its_positions_stay,
    an_entry_of_a_log_counts_once,
    adds_at_the_same_time_are_all_counted,
    a_rebuild_replaces_the_board_and_refuses_changes,
    a_rebuild_that_was_left_is_cancelled,
    a_rebuild_to_nothing_does_not_restore_lost_players,
    a_board_that_disagrees_is_refused_and_repaired,
    reads_of_a_damaged_board_name_its_key,
    ranks_among_ten_thousand,
});

on_every_engine!(mod mail_between_partitions = cases::mail {
    letters_arrive_once_and_in_order,
    a_letter_leaves_only_with_its_transaction,
    a_letter_that_was_not_removed_has_no_second_effect,
    a_lost_counter_loses_no_letter,
    a_refused_letter_is_dead_and_blocks_nothing,
    full_dead_letters_keep_the_next_one_waiting,
    a_full_outbox_refuses,
    a_receiver_that_fails_keeps_only_its_own_mail,
    couriers_find_all_senders,
    many_couriers_deliver_each_letter_once,
});

#[tokio::test]
async fn a_driver_follows_the_engines_clock() {
    cases::due_queue::a_driver_follows_the_engines_clock().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_agree_with_a_model() {
    cases::once::calls_agree_with_a_model().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_moves_leave_at_most_one_current_state() {
    cases::directory_model::random_moves_leave_at_most_one_current_state().await;
}

#[tokio::test]
async fn a_lease_agrees_with_a_model() {
    cases::lease::a_lease_agrees_with_a_model().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_agrees_with_a_model() {
    cases::rate_limit::a_limit_agrees_with_a_model().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_agrees_with_a_model() {
    cases::leaderboard::a_board_agrees_with_a_model().await;
}

#[tokio::test]
async fn both_keys_of_a_board_expire_together() {
    cases::leaderboard::both_keys_expire_together().await;
}

#[tokio::test]
async fn events_of_the_far_future_do_not_count() {
    cases::rate_limit::events_of_the_far_future_do_not_count().await;
}

#[tokio::test]
async fn errors_of_a_handler_are_logged_and_counted() {
    cases::due_queue::errors_of_a_handler_are_logged_and_counted().await;
}

#[tokio::test]
async fn many_ids_rest_to_the_millisecond() {
    cases::id_pool::many_ids_rest_to_the_millisecond().await;
}

#[tokio::test]
async fn cooldowns_end_and_their_index_stays_short() {
    cases::cooldown::cooldowns_end_and_their_index_stays_short().await;
}

#[tokio::test]
async fn a_record_that_ended_by_its_ttl_leaves_a_stale_entry() {
    cases::index::a_record_that_ended_by_its_ttl_leaves_a_stale_entry().await;
}

on_two_connections!(mod two_id_processes = cases::id_pool {
    two_processes_take_different_ids,
});

on_two_connections!(mod two_due_queue_processes = cases::due_queue {
    two_processes_share_what_is_due,
    drivers_of_two_processes_share_a_queue,
});

on_two_connections!(mod two_clients_of_one_request = cases::once {
    two_processes_repeat_a_request,
});

on_two_connections!(mod two_claims = cases::directory {
    claims_of_two_processes_leave_one_state,
});

on_two_connections!(mod two_holders = cases::lease {
    two_processes_acquire_one_lease,
});

on_two_connections!(mod two_limited_processes = cases::rate_limit {
    two_processes_share_a_limit,
});

on_two_connections!(mod two_processes_of_a_board = cases::leaderboard {
    two_processes_add_and_apply_exactly,
});

on_two_connections!(mod two_courier_processes = cases::mail {
    couriers_of_two_processes_deliver_each_letter_once,
});

/// A case that is written and not listed would never run.
#[test]
fn every_case_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    assert_eq!(unlisted_cases(include_str!("primitives.rs"), folder), [""; 0]);
}
