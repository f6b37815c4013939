//! The behaviour of rooms on the embedded engine, a real Redis and a real Redis Cluster.

mod party_cases;

use emberkeep_games::party::{CloseReason, Error, Event, ROOM_STATE};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::{Clock, ManualClock, Options};
use emberkeep_hot::journal::Durability;
use emberkeep_testkit::{on_every_engine, scratch};
use party_cases::{DAY_MS, Party, code_of, player};
use proptest::prelude::*;
use std::sync::Arc;

on_every_engine!(mod party = party_cases {
    a_created_room_is_an_empty_lobby_of_the_documents_shape,
    the_master_key_is_stored_as_its_digest_only,
    a_key_that_is_not_the_rooms_leads_nothing,
    a_code_that_is_in_use_is_not_given_again,
    an_unknown_room_is_not_found,
    a_closed_room_leaves_no_key,
    a_proof_of_a_closed_room_is_nothing_to_its_successor,
    a_corrupt_state_is_named_and_the_room_can_be_closed,
    a_room_whose_keys_are_of_other_types_can_be_closed,
    a_join_is_refused_to_another_version,
    a_room_of_another_version_is_refused_and_can_be_closed,
    after_an_external_close_what_is_left_of_a_room_ends_by_itself,
    a_room_is_set_up_once,
    a_setup_that_makes_no_sense_is_refused,
    players_are_added_renamed_and_deleted,
    a_full_room_takes_no_more_players,
    a_device_renames_its_own_player,
    after_the_start_players_and_setup_are_fixed,
    a_device_takes_a_player_and_gives_it_up,
    what_is_taken_is_taken,
    checks_come_in_the_order_of_the_document,
    a_player_that_is_deactivated_loses_its_device,
    a_player_that_is_deleted_loses_its_device,
    a_reset_makes_all_players_free_and_tells_each_device,
    half_a_claim_is_none_but_in_the_way,
    half_a_claim_that_can_never_be_whole_is_replaced,
    a_device_whose_player_was_deleted_takes_another,
    a_vote_and_its_receipt_are_stored_as_the_document_says,
    the_first_vote_counts,
    a_selection_is_one_to_k_different_selectable_senders,
    with_the_last_vote_the_vote_ends,
    only_a_device_with_a_player_votes_and_only_on_what_is_open,
    a_forced_close_counts_down_once,
    the_first_call_after_the_countdown_ends_the_vote_at_its_moment,
    the_vote_ends_when_those_who_have_not_voted_go,
    a_vote_is_its_players_whichever_device_cast_it,
    the_vote_of_a_deactivated_player_counts_and_of_a_deleted_one_does_not,
    without_a_voter_the_master_ends_the_vote,
    a_device_that_comes_back_votes_on,
    votes_on_an_item_that_was_left_behind_are_late_and_gone,
    a_game_starts_with_two_active_players_all_taken,
    a_whole_game_is_played_and_counted,
    items_are_opened_in_their_order,
    points_are_added_once_and_when_they_are_shown,
    a_forced_close_needs_an_open_vote,
    before_the_reveal_only_the_master_sees_votes_and_true_senders,
    everybody_sees_all_players_and_senders,
    the_master_sees_more_on_top_of_the_same,
    an_open_item_is_shown_with_its_choices,
    what_other_services_wrote_survives_our_transactions,
    every_change_is_recorded_and_wakes_followers,
    a_close_is_the_last_word,
    a_message_only_wakes_and_the_log_decides,
    a_state_says_from_where_to_follow,
    a_client_that_was_away_for_long_learns_what_it_missed,
    events_are_sent_to_those_whom_they_concern,
    a_log_that_was_set_back_is_of_a_living_room,
    an_entry_that_is_ahead_of_its_log_is_a_gap,
    an_event_that_cannot_be_read_stops_no_reader,
    a_log_that_an_external_client_corrupted_begins_anew,
    a_log_goes_on_behind_an_element_of_an_external_client,
    what_is_due_is_among_the_news_and_in_their_state,
    a_device_can_ask_how_it_lost_its_player,
    a_loss_is_found_without_the_log,
    a_loss_that_was_settled_is_not_reported_again,
    a_vote_shows_in_no_number_that_players_see,
    a_device_that_is_known_shows_its_token_in_a_strict_room,
    an_open_room_takes_the_id_and_http_wants_the_token,
    a_roster_of_a_former_version_learns_the_key_of_the_devices,
    ids_with_names_of_javascript_objects_are_read_and_not_created,
    a_device_with_a_player_and_no_token_is_refused_in_a_strict_room,
    the_devices_that_a_room_remembers_are_bounded,
    a_locked_room_lets_no_unknown_device_in,
    a_banned_device_neither_joins_nor_takes_a_player,
    another_game_is_played_in_the_same_room,
    of_many_masters_one_brings_the_room_back,
    a_ban_beside_claims_of_the_device_leaves_it_without_a_player,
    a_lock_beside_joins_is_the_end_of_them,
    every_operation_moves_the_end_of_every_key,
    a_look_at_the_log_or_an_idle_timer_keeps_no_room_alive,
    an_expired_room_says_so_and_its_leftovers_go,
    a_room_whose_state_is_gone_has_expired,
    a_roster_that_was_lost_is_made_again,
    a_key_that_lost_its_end_gets_it_back,
    a_name_of_another_room_in_the_roster_does_no_harm,
    of_64_devices_each_player_gets_one,
    of_many_votes_of_one_player_one_counts,
    votes_beside_the_end_of_the_vote_count_or_are_late,
    many_timers_end_a_vote_once,
    a_close_beside_other_calls_leaves_nothing,
    an_external_vote_counts_like_ours,
    a_vote_that_an_external_service_completes_ends_with_the_next_look,
    external_votes_beyond_the_rules_count_as_far_as_they_go,
    votes_that_were_cast_before_the_item_was_open_do_not_count,
    leftovers_under_a_code_do_not_enter_a_new_room,
});

