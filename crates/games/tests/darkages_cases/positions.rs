//! Positions: in any order of arrival the newest counts.

use super::City;
use emberkeep_games::darkages::{EntityId, Error, POSITION, Position, Positioned};
use emberkeep_hot::{self as hot, Store};

fn at(x: f64, at: i64) -> Position {
    Position { x, y: 0.0, z: -1.5, at }
}

pub async fn an_older_position_never_replaces_a_newer_one(store: Store) {
    let city = City::of(&store);
    let entity = city.player(1);
    let now = store.now().await.unwrap();
    let both = vec![(entity, at(2.0, now)), (entity, at(1.0, now - 50)), (entity, at(3.0, now + 50))];
    assert_eq!(city.game.set_positions(both).await.unwrap(), Positioned { written: 2, outdated: 1 });
    let late = city.game.set_positions(vec![(entity, at(9.0, now)), (entity, at(9.0, now + 50))]).await;
    assert_eq!(late.unwrap(), Positioned { written: 0, outdated: 2 });
    let found = city.game.positions(&[entity, city.player(2)]).await.unwrap();
    assert_eq!(found, [Some(at(3.0, now + 50)), None]);
}

pub async fn thousands_of_positions_are_set_at_once(store: Store) {
    let city = City::of(&store);
    let now = store.now().await.unwrap();
    let entities: Vec<EntityId> = (0..900).map(|number| city.player(number)).collect();
    let positions = entities.iter().zip(0..).map(|(entity, x)| (*entity, at(f64::from(x), now))).collect();
    let done = city.game.set_positions(positions).await.unwrap();
    assert_eq!(done, Positioned { written: 900, outdated: 0 });
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
