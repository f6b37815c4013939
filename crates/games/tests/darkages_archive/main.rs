//! The archive of DarkAges on the embedded store and on a real Cassandra in both layouts.

mod bad_input;
mod boards;
mod combat;
mod document;
mod gate;
mod interleavings;
mod joined_boards;
mod profiles;
mod recorder;
mod registrations;
mod stores;
mod zones;

use emberkeep_testkit::shared_cassandra;
use std::future::Future;
use std::pin::Pin;
use stores::World;

type Case = for<'w> fn(&'w World) -> Pin<Box<dyn Future<Output = ()> + Send + 'w>>;

macro_rules! list {
    ($($module:ident: [$($case:ident),* $(,)?]),* $(,)?) => {
        const CASES: &[(&str, Case)] = &[$($((stringify!($case), |world| Box::pin($module::$case(world))),)*)*];
    };
}

list! {
    combat: [
        events_by_time_over_several_days, events_by_attacker_target_and_zone, the_kill_feed, play_sessions_by_page,
        audit_entries_by_day_type_and_severity,
    ],
    registrations: [
        a_registered_player_is_found_by_name_and_address, a_name_is_taken_in_any_case, one_of_many_registrations_wins,
        a_paused_registration_loses_its_name, a_paused_registration_loses_its_address, an_unfinished_registration_is_completed_by_its_rival,
        a_player_registers_once, a_taken_address_frees_the_name,
    ],
    profiles: [
        a_rename_frees_the_old_name, one_of_many_renames_wins, an_address_changes, a_paused_rename_keeps_the_old_name,
        logins_and_updates, updates_at_once_are_all_there, bans_end_by_themselves,
    ],
    zones: [reports_are_merged, a_reporter_that_starts_again_counts_on, reports_at_once_end_in_the_whole, a_corrupt_report_is_left_out, a_clock_that_jumps_does_not_stop_a_reporter],
    boards: [scores_move, replays_of_scores_change_nothing, all_time_boards, a_board_is_rebuilt],
    joined_boards: [
        boards_follow_the_fights, recorded_events_are_on_the_boards, boards_of_a_new_hot_store_come_from_history,
    ],
    recorder: [hits_reach_history_once, statistics_of_all_columns, calls_that_are_dropped_count_once, times_that_history_refuses],
    bad_input: [ranges_out_of_order, cursors_of_others, ids_at_their_limits, numbers_that_are_refused, texts_that_are_refused],
}

async fn run_all(world: &World, store: &str) {
    for (name, case) in CASES {
        eprintln!("{store}: {name}");
        case(world).await;
    }
    eprintln!("{} cases on {store}", CASES.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_passes_all_cases() {
    let world = World::embedded();
    run_all(&world, "the embedded store").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cassandra_passes_all_cases_in_the_layout_of_the_document() {
    let Some(cassandra) = shared_cassandra() else { return };
    run_all(&World::cassandra(cassandra, "archive", "document").await, "Cassandra, layout document").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cassandra_passes_all_cases_in_the_scaled_layout() {
    let Some(cassandra) = shared_cassandra() else { return };
    run_all(&World::cassandra(cassandra, "archive_scaled", "scaled").await, "Cassandra, layout scaled").await;
}
