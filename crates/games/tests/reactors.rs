//! The behaviour of reactors on the embedded engine, a real Redis and a real Redis Cluster.

mod reactors_cases;

use emberkeep_games::reactors::{Error, REACTOR, REACTORS_ALL};
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::embedded::{Clock, ManualClock, Options};
use emberkeep_hot::{Store, engine::Stats};
use emberkeep_testkit::{on_every_engine, on_two_connections, unlisted_cases};
use proptest::prelude::*;
use reactors_cases::World;
use std::sync::Arc;
use std::time::Duration;

// One suite: sweeps and teardowns visit the whole store, so cases on a server must not run in parallel.
on_every_engine!(mod reactors = reactors_cases {
    a_created_reactor_is_in_its_record_and_in_both_indexes,
    a_reactor_of_no_classification_is_refused,
    a_delay_out_of_bounds_is_refused,
    texts_out_of_bounds_are_refused,
    a_second_reactor_on_a_spot_is_refused_and_the_first_is_named,
    what_differs_in_kind_place_field_or_tenant_is_another_spot,
    of_64_creations_on_one_spot_one_wins,
    where_an_external_reactor_stands_none_of_64_creations_wins,
    creations_beside_external_ones_in_the_same_field_are_decided_once,
    creations_on_many_spots_at_once_all_win,
    a_field_of_a_thousand_takes_no_more_and_can_be_destroyed,
    a_field_of_more_than_a_transaction_reads_is_full_of_the_living_only,
    ids_are_counted_up_from_the_counter,
    the_counter_wraps_and_passes_over_the_living,
    a_lost_counter_hands_out_no_living_id,
    a_counter_outside_of_the_range_re_enters_it,
    a_counter_that_is_text_is_an_error_that_names_its_key,
    an_allocated_id_is_used_once,
    an_id_out_of_range_is_refused_and_never_found,
    ids_that_are_allocated_at_once_differ,
    hits_walk_the_states_and_the_last_one_triggers,
    the_skill_chooses_the_way,
    a_hit_stamps_the_time,
    hits_at_the_same_time_each_advance_or_lose,
    a_hit_that_triggers_starts_the_cooldown,
    a_reactor_that_vanished_between_two_calls_is_not_found,
    an_update_changes_and_stamps,
    an_update_of_what_changed_meanwhile_is_a_conflict_that_shows_it,
    of_64_updates_of_one_reading_one_wins,
    updates_by_closure_are_all_made,
    an_update_moves_no_reactor,
    a_destroyed_reactor_leaves_nothing_but_its_cooldown,
    without_a_delay_nothing_cools_down,
    of_64_destructions_one_wins,
    a_destroyed_field_is_empty_and_nothing_in_it_cools_down,
    a_field_is_destroyed_alone,
    an_empty_field_leaves_no_key_behind,
    a_field_lists_its_own_reactors,
    a_field_is_asked_by_name,
    all_of_a_tenant_are_its_own_over_all_fields,
    all_of_a_tenant_are_read_in_pages,
    a_stale_entry_of_an_external_delete_is_not_listed_and_is_pruned,
    a_stale_entry_holds_no_spot,
    an_entry_of_a_reactor_elsewhere_is_no_member,
    a_corrupt_record_is_named_and_hides_no_other,
    a_corrupt_record_closes_its_own_spot_only,
    rubbish_in_an_index_is_dropped,
    no_reactor_is_created_on_a_spot_that_cools_down,
    a_cooldown_is_of_one_spot_of_one_field_of_one_tenant,
    a_cooldown_that_is_started_again_begins_again,
    a_cooldown_of_nothing_starts_nothing,
    a_cooldown_out_of_bounds_is_refused,
    one_cooldown_is_cleared_alone,
    a_fields_cooldowns_are_cleared_together_and_no_others,
    an_external_marker_counts_whatever_it_holds,
    an_external_marker_goes_with_its_field_after_a_sweep,
    what_other_services_wrote_survives_a_hit,
    what_is_only_read_stays_byte_for_byte,
    a_record_without_a_tenant_is_unreadable_not_everybodys,
    a_corrupt_hint_costs_nothing_but_a_look,
    a_hint_alone_refuses_no_creation,
    a_sweep_removes_stale_entries_and_brings_orphans_home,
    a_sweep_sets_right_what_is_remembered_of_spots,
    after_a_teardown_neither_reactors_nor_cooldowns_are_left,
    a_teardown_leaves_other_tenants_alone,
    a_teardown_leaves_and_names_what_does_not_say_whose_it_is,
    a_teardown_removes_a_corrupt_index_and_who_says_that_he_is_there,
    a_teardown_of_all_leaves_nothing_of_anybody,
    corrupt_keys_stop_no_end,
    a_field_with_corrupt_hints_is_destroyed,
    ids_go_on_after_a_teardown,
    the_reactor_of_another_tenant_is_not_found,
    the_cooldown_of_another_tenant_is_none,
    tenants_creating_at_once_share_no_id_on_one_server,
});

