//! Positions: in any order of arrival the newest counts.

use super::City;
use emberkeep_games::darkages::{EntityId, Error, POSITION, Point, Position, Positioned, SESSION};
use emberkeep_hot::command::Write;
use emberkeep_hot::{self as hot, Store};

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
        Positioned { written: 2, outdated: 1, refused: 0 }
    );
    let late = city.game.set_positions(vec![(entity, at(9.0, now)), (entity, at(9.0, now + 50))]).await;
    assert_eq!(late.unwrap(), Positioned { written: 0, outdated: 2, refused: 0 });
    let found = city.game.positions(&[entity, city.player(2)]).await.unwrap();
    assert_eq!(found, [Some(at(3.0, now + 50)), None]);
}

pub async fn thousands_of_positions_are_set_at_once(store: Store) {
    let city = City::of(&store);
    let now = store.now().await.unwrap();
    let entities: Vec<EntityId> = (0..900).map(|number| city.player(number)).collect();
    let positions = entities.iter().zip(0..).map(|(entity, x)| (*entity, at(f64::from(x), now))).collect();
    let done = city.game.set_positions(positions).await.unwrap();
    assert_eq!(done, Positioned { written: 900, outdated: 0, refused: 0 });
    let found = city.game.positions(&entities).await.unwrap();
    assert!(found.iter().zip(0..).all(|(found, x)| *found == Some(at(f64::from(x), now))));
}

pub async fn positions_that_are_not_numbers_are_refused(store: Store) {
    let city = City::of(&store);
    let (entity, other) = (city.player(1), city.player(2));
    for x in [f64::NAN, f64::INFINITY] {
        let refused = city.game.set_positions(vec![(other, at(0.0, 1)), (entity, at(x, 1))]).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "position", .. })), "{refused:?}");
    }
    assert_eq!(city.game.positions(&[other]).await.unwrap(), [None], "nothing was written");
    city.external_set(&POSITION.key(entity), "1234.5,0.0").await;
    let failed = city.game.positions(&[entity]).await;
    let Err(Error::Store(error @ hot::Error::Corrupt { .. })) = failed else { panic!("{failed:?}") };
    assert!(error.to_string().contains(&format!("player:{}:pos", entity.0)), "{error}");
}

pub async fn a_bulk_update_goes_on_at_positions_of_other_programs(store: Store) {
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
    assert_eq!(done, Positioned { written: 2, outdated: 1, refused: 1 });
    let found = city.game.positions(&[malformed, newer, own]).await.unwrap();
    let theirs = Position { x: 1.0, y: 2.0, z: 3.0, at: now + 5 };
    assert_eq!(found, [Some(at(7.0, now)), Some(theirs), Some(at(7.0, now))]);
    let failed = city.game.positions(&[other_type]).await;
    assert!(matches!(failed, Err(Error::Store(hot::Error::WrongType { .. }))), "{failed:?}");
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
    assert_eq!(city.game.positions(&[entity]).await.unwrap(), [Some(moved)]);
    let limits = [EntityId(i64::MIN), EntityId(i64::MAX)];
    let far = Position { x: f64::MAX, y: f64::MIN, z: 5e-324, at: i64::MAX };
    city.game.set_positions(limits.map(|entity| (entity, far)).into()).await.unwrap();
    assert_eq!(city.game.positions(&limits).await.unwrap(), [Some(far), Some(far)]);
}
