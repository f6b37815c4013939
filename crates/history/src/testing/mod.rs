//! The suite that every history store passes: tables of each kind, and the cases.
//!
//! A store's tests open it with [`schema`] and a clock at [`NOW`], and call [`run_all`]. Each case uses players
//! and zones of its own, so that one store serves all of them.

mod bad_input;
mod cases;
mod logs;
mod tables;
mod totals;
mod writes;

pub use tables::{
    AllTimeBoard, CombatEvent, DailyScore, HitType, Name, PlayerSession, PlayerStats, Profile, Sample,
    Visits, ZoneMetrics, event, kills,
};

use crate::{History, HistorySchema};
use std::future::Future;
use std::pin::Pin;

/// The time at which the clock of a tested store stands: noon of 2024-01-10.
pub const NOW: i64 = 1_704_888_000_000;

/// The tables of the suite.
pub fn schema() -> HistorySchema {
    HistorySchema::new()
        .table::<CombatEvent>()
        .table::<Profile>()
        .table::<PlayerSession>()
        .table::<DailyScore>()
        .table::<AllTimeBoard>()
        .table::<ZoneMetrics>()
        .table::<Name>()
        .table::<Sample>()
        .totals::<PlayerStats>()
        .totals::<Visits>()
}

type Case = for<'h> fn(&'h History) -> Pin<Box<dyn Future<Output = ()> + Send + 'h>>;

macro_rules! list {
    ($($module:ident: [$($case:ident),* $(,)?]),* $(,)?) => {
        /// The cases with their names.
        pub const CASES: &[(&str, Case)] = &[$($((stringify!($case), |history| Box::pin($module::$case(history))),)*)*];
    };
}

list! {
    cases: [
        rows_come_back_whole, a_row_written_again_is_one_row, ranges_in_both_directions, bounds_of_time,
        days_follow_each_other, lookups, lookups_follow_an_upsert, pages, uuids_sort_as_in_cql,
        expired_rows_are_not_written,
    ],
    writes: [
        replaced_rows, deleted_rows, optional_columns, versions_in_any_order, removals_by_version, rows_replaced_together,
        versions_in_windows, claims, claims_that_are_replaced, claims_that_are_removed, indexes_of_claims, one_winner, one_winner_of_a_replacement,
    ],
    totals: [
        totals_add_up, totals_are_exact_under_replay, two_deliverers_at_once, closed_sources,
        last_updated_is_that_of_the_entries, several_totals_together,
    ],
    logs: [positions_of_logs, one_consumer_advances, dead_letters],
    bad_input: [
        numbers_that_are_not_finite, times_out_of_range, rows_over_the_limits, cursors_that_were_changed,
        ranges_out_of_bounds, unknown_texts, entries_out_of_order, keys_that_stand_twice, versions_out_of_range,
        log_states_out_of_bounds,
    ],
}

/// Runs every case on a store.
pub async fn run_all(history: &History) {
    for (name, case) in CASES {
        tracing::info!(name, "case");
        case(history).await;
    }
}