/// A store with a manual clock.
fn store_with_a_clock() -> (Store, ManualClock) {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Options::default().clock(Clock::Manual(clock.clone())).open().unwrap();
    (Store::new(Arc::new(engine)), clock)
}

#[tokio::test]
async fn a_spot_has_cooled_down_after_the_delay_and_not_before() {
    let (store, clock) = store_with_a_clock();
    let world = World::new(&store);
    let reactor = world.create_with_delay(1, 5_000).await;
    world.reactors.destroy(world.tenant, reactor.id).await.unwrap();
    clock.advance(4_999);
    let early = world.reactors.create(world.tenant, world.request(1)).await;
    assert_eq!(early, Err(Error::OnCooldown { remaining: Duration::from_millis(1) }));
    // A key lives through its last millisecond, as on Redis.
    clock.advance(2);
    world.create(1).await;
    assert_eq!(world.reactors.cooldown_remaining(world.tenant, world.field, world.spot(1)).await, Ok(None));
}

#[tokio::test]
async fn a_stale_entry_of_an_expired_record_is_pruned_and_holds_no_spot() {
    let (store, clock) = store_with_a_clock();
    let world = World::new(&store);
    let (stale, living) = (world.create(1).await, world.create(2).await);
    let json = world.stored(&REACTOR.key(stale.id)).await.unwrap();
    world.external(&REACTOR.key(stale.id), Write::Set(json.into(), Expiry::At(clock.now() + 1_000))).await;
    assert_eq!(world.listed().await, [stale.id, living.id]);
    clock.advance(1_001);
    assert_eq!(world.listed().await, [living.id]);
    assert_eq!(world.indexed().await, [living.id]);
    world.create(1).await;
}

#[tokio::test]
async fn an_update_is_stamped_with_the_engines_time() {
    let (store, clock) = store_with_a_clock();
    let world = World::new(&store);
    let reactor = world.create(1).await;
    assert_eq!(reactor.update_time.ms(), Some(clock.now()));
    assert_eq!(reactor.update_time.to_string(), "2023-11-14T22:13:20.000Z");
    clock.advance(1_234);
    let hit = world.reactors.hit(world.tenant, reactor.id, reactors_cases::HERO, 0).await.unwrap();
    assert_eq!(hit.reactor.update_time.to_string(), "2023-11-14T22:13:21.234Z");
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_is_an_error_and_no_free_spot() {
    let (store, _) = store_with_a_clock();
    let world = World::new(&store);
    let reactor = world.create(1).await;
    store.close().await.unwrap();
    let refused = |error: Error| assert!(matches!(error, Error::Store(_)), "{error:?}");
    refused(world.reactors.create(world.tenant, world.request(2)).await.unwrap_err());
    refused(world.reactors.get(world.tenant, reactor.id).await.unwrap_err());
    refused(world.reactors.in_field(world.tenant, world.field).await.unwrap_err());
    let remaining = world.reactors.cooldown_remaining(world.tenant, world.field, world.spot(1)).await;
    refused(remaining.unwrap_err());
    refused(world.reactors.allocate_id(world.tenant).await.unwrap_err());
}

#[tokio::test]
async fn a_corrupt_index_of_all_stops_no_end() {
    let (store, _) = store_with_a_clock();
    let world = World::new(&store);
    let (one, other) = (world.create(1).await, world.create(2).await);
    world.external_set(&REACTORS_ALL.key(), "no set").await;
    world.reactors.destroy(world.tenant, one.id).await.unwrap();
    let report = world.reactors.teardown(world.tenant).await.unwrap();
    assert_eq!((report.reactors, report.discarded), (1, vec![]), "it is not this tenant's alone");
    assert_eq!(world.stored(&REACTOR.key(other.id)).await, None);
    let report = world.reactors.teardown_all().await.unwrap();
    assert_eq!((report.discarded.len(), world.stored(&REACTORS_ALL.key()).await), (1, None), "{report:?}");
}

#[test]
fn random_programs_do_what_the_model_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    proptest!(|(program in reactors_cases::program::programs())| {
        let (store, clock) = store_with_a_clock();
        runtime.block_on(reactors_cases::program::run(store, clock, program));
    });
}

/// Calls to the server between two counts.
fn calls(before: Stats, after: Stats) -> u64 {
    after.commit_calls + after.read_calls - before.commit_calls - before.read_calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_takes_two_round_trips() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let engine = emberkeep_hot_redis::RedisEngine::connect(&server.fresh_db()).await.unwrap();
    let store = Store::new(engine);
    let world = World::new(&store);
    world.create(0).await;
    let before = store.stats().unwrap();
    for x in 1..=10 {
        world.create(x).await;
    }
    assert_eq!(calls(before, store.stats().unwrap()), 20, "each creation reads once and commits once");
}

on_two_connections!(mod two_reactor_processes = reactors_cases {
    of_two_processes_one_creates_and_one_destroys,
});

/// A case that is not listed would never run.
#[test]
fn every_case_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reactors_cases");
    assert_eq!(unlisted_cases(include_str!("reactors.rs"), folder), [""; 0]);
}
