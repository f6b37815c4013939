//! Shards that are partitions of their own, on the embedded engine with the key layout of a Cluster and a clock of the test's
//! own: expiry and clock jumps during a hand-off.

#[allow(dead_code, unused_imports)]
mod darkages_cases;

use darkages_cases::City;
use emberkeep_games::darkages::{
    ADMITTED, ARRIVAL, ARRIVALS_DUE, DEPARTED, DIRECTORY, DirectoryChecked, Entity, EntityId, Error, HandOff,
    LoginPolicy, LoginRequest, PLAY, SESSION, ZONE_ARRIVALS, limits,
};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_schema::KeyLayout;
use std::sync::Arc;

const START: i64 = 1_700_000_000_000;

fn split_store() -> (Store, ManualClock) {
    let clock = ManualClock::at(START);
    let options = Embedded::builder().clock(Clock::Manual(clock.clone())).layout(KeyLayout::cluster());
    (Store::new(Arc::new(options.check_closures(true).open().unwrap())), clock)
}

/// The cases that behave differently between partitions.
macro_rules! on_partitions {
    ($($case:ident),* $(,)?) => {
        mod on_partitions {
            $(
                #[tokio::test]
                async fn $case() {
                    super::darkages_cases::$case(super::split_store().0).await;
                }
            )*
        }
    };
}

on_partitions!(
    a_login_writes_the_documents_keys,
    a_logout_leaves_nothing_behind,
    a_player_is_in_one_zone,
    one_of_64_hits_kills_and_each_is_recorded,
    an_expired_session_is_closed_once,
    a_hand_off_within_a_shard_is_one_transaction,
    a_hand_off_between_shards_is_accepted_once,
    hand_offs_within_and_between_shards_are_alike,
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
    positions_are_in_the_shard_of_their_player,
    a_position_of_a_wrong_type_holds_up_no_hand_off,
    ids_of_connections_are_those_of_all_shards,
    a_connection_belongs_to_who_opened_it_last,
    being_hit_is_no_activity,
    a_session_that_another_program_replaced_has_ended,
    a_player_who_moved_and_then_acted_has_its_place,
);

fn life() -> u64 {
    limits::SESSION_LIFE.as_millis() as u64
}

async fn begin(store: &Store) -> (City, EntityId) {
    let city = City::of_shards(store);
    let (entity, _) = city.login(1).await;
    let begun = city.game.hand_off(city.to(entity, city.zone(11))).await.unwrap();
    assert!(matches!(begun, HandOff::InTransit { .. }));
    (city, entity)
}

#[tokio::test]
async fn an_arrival_that_no_server_accepts_goes_back_in_time() {
    let (store, clock) = split_store();
    let (city, entity) = begin(&store).await;
    clock.advance(limits::ARRIVAL_WAIT.as_millis() as u64 - 1);
    assert_eq!(city.game.sweep_hand_offs(10).await.unwrap().returned, 0);
    clock.advance(1);
    assert_eq!(city.game.sweep_hand_offs(10).await.unwrap().returned, 1);
    let session = city.game.session(entity).await.unwrap().expect("it is back");
    assert_eq!((session.zone_id, city.copies(entity).await), (city.zone(1).0, 1));
    assert_eq!(city.members(city.zone(1)).await, [entity.0]);
    assert!(city.play_ends(entity.0).await.is_empty());
    let zone = city.zone(11);
    assert_eq!(city.game.accept(entity, zone).await, Err(Error::NotArrived { entity, zone }));
    city.hand_over(entity, zone).await;
    assert_eq!(city.copies(entity).await, 1);
}

#[tokio::test]
async fn a_session_that_expires_on_its_way_is_recorded_once() {
    let (store, clock) = split_store();
    let (city, entity) = begin(&store).await;
    clock.advance(life() + 1);
    let done = city.game.sweep_hand_offs(10).await.unwrap();
    assert_eq!((done.closed, done.returned), (1, 0));
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].ended_at, city.copies(entity).await), (1, START, 0));
    assert_eq!(city.game.session(entity).await, Ok(None));
    assert_eq!(city.game.sweep_hand_offs(10).await.unwrap(), Default::default());
    // The same if a zone server accepts it too late.
    let (city, entity) = begin(&store).await;
    clock.advance(life() + 1);
    assert_eq!(city.game.accept(entity, city.zone(11)).await, Err(Error::NotLoggedIn { entity }));
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (0, 1));
    assert_eq!(city.game.session(entity).await, Ok(None));
    city.game.login(city.request(1)).await.unwrap();
}

