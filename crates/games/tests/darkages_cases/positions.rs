//! Positions: in any order of arrival the newest counts.

use super::City;
use emberkeep_games::darkages::{
    EntityId, Error, LoginRequest, NearbyRequest, POSITION, Point, Position, PositionsReport, SESSION,
};
use emberkeep_hot::command::Write;
use emberkeep_hot::{self as hot, Store};
use emberkeep_schema::Name;

fn at(x: f64, at: i64) -> Position {
    Position { x, y: 0.0, z: -1.5, at }
}

pub async fn an_older_position_never_replaces_a_newer_one(store: Store) {
    let city = City::of(&store);
    let entity = city.player(1);
    let now = store.now().await.unwrap();
    let both = vec![(entity, at(2.0, now)), (entity, at(1.0, now - 50)), (entity, at(3.0, now + 50))];
    assert_eq!(
        city.game.set_positions(both).await.unwrap(),
        PositionsReport { written: 2, outdated: 1, absent: 0 }
    );
    let late = city.game.set_positions(vec![(entity, at(9.0, now)), (entity, at(9.0, now + 50))]).await;
    assert_eq!(late.unwrap(), PositionsReport { written: 0, outdated: 2, absent: 0 });
    let found = city.game.positions(&[entity, city.player(2)]).await.unwrap();
    assert_eq!(found, [Ok(Some(at(3.0, now + 50))), Ok(None)]);
}

pub async fn thousands_of_positions_are_set_at_once(store: Store) {
    let city = City::of(&store);
    let now = store.now().await.unwrap();
    let entities: Vec<EntityId> = (0..900).map(|number| city.player(number)).collect();
    let positions = entities.iter().zip(0..).map(|(entity, x)| (*entity, at(f64::from(x), now))).collect();
    let done = city.game.set_positions(positions).await.unwrap();
    assert_eq!(done, PositionsReport { written: 900, outdated: 0, absent: 0 });
    let found = city.game.positions(&entities).await.unwrap();
    assert!(found.iter().zip(0..).all(|(found, x)| *found == Ok(Some(at(f64::from(x), now)))));
}

pub async fn positions_that_are_not_numbers_are_refused(store: Store) {
    let city = City::of(&store);
    let (entity, other) = (city.player(1), city.player(2));
    for x in [f64::NAN, f64::INFINITY] {
        let refused = city.game.set_positions(vec![(other, at(0.0, 1)), (entity, at(x, 1))]).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "position", .. })), "{refused:?}");
    }
    assert_eq!(city.game.positions(&[other]).await.unwrap(), [Ok(None)], "nothing was written");
    city.external_set(&POSITION.key(entity), "1234.5,0.0").await;
    let now = store.now().await.unwrap();
    city.game.set_positions(vec![(other, at(4.0, now))]).await.unwrap();
    let found = city.game.positions(&[entity, other]).await.unwrap();
    assert_eq!(found[1], Ok(Some(at(4.0, now))), "one that cannot be read hides no other");
    let Err(error @ hot::Error::Corrupt { .. }) = &found[0] else { panic!("{found:?}") };
    assert!(error.to_string().contains(&format!("player:{}:pos", entity.0)), "{error}");
}

pub async fn a_bulk_update_replaces_what_has_no_time(store: Store) {
    let city = City::of(&store);
    let now = store.now().await.unwrap();
    let (malformed, other_type, newer, own) =
        (city.player(1), city.player(2), city.player(3), city.player(4));
    city.external_set(&POSITION.key(malformed), "1,2,not a number,4").await;
    city.external(&POSITION.key(other_type), Write::SAdd(vec!["a".into()])).await;
    let text = format!("1,2,3,{}", now + 5);
    city.external_set(&POSITION.key(newer), &text).await;
    let all = [malformed, other_type, newer, own];
    let done = city.game.set_positions(all.map(|entity| (entity, at(7.0, now))).into()).await.unwrap();
    assert_eq!(done, PositionsReport { written: 3, outdated: 1, absent: 0 });
    let found = city.game.positions(&all).await.unwrap();
    let (ours, theirs) = (at(7.0, now), Position { x: 1.0, y: 2.0, z: 3.0, at: now + 5 });
    assert_eq!(found, [Ok(Some(ours)), Ok(Some(ours)), Ok(Some(theirs)), Ok(Some(ours))]);
    let life = city.scope.deadline_of(&POSITION.key(other_type)).await.unwrap().unwrap() - now;
    assert!((120_000..130_000).contains(&life), "{life}");
}

