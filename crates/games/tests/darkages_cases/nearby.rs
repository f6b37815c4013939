//! Players near a point.

use super::City;
use emberkeep_games::darkages::{
    EntityId, Error, NearbyRequest, POSITION, Point, Position, SPATIAL_QUERY, ZONE_PLAYERS,
};
use emberkeep_hot::Store;
use emberkeep_hot::command::Write;
use emberkeep_schema::Name;
use std::time::Duration;

impl City {
    fn query(&self, radius: f64, max_age: Duration) -> NearbyRequest {
        let query = Name::new(format!("q-{}", self.first)).unwrap();
        let centre = Point::new(100.0, 0.0, -100.0);
        NearbyRequest { query, zone: self.zone(1), centre, radius, max_age }
    }

    /// Players of a zone in a row, each ten to the east of the one before, the first one at the centre.
    async fn row(&self, store: &Store, players: i64) -> Vec<EntityId> {
        let at = store.now().await.unwrap();
        let entities: Vec<EntityId> = (0..players).map(|number| self.player(number)).collect();
        let key = ZONE_PLAYERS.key(self.zone(1));
        let members = entities.iter().map(|entity| entity.0.to_string().into()).collect();
        self.external(&key, Write::SAdd(members)).await;
        let place = |(number, entity): (usize, &EntityId)| {
            (*entity, Position { x: 100.0 + 10.0 * number as f64, y: 0.0, z: -100.0, at })
        };
        let positions = entities.iter().enumerate().map(place).collect();
        self.game.set_positions(positions).await.unwrap();
        entities
    }
}

pub async fn players_within_the_radius_are_found(store: Store) {
    let city = City::of(&store);
    let entities = city.row(&store, 20).await;
    let found = city.game.nearby(city.query(30.0, Duration::ZERO)).await.unwrap();
    assert_eq!(found.ids, entities[..4], "the border belongs to it");
    assert!(!found.is_cached);
    let all = city.game.nearby(city.query(1e6, Duration::ZERO)).await.unwrap();
    assert_eq!(all.ids, entities);
    let at_centre = city.game.nearby(city.query(0.0, Duration::ZERO)).await.unwrap();
    assert_eq!(at_centre.ids, entities[..1]);
    let elsewhere = NearbyRequest { zone: city.zone(2), ..city.query(1e6, Duration::ZERO) };
    assert_eq!(city.game.nearby(elsewhere).await.unwrap().ids, []);
}

pub async fn a_cached_query_is_used_while_it_is_young_enough(store: Store) {
    let city = City::of(&store);
    let entities = city.row(&store, 5).await;
    let minute = Duration::from_secs(60);
    let first = city.game.nearby(city.query(30.0, minute)).await.unwrap();
    assert!(!first.is_cached, "nothing was there");
    let key = SPATIAL_QUERY.key(&city.query(0.0, minute).query);
    let stored = city.scope.get(&key).await.unwrap().unwrap();
    let json = serde_json::to_string(&stored).unwrap();
    let ids: Vec<i64> = entities[..4].iter().map(|entity| entity.0).collect();
    let expected = format!(
        r#"{{"zone":{},"centre":{{"x":100.0,"y":0.0,"z":-100.0}},"radius":30.0,"at_ms":{},"ids":{}}}"#,
        city.zone(1),
        first.at,
        serde_json::to_string(&ids).unwrap()
    );
    assert_eq!(json, expected);
    let life = city.scope.deadline_of(&key).await.unwrap().unwrap() - first.at;
    assert!((300_000..310_000).contains(&life), "{life}");
    // The positions go; what is cached stays.
    for entity in &entities {
        city.scope.del(&POSITION.key(entity)).await.unwrap();
    }
    let second = city.game.nearby(city.query(30.0, minute)).await.unwrap();
    assert_eq!((second.is_cached, second.ids, second.at), (true, first.ids, first.at));
    let fresh = city.game.nearby(city.query(30.0, Duration::ZERO)).await.unwrap();
    assert_eq!((fresh.is_cached, fresh.ids), (false, vec![]), "the caller wants a new one");
    let other = city.game.nearby(city.query(31.0, minute)).await.unwrap();
    assert!(!other.is_cached, "other parameters are another query");
    let moved = NearbyRequest { centre: Point::new(100.0, 0.0, -99.0), ..city.query(31.0, minute) };
    assert!(!city.game.nearby(moved).await.unwrap().is_cached);
    for text in ["not json", "{}", r#"{"zone":1}"#] {
        city.external_set(&key, text).await;
        assert!(!city.game.nearby(city.query(30.0, minute)).await.unwrap().is_cached, "{text} is a miss");
    }
    let mut future = stored.clone();
    future.at_ms += 3_600_000;
    city.scope.put(&key, future).await.unwrap();
    assert!(!city.game.nearby(city.query(30.0, minute)).await.unwrap().is_cached, "a clock that went back");
}

pub async fn queries_that_cannot_be_answered_are_refused(store: Store) {
    let city = City::of(&store);
    for radius in [-1.0, f64::NAN, f64::INFINITY, 1e200] {
        let refused = city.game.nearby(city.query(radius, Duration::ZERO)).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "radius", .. })), "{radius}: {refused:?}");
    }
    let centre = Point::new(f64::NAN, 0.0, 0.0);
    let refused = city.game.nearby(NearbyRequest { centre, ..city.query(1.0, Duration::ZERO) }).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "centre", .. })), "{refused:?}");
}

pub async fn a_position_that_cannot_be_read_hides_no_other(store: Store) {
    let city = City::of(&store);
    let entities = city.row(&store, 5).await;
    city.external_set(&POSITION.key(entities[1]), "1,2,x").await;
    city.external(&POSITION.key(entities[2]), Write::Del).await;
    city.external(&POSITION.key(entities[2]), Write::SAdd(vec!["a".into()])).await;
    city.external(&ZONE_PLAYERS.key(city.zone(1)), Write::SAdd(vec!["no id".into()])).await;
    let found = city.game.nearby(city.query(1e6, Duration::ZERO)).await.unwrap();
    assert_eq!((found.ids, found.unreadable), (vec![entities[0], entities[3], entities[4]], 2));
    let key = SPATIAL_QUERY.key(&city.query(0.0, Duration::ZERO).query);
    city.external(&key, Write::Del).await;
    city.external(&key, Write::SAdd(vec!["a".into()])).await;
    let found = city.game.nearby(city.query(1.0, Duration::from_secs(1))).await.unwrap();
    assert_eq!((found.is_cached, found.ids), (false, vec![entities[0]]), "a miss, and replaced");
    assert!(city.game.nearby(city.query(1.0, Duration::from_secs(1))).await.unwrap().is_cached);
}