#[tokio::test]
async fn a_session_that_expired_before_it_could_leave_is_recorded_once() {
    let (store, clock) = split_store();
    let city = City::of_shards(&store);
    let (entity, _) = city.login(1).await;
    clock.advance(life() + 1);
    let late = city.game.hand_off(city.to(entity, city.zone(11))).await;
    assert_eq!(late, Err(Error::NotLoggedIn { entity }));
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (0, 1));
    assert_eq!(city.game.close_expired(10).await.unwrap().closed, 0);
    assert_eq!(city.game.session(entity).await, Ok(None));
}

/// It was announced to leave, its process ended, and it expired where it was. Nor does a logout find it.
#[tokio::test]
async fn a_session_that_was_to_leave_and_expired_is_over() {
    let (store, clock) = split_store();
    let city = City::of_shards(&store);
    let (entity, _) = city.login(1).await;
    let entry = store.scope(Entity(entity));
    let mut moving = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    (moving.from, moving.home) = (Some(moving.home.clone()), "2".into());
    moving.number += 1;
    entry.put(&DIRECTORY.key(), moving).await.unwrap();
    clock.advance(life() + 1);
    assert_eq!(city.game.close_expired(10).await.unwrap().closed, 1);
    assert_eq!(city.game.session(entity).await, Ok(None), "it is on its way to nowhere");
    assert_eq!(city.play_ends(entity.0).await.len(), 1);
    let (entity, _) = city.login(2).await;
    clock.advance(life() + 1);
    assert_eq!(city.game.logout(entity).await, Err(Error::NotLoggedIn { entity }), "as on one server");
    assert_eq!(city.play_ends(entity.0).await.len(), 1);
}

#[tokio::test]
async fn the_sweep_closes_what_expired_in_every_shard() {
    let (store, clock) = split_store();
    let city = City::of_shards(&store);
    for (number, zone) in [(1, 1), (2, 11), (3, 21)] {
        city.game.login(LoginRequest { zone: city.zone(zone), ..city.request(number) }).await.unwrap();
    }
    clock.advance(limits::DIRECTORY_CHECK_EVERY.as_millis() as u64);
    let done = city.game.close_expired(10).await.unwrap();
    assert_eq!((done.alive, done.closed), (3, 0), "compared once a minute");
    assert_eq!(city.game.close_expired(10).await.unwrap().alive, 0);
    clock.advance(life() + 1);
    let of_one = city.game.in_zone(city.zone(11));
    assert_eq!(of_one.expired(10).await.unwrap(), [city.player(2)]);
    assert_eq!(city.game.expired(10).await.unwrap().len(), 3);
    assert_eq!(of_one.close_expired(10).await.unwrap().closed, 1);
    assert_eq!(city.game.close_expired(10).await.unwrap().closed, 2);
    for number in 1..=3 {
        assert_eq!(city.play_ends(city.player(number).0).await.len(), 1);
    }
}

/// An entry lives as long as the sweep sees its session, not three hours.
#[tokio::test]
async fn an_active_player_stays_in_the_directory() {
    let (store, clock) = split_store();
    let city = City::of_shards(&store);
    let (entity, _) = city.login(1).await;
    for _ in 0..10 {
        clock.advance(life() - 1);
        city.game.in_zone(city.zone(1)).touch(entity).await.unwrap();
        city.game.close_expired(10).await.unwrap();
    }
    assert!(city.game.session(entity).await.unwrap().is_some());
}

/// A failover left nothing of a player but its entry. One who was only about to log in has no play session.
#[tokio::test]
async fn a_player_of_whom_nothing_is_left_is_logged_out_and_recorded() {
    let (store, clock) = split_store();
    let city = City::of_shards(&store);
    let check = limits::DIRECTORY_CHECK_EVERY.as_millis() as u64;
    for (number, was_seen) in [(1, true), (2, false)] {
        let (entity, session) = city.login(number).await;
        if was_seen {
            clock.advance(check);
            assert_eq!(city.game.close_expired(10).await.unwrap().alive, 1);
        }
        let seen = store.now().await.unwrap();
        city.scope.del(&SESSION.key(entity)).await.unwrap();
        city.scope.del(&PLAY.key(entity)).await.unwrap();
        city.scope.del(&ADMITTED.key(entity)).await.unwrap();
        if !was_seen {
            clock.advance(check - 1);
            assert_eq!(city.game.check_directory(None).await.unwrap().ended, 0, "it is young");
        }
        clock.advance(check);
        assert_eq!(city.game.check_directory(None).await.unwrap().ended, 1);
        assert_eq!(city.game.check_directory(None).await.unwrap(), DirectoryChecked::default());
        let ends = city.play_ends(entity.0).await;
        let expected: &[_] = if was_seen { &[(session.login_time, seen)] } else { &[] };
        let ends: Vec<_> = ends.iter().map(|end| (end.play.login_time, end.ended_at)).collect();
        assert_eq!(ends, expected);
        assert_eq!(city.game.session(entity).await, Ok(None));
        let request = LoginRequest { existing: LoginPolicy::Refuse, ..city.request(number) };
        city.game.login(request).await.unwrap();
        city.game.logout(entity).await.unwrap();
    }
}

