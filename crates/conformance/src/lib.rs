//! The conformance suite that every engine passes.
//!
//! Responsible for: the cases, the model and the checkers, external clients, the runner.
//! Not responsible for: parts that only one engine has (the journal, the Redis protocol); their tests are
//! beside them.
//!
//! Every case runs on every engine: [`CASES`] is the list, `tests/` has one runner per engine. A case gets a
//! [`Context`] with its own partition, so that one server serves all cases.

#[macro_use]
mod list;
pub mod builders;
pub mod cases;
pub mod context;
pub mod external;
pub mod families;
pub mod history;
pub mod linearizability;
pub mod model;
pub mod random_program;
pub mod replay;
pub mod rng;
pub mod runner;

pub use context::{Backend, Context, Time};
pub use runner::run_all;

use std::future::Future;
use std::pin::Pin;

/// A case: it panics if the engine behaves in another way.
pub type CaseFn = for<'a> fn(&'a Context) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

cases! {
    text: [
        get_and_set, absent_text, empty_text_is_a_text, binary_text, set_replaces_any_type, del_of_nothing,
        increments, increments_at_the_edge, overflows_are_named, floats_and_booleans, typed_text,
    ],
    hash: [
        fields, a_field_named_twice, absent_hash, an_empty_hash_vanishes, increments_of_fields,
        refused_increments_of_fields, increments_of_fields_at_once, several_fields_at_once, typed_hash,
    ],
    set_if_greater: [
        the_greater_number_stays, what_has_no_number_is_replaced, texts_without_a_number_are_refused,
        deadlines_come_with_what_is_set, own_writes_are_compared, increments_of_what_is_greater, strings_that_were_not_set_are_counted,
        many_strings_at_once, the_greatest_of_many_writers_stays, unread_strings_never_conflict,
    ],
    set: [members, members_that_look_like_numbers, absent_set, an_empty_set_vanishes, typed_set],
    sorted_set: [
        members_and_scores, ranges_by_rank, ranges_by_score, ranges_by_bytes, scores_are_exact, minus_zero_is_zero, minus_zero_in_ranges,
        ranks, ranks_among_equals, ranges_of_any_bytes, windows_among_equals, increments_of_scores, typed_ranks,
        absent_sorted_set, an_empty_sorted_set_vanishes, a_long_sorted_set_after_own_writes, typed_sorted_set,
    ],
    list: [
        pushes, pops, pops_of_more_than_there_is, replaced_elements, no_element_to_replace, typed_positions, trims,
        ranges, reversed_ranges, an_empty_list_vanishes, typed_list,
    ],
    many_at_once: [
        many_members_at_once, many_members_with_a_deadline, pages_of_a_large_hash, pages_of_odd_hashes, external_fields,
    ],
    types: [
        every_read_of_a_wrong_type, every_write_on_a_wrong_type, a_transaction_that_contradicts_itself,
        a_wrong_write_that_is_covered_later, an_emptied_collection_has_no_type, typed_errors_name_the_family,
        commits_name_the_family,
    ],
    bounds: [
        replies_of_too_many_elements, ranges_of_too_many_elements, replies_of_too_many_bytes,
        large_values_are_compared_whole, values_of_equal_digests_are_distinguished, writes_out_of_bounds, writes_at_the_bounds, keys_out_of_bounds,
        deadlines_in_the_past, empty_transactions, entries_of_logs_at_the_bounds,
        a_transaction_with_all_the_time_in_the_world,
    ],
    expiry: [
        deadlines_after_writes, deadlines_of_absent_keys, a_key_ends_at_its_deadline, the_last_millisecond,
        an_external_deadline_of_now, equal_deadlines_end_together,
        an_ended_key_is_absent_for_writes, an_external_client_ends_a_key, a_transaction_has_one_time, persistent_families,
        deadlines_if_there_is_none, fixed_families, fixed_families_of_many_writers, refreshed_families, given_families,
        writes_around_the_end_of_a_fixed_life,
    ],
    deadline_before_commit: [single_commits, merged_commits],
    batch_reads: [
        keys_read_together, own_writes_among_many, one_corrupt_value_of_many, too_much_read_together,
        many_reads_of_one_key,
    ],
    plain_reads: [
        plain_words, plain_words_of_absent_keys, plain_words_on_a_wrong_type, plain_words_of_too_much,
        each_value_with_its_own_result, prefetched_reads,
    ],
    set_pages: [
        members_that_stay_throughout, small_sets, walks_that_end_early, pages_of_a_wrong_type, wrong_member_cursors,
        external_members, a_large_typed_set,
    ],
    corrupt: [broken_json, broken_numbers, bytes_that_are_no_text],
    transaction_contract: [
        reruns_draw_the_same_numbers, reads_that_depend_on_the_time, an_error_discards_everything, a_panic_is_an_error,
        a_swallowed_error_commits_no_garbage, a_swallowed_refusal_of_a_write, a_body_that_never_settles,
        dropped_callers_strand_no_other, a_future_dropped_at_its_first_await,
    ],
    closures: [
        arguments_are_lent_to_each_run, a_refused_attempt_undoes_its_part, an_error_in_an_attempt,
        undone_bytes_do_not_count, reads_of_a_refused_attempt_are_validated, families_are_read_together,
        an_error_among_reads_together, a_read_only_transaction_sees_one_moment, update_and_get_or,
        the_store_is_refused_inside_a_closure, the_store_is_free_after_a_panic, a_name_is_reported_and_counted,
        conflicts_are_named,
    ],
    ownership: [
        every_write_of_another_service_is_refused, the_owner_writes_what_it_owns, a_refusal_names_what_is_wrong,
        a_grant_is_of_one_operation, granted_fields_are_written_alone, plain_writes_are_checked_and_reads_are_not,
        a_body_asks_what_it_may_write, a_refusal_inside_an_attempt,
    ],
    isolation: [
        read_only_transactions, reads_made_together, errors_made_of_reads, panics_made_of_reads, writes_made_of_reads, absence_is_validated,
    ],
    log: [
        entries_come_with_their_transaction, refused_transactions_append_nothing, sequences_are_continuous,
        state_and_logs_are_of_one_moment, a_full_log_drops_and_tells, a_full_log_refuses, pages, pages_of_large_entries, encoded_pages, trims,
        trims_of_another_entry,
        trimming_beside_appends, a_log_with_a_given_end, logs_with_a_declared_life, a_log_begins_again,
        a_transaction_sees_its_own_log, numbered_appends_return_their_sequence, a_log_that_refuses_drops_nothing,
        a_passed_deadline_of_an_entry_is_refused, corrupt_logs, overwritten_ends, overwritten_logs,
        a_removal_beside_appends_leaves_nothing,
    ],
    log_removals: [
        removals_and_entries_in_the_order_of_the_body, a_removal_that_is_undone_leaves_the_entries,
        removals_of_a_log_that_drops, a_deadline_after_an_entry,
    ],
    follow: [
        old_and_new_entries, missed_entries, a_log_that_was_set_back, unreadable_entries, a_follower_beside_writers,
        a_follower_of_a_full_log_beside_writers,
    ],
    messages: [
        messages_come_with_their_transaction, channels_and_patterns, order_is_the_order_of_commits, a_slow_subscriber,
        dropping_unsubscribes, a_subscription_begins_at_once,
    ],
    dump: [
        every_type_with_its_deadline, only_the_state_of_the_partition, a_key_of_another_type, keys_larger_than_a_reply,
        a_dump_among_writers,
    ],
    scans: [
        keys_that_live_throughout, glob_patterns, a_hostile_pattern, ended_keys_are_not_returned, typed_scans,
        scans_of_one_partition,
        wrong_cursors,
    ],
    model_comparison: [
        transactions_against_the_model, large_transactions_against_the_model, reads_together_against_the_model,
        two_processes_against_the_model,
    ],
    external_writers: [transactions_beside_plain_commands],
    concurrent_failures: [
        wrong_types_beside_good_transactions, two_opinions_of_one_key, a_key_that_changes_its_type,
        no_reader_sees_what_is_refused, failing_bodies_beside_good_transactions, a_full_log_beside_good_transactions, the_last_place_of_a_log,
        many_fields_of_one_hash,
    ],
    conservation: [totals_are_exact, every_coin_is_banked_once],
    linearizable_histories: [registers, counters, sets, transactions_over_two_keys],
    races: [claims, last_hits, pops],
}

#[cfg(test)]
mod tests {
    use super::CASES;
    use std::collections::BTreeSet;

    /// A case that is written and not listed would never run.
    #[test]
    fn every_case_is_listed_once() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cases");
        let mut written = BTreeSet::new();
        for file in std::fs::read_dir(folder).expect("the folder of the cases") {
            let path = file.expect("a file").path();
            let module = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a source file");
            let names =
                text.split("\npub async fn ").skip(1).map(|rest| rest.split('(').next().unwrap_or(rest));
            written.extend(names.map(|name| format!("{module}::{name}")));
        }
        let listed: BTreeSet<String> = CASES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed.len(), CASES.len(), "a case is listed twice");
        assert_eq!(listed, written);
    }
}
