//! Zones: a player is in at most one.

use super::City;
use emberkeep_games::darkages::{Error, PLAYER_ZONE, SESSION, ZONE_PLAYERS, ZoneId};
use emberkeep_hot::Store;
use tokio::task::JoinSet;

pub async fn a_player_is_in_one_zone(store: Store) {
    let city = City::of(&store);
    let (entity, _) = city.login(1).await;
    let (first, second) = (city.zone(1), city.zone(2));
    assert_eq!(city.game.move_to(entity, second).await.unwrap(), first);
    assert_eq!(city.game.move_to(entity, second).await.unwrap(), second, "moving again changes nothing");
    assert!(city.members(first).await.is_empty());
    assert_eq!(city.members(second).await, [entity.0]);
    assert!(city.game.is_in_zone(entity, second).await.unwrap());
    assert!(!city.game.is_in_zone(entity, first).await.unwrap());
    assert_eq!(city.game.zone_of(entity).await.unwrap(), Some(second));
    assert_eq!(city.scope.get(&PLAYER_ZONE.key(entity)).await.unwrap(), Some(second.0));
    city.game.heartbeat(second).await.unwrap();
    assert_eq!(city.game.move_to(entity, ZoneId::NONE).await.unwrap(), second);
    assert_eq!(city.game.zone_of(entity).await.unwrap(), None);
    assert!(city.members(second).await.is_empty());
    assert_eq!(city.scope.get(&PLAYER_ZONE.key(entity)).await.unwrap(), None);
    let nowhere = city.game.move_to(entity, ZoneId(-4)).await;
    assert!(matches!(nowhere, Err(Error::Invalid { what: "zone", .. })), "{nowhere:?}");
    let entity = city.player(9);
    assert_eq!(city.game.move_to(entity, first).await, Err(Error::NotLoggedIn { entity }));
}

pub async fn members_without_a_session_are_not_returned(store: Store) {
    let city = City::of(&store);
    let ((gone, _), (here, _)) = (city.login(1).await, city.login(2).await);
    city.scope.del(&SESSION.key(gone)).await.unwrap();
    let key = ZONE_PLAYERS.key(city.zone(1));
    assert!(city.scope.sismember(&key, &gone).await.unwrap(), "an external delete leaves the entry");
    assert!(!city.game.is_in_zone(gone, city.zone(1)).await.unwrap());
    assert_eq!(city.members(city.zone(1)).await, [here.0]);
    assert!(!city.scope.sismember(&key, &gone).await.unwrap(), "and reading removes it");
}

pub async fn of_64_moves_at_once_one_zone_is_left(store: Store) {
    let city = City::of(&store);
    let (entity, _) = city.login(1).await;
    let mut moves = JoinSet::new();
    for number in 0..64 {
        let (game, zone) = (city.game.clone(), city.zone(number % 8));
        moves.spawn(async move { game.move_to(entity, zone).await.unwrap() });
    }
    moves.join_all().await;
    let mut zones = Vec::new();
    for number in 0..8 {
        if !city.members(city.zone(number)).await.is_empty() {
            zones.push(city.zone(number));
        }
    }
    let session = city.game.session(entity).await.unwrap().unwrap();
    assert_eq!(zones, [ZoneId(session.zone_id)]);
    assert_eq!(city.scope.get(&PLAYER_ZONE.key(entity)).await.unwrap(), Some(session.zone_id));
}