/// The player of an entity is another one: it has the play session, not who has the number of the entity.
#[tokio::test]
async fn a_lost_entity_is_recorded_for_its_player() {
    let (store, clock) = split_store();
    let city = City::of_shards(&store);
    let check = limits::DIRECTORY_CHECK_EVERY.as_millis() as u64;
    let entity = city.player(5);
    city.game.login(LoginRequest { entity: Some(entity), ..city.request(1) }).await.unwrap();
    city.hand_over(entity, city.zone(11)).await;
    clock.advance(check);
    assert_eq!(city.game.close_expired(10).await.unwrap().alive, 1);
    for scope in city.game.scopes() {
        scope.del(&SESSION.key(entity)).await.unwrap();
        scope.del(&PLAY.key(entity)).await.unwrap();
        scope.del(&ADMITTED.key(entity)).await.unwrap();
        scope.del(&DEPARTED.key(entity)).await.unwrap();
    }
    clock.advance(2 * check);
    assert_eq!(city.game.check_directory(None).await.unwrap().ended, 1);
    let of = async |number| city.play_ends(city.player(number).0).await.len();
    assert_eq!((of(1).await, of(5).await), (1, 0));
}

/// A player who comes back from a shard that was set back comes from there: who refuses it does not keep it in a zone of
/// another shard.
#[tokio::test]
async fn a_restored_player_who_is_refused_goes_where_it_went() {
    let (store, clock) = split_store();
    let (city, entity) = begin(&store).await;
    let (source, target) = (city.zone(1), city.zone(11));
    let there = city.game.scope_of(target);
    there.del(&ARRIVAL.key(entity)).await.unwrap();
    there.del(&ADMITTED.key(entity)).await.unwrap();
    there.del(&ZONE_ARRIVALS.key(target)).await.unwrap();
    there.del(&ARRIVALS_DUE.key()).await.unwrap();
    clock.advance(2 * limits::DIRECTORY_CHECK_EVERY.as_millis() as u64);
    assert_eq!(city.game.check_directory(None).await.unwrap().restored, 1);
    city.game.refuse(entity, source).await.unwrap();
    city.game.sweep_hand_offs(10).await.unwrap();
    let session = city.game.session(entity).await.unwrap().expect("it is logged in");
    assert_eq!((session.zone_id, city.copies(entity).await), (target.0, 1));
    assert!(there.exists(&SESSION.key(entity)).await.unwrap(), "in the shard of its zone");
    assert_eq!(city.members(target).await, [entity.0]);
}

/// Each step of a hand-off at another time, up to 40 minutes ahead of or behind the last one.
#[tokio::test]
async fn a_clock_that_jumps_loses_no_player() {
    let (store, clock) = split_store();
    let city = City::of_shards(&store);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut jump = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        clock.set(START + (random >> 33) as i64 % 2_400_000);
    };
    let (entity, session) = city.login(1).await;
    for round in 0..100 {
        jump();
        let zone = city.zone([11, 21, 1][round % 3]);
        city.game.hand_off(city.to(entity, zone)).await.unwrap();
        jump();
        if round % 4 == 0 {
            city.game.refuse(entity, zone).await.unwrap();
        } else {
            city.game.accept(entity, zone).await.unwrap();
        }
        jump();
        city.make_due(entity).await;
        city.game.close_expired(10).await.unwrap();
        city.game.sweep_hand_offs(10).await.unwrap();
        assert_eq!(city.copies(entity).await, 1, "round {round}");
        let found = city.game.session(entity).await.unwrap().expect("it is logged in");
        assert_eq!(found.login_time, session.login_time);
        // Round 0 ends where it began, so each hand-off goes to another shard.
        if round % 4 == 0 {
            city.hand_over(entity, zone).await;
        }
    }
    assert!(city.play_ends(entity.0).await.is_empty());
    let again = city.game.login(city.request(1)).await.unwrap();
    assert!(again.login_time > session.login_time);
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (1, 1));
    assert!(store.scope(Entity(entity)).exists(&DIRECTORY.key()).await.unwrap());
}