pub async fn the_newer_position_of_session_and_player_counts(store: Store) {
    let city = City::of(&store);
    let (entity, session) = city.login(1).await;
    let Point { x, y, z, .. } = session.position;
    let of_login = Position { x, y, z, at: session.login_time };
    assert_eq!(city.game.position(entity).await.unwrap(), Some(of_login));
    let moved = at(5.0, session.login_time + 10);
    city.game.set_positions(vec![(entity, moved)]).await.unwrap();
    assert_eq!(city.game.position(entity).await.unwrap(), Some(moved));
    city.scope.put(&POSITION.key(entity), at(9.0, session.login_time - 1)).await.unwrap();
    assert_eq!(city.game.position(entity).await.unwrap(), Some(of_login), "one of an earlier session");
    city.scope.del(&POSITION.key(entity)).await.unwrap();
    assert_eq!(city.game.position(entity).await.unwrap(), Some(of_login), "it expired");
    city.scope.del(&SESSION.key(entity)).await.unwrap();
    city.game.set_positions(vec![(entity, moved)]).await.unwrap();
    assert_eq!(city.game.position(entity).await.unwrap(), None, "a session that ended during the update");
    assert_eq!(city.game.positions(&[entity]).await.unwrap(), [Ok(Some(moved))]);
    let limits = [EntityId(i64::MIN), EntityId(i64::MAX)];
    let far = Position { x: f64::MAX, y: f64::MIN, z: 5e-324, at: i64::MAX };
    city.game.set_positions(limits.map(|entity| (entity, far)).into()).await.unwrap();
    assert_eq!(city.game.positions(&limits).await.unwrap(), [Ok(Some(far)), Ok(Some(far))]);
}

pub async fn a_position_that_comes_after_the_logout_is_not_found(store: Store) {
    let city = City::of(&store);
    let ((entity, session), zone) = (city.login(1).await, city.zone(1));
    city.game.logout(entity).await.unwrap();
    city.game.set_positions(vec![(entity, at(5.0, session.login_time + 1))]).await.unwrap();
    assert_eq!(city.game.position(entity).await, Ok(None));
    let request = || NearbyRequest {
        query: Name::new(format!("late-{}", entity.0)).unwrap(),
        zone,
        centre: Point::new(5.0, 0.0, 0.0),
        radius: 100_000.0,
        max_age: std::time::Duration::ZERO,
    };
    assert_eq!(city.game.nearby(request()).await.unwrap().ids, []);
    let session = city.game.login(city.request(1)).await.unwrap();
    let late = city.game.set_positions(vec![(entity, at(5.0, session.login_time - 1))]).await.unwrap();
    assert_eq!((late.written, late.outdated), (0, 1), "nor does one of before the login count");
    assert_eq!(city.game.position(entity).await.unwrap().unwrap().x, session.position.x);
}

pub async fn positions_are_in_the_shard_of_their_player(store: Store) {
    let city = City::of_shards(&store);
    let now = store.now().await.unwrap() + 10;
    let entities = [city.player(1), city.player(2), city.player(3)];
    for (number, zone) in [(1, 1), (2, 11), (3, 21)] {
        let request = LoginRequest { zone: city.zone(zone), ..city.request(number) };
        city.game.login(request).await.unwrap();
    }
    let all = entities.map(|entity| (entity, at(7.0, now)));
    let done = city.game.set_positions(all.into()).await.unwrap();
    assert_eq!(done, PositionsReport { written: 3, outdated: 0, absent: 0 });
    let expected = [Ok(Some(at(7.0, now))), Ok(Some(at(7.0, now))), Ok(Some(at(7.0, now)))];
    assert_eq!(city.game.positions(&entities).await.unwrap(), expected);
    for entity in entities {
        assert_eq!(city.game.position(entity).await.unwrap(), Some(at(7.0, now)));
    }
    for zone in [1, 11, 21] {
        assert_eq!(city.game.heartbeat(city.zone(zone)).await.unwrap().moved, 1);
    }
    let absent = city.game.set_positions(vec![(city.player(9), at(1.0, now))]).await.unwrap();
    assert_eq!(absent.absent, usize::from(city.is_split()), "the directory knows no shard of it");
}

/// What another program left there has no place and no time; it holds up no player.
pub async fn a_position_of_a_wrong_type_holds_up_no_hand_off(store: Store) {
    let city = City::of_shards(&store);
    let (entity, _) = city.login(1).await;
    for zone in [city.zone(2), city.zone(11)] {
        for scope in city.game.scopes() {
            let there = City { scope, ..city.clone() };
            there.external(&POSITION.key(entity), Write::Del).await;
            there.external(&POSITION.key(entity), Write::SAdd(vec!["a".into()])).await;
        }
        city.hand_over(entity, zone).await;
        assert_eq!(city.game.position(entity).await.unwrap().map(|position| position.x), Some(1.0));
    }
    for scope in city.game.scopes() {
        scope.del(&POSITION.key(entity)).await.unwrap();
    }
}