/// A store with a manual clock.
fn store_with_a_clock() -> (Store, ManualClock) {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Options::default().clock(Clock::Manual(clock.clone())).open().unwrap();
    (Store::new(Arc::new(engine)), clock)
}

#[tokio::test]
async fn a_room_of_the_party_lives_a_day_and_is_remembered_for_another() {
    let (store, clock) = store_with_a_clock();
    let party = Party::voting(&store, 2).await;
    clock.advance(DAY_MS as u64);
    party.sync(1).await;
    clock.advance(DAY_MS as u64 + 1);
    let expired = Error::RoomExpired(party.code);
    assert_eq!(party.rooms.sync(party.code, None).await.unwrap_err(), expired);
    assert_eq!(party.rooms.close(&party.master).await, Err(expired.clone()));
    assert_eq!(party.names().await, ["meta"]);
    clock.advance(DAY_MS as u64 - 1);
    assert_eq!(party.take(1, 1).await, Err(expired));
    clock.advance(1);
    assert_eq!(party.take(1, 1).await, Err(Error::RoomNotFound(party.code)));
    assert_eq!(party.keys().await, []);
}

#[tokio::test]
async fn a_party_countdown_ends_to_the_millisecond() {
    let (store, clock) = store_with_a_clock();
    let party = Party::voting(&store, 3).await;
    let closes_at = party.rooms.force_close_vote(&party.master).await.unwrap();
    assert_eq!(closes_at, clock.now() + 10_000);
    clock.advance(9_999);
    party.vote(1, &[1]).await.unwrap();
    clock.advance(1);
    assert_eq!(party.vote(2, &[1]).await, Err(Error::Late));
    clock.advance(5_000);
    party.sync(1).await;
    let ends = party.events().await;
    let ends: Vec<_> = ends.iter().filter(|event| matches!(event, Event::VoteClosed { .. })).collect();
    assert!(
        matches!(ends[..], [Event::VoteClosed { closed_at, reason: CloseReason::Forced, .. }] if *closed_at == closes_at)
    );
}

#[tokio::test]
async fn a_party_in_a_vote_survives_a_crash_with_its_deadline() {
    let (folder, clock) = (scratch(), ManualClock::at(1_700_000_000_000));
    let open = || {
        let options = Options::default().clock(Clock::Manual(clock.clone())).data(folder.join("data"));
        Store::new(Arc::new(options.durability(Durability::Always).open().unwrap()))
    };
    let store = open();
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1, 2]).await.unwrap();
    let closes_at = party.rooms.force_close_vote(&party.master).await.unwrap();
    let before = (party.state().await, party.events().await, party.all_end_together().await);
    let kept = (party.code, party.key.clone());
    // A killed process leaves what was synced: nothing is closed.
    drop((party, store));
    let store = open();
    let rooms = emberkeep_games::party::Rooms::new(store.clone());
    let master = rooms.master(kept.0, &kept.1).await.unwrap();
    let scope = store.scope(emberkeep_games::party::Room(kept.0));
    let party = Party { rooms, store: store.clone(), scope, code: kept.0, key: kept.1, master };
    assert_eq!((party.state().await, party.events().await, party.all_end_together().await), before);
    clock.set(closes_at);
    assert_eq!(party.vote(2, &[1]).await, Err(Error::Late));
    let ends = party.events().await;
    assert!(matches!(ends.last(), Some(Event::VoteClosed { closed_at, .. }) if *closed_at == closes_at));
    party.rooms.reveal(&party.master).await.unwrap();
    assert_eq!(party.sync(1).await.scores.0[&player(1)], 2);
}

#[test]
fn random_party_programs_do_what_the_model_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    proptest!(|(program in party_cases::program::programs())| {
        let (store, clock) = store_with_a_clock();
        runtime.block_on(party_cases::program::run(store, clock, program));
    });
}

#[tokio::test]
async fn a_party_store_that_cannot_be_asked_is_an_error_and_no_free_code() {
    let (store, _) = store_with_a_clock();
    let party = Party::set_up(&store, 2).await;
    store.close().await.unwrap();
    assert_eq!(code_of(party.rooms.create().await), "unavailable");
    assert_eq!(code_of(party.rooms.sync(party.code, None).await), "unavailable");
    assert_eq!(code_of(party.take(1, 1).await), "unavailable");
    assert!(store.scope(emberkeep_games::party::Room(party.code)).get(&ROOM_STATE.key()).await.is_err());
}
