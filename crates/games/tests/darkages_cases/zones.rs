//! Zones: a player is in at most one.

use super::City;
use super::HERE;
use emberkeep_games::darkages::{
    EntityId, Error, Heartbeat, MessageType, PLAYER_ZONE, POSITION, Point, Position, SESSION, Session, Shard,
    ZONE_PLAYERS, ZONE_UNTIL, ZoneEvent, ZoneId,
};
use emberkeep_hot::command::{Write, ZSlice};
use emberkeep_hot::{self as hot, Store, Tx};
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

/// Writes players into a zone as another program does: sessions and the set, and no index of ours.
async fn arrive(city: &City, zone: ZoneId, players: std::ops::Range<i64>) {
    let players: Vec<i64> = players.collect();
    for chunk in players.chunks(500) {
        let entities: Vec<EntityId> = chunk.iter().map(|number| city.player(*number)).collect();
        let at = city.scope.store().now().await.unwrap();
        let transaction = move |tx: &mut Tx<'_, Shard>| {
            for entity in &entities {
                let session = Session::new(entity.0, "other".into(), zone.0, at, at, HERE(), 100, 100);
                tx.put(&SESSION.key(entity), &session)?;
            }
            tx.sadd_many(&ZONE_PLAYERS.key(zone), &entities)
        };
        city.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
}

pub async fn members_are_counted_without_reading_their_sessions(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let players: Vec<_> = [city.login(1).await.0, city.login(2).await.0].into();
    assert_eq!(city.game.count(zone).await.unwrap(), 2);
    assert_eq!(city.game.member_ids(zone).await.unwrap(), players);
    let key = SESSION.key(players[0]);
    let text = serde_json::to_string(&city.game.session(players[0]).await.unwrap().unwrap()).unwrap();
    city.scope.del(&key).await.unwrap();
    assert_eq!(city.game.count(zone).await.unwrap(), 2, "no session was read: one is gone");
    assert_eq!(city.game.member_ids(zone).await.unwrap(), players);
    city.external_set(&key, &text).await;
    let until = ZONE_UNTIL.key(zone);
    let session = city.game.session(players[0]).await.unwrap().unwrap();
    let end = city.scope.zscore(&until, &players[0]).await.unwrap().unwrap();
    assert_eq!(end as i64, session.login_time + 3_600_001, "the first millisecond without the session");
    city.game.move_to(players[0], city.zone(2)).await.unwrap();
    assert_eq!(city.game.count(zone).await.unwrap(), 1);
    assert_eq!(city.scope.zscore(&until, &players[0]).await.unwrap(), None);
    city.game.logout(players[1]).await.unwrap();
    assert_eq!(city.game.count(zone).await.unwrap(), 0);
    assert!(!city.scope.exists(&until).await.unwrap());
}

pub async fn players_of_other_programs_are_counted(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let own = city.login(1).await.0;
    arrive(&city, zone, 10..15).await;
    let elsewhere = city.login(2).await.0;
    city.game.move_to(elsewhere, city.zone(2)).await.unwrap();
    let key = ZONE_PLAYERS.key(zone);
    let (none, invalid) = (city.player(99).0.to_string(), "no id".to_owned());
    let strangers = [none, elsewhere.0.to_string(), invalid].map(bytes::Bytes::from);
    city.external(&key, Write::SAdd(strangers.into())).await;
    assert_eq!(city.game.count(zone).await.unwrap(), 6);
    let found = city.game.member_ids(zone).await.unwrap();
    let expected: Vec<_> = [own].into_iter().chain((10..15).map(|number| city.player(number))).collect();
    assert_eq!(found, expected);
    assert_eq!(city.scope.scard(&key).await.unwrap(), 6, "entries without a session in the zone are removed");
    let ends = city.scope.zrange(&ZONE_UNTIL.key(zone), ZSlice::Rank(0, -1), false).await.unwrap();
    assert_eq!(ends.len(), 6, "and the others are known from now on");
    let gone = bytes::Bytes::from(city.player(12).0.to_string());
    city.external(&key, Write::SRem(vec![gone])).await;
    assert_eq!(city.game.count(zone).await.unwrap(), 5, "another program removed one");
    assert_eq!(city.scope.zscore(&ZONE_UNTIL.key(zone), &city.player(12)).await.unwrap(), None);
}

pub async fn a_member_whose_known_end_has_come_is_looked_at_again(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let (alive, gone) = (city.login(1).await.0, city.login(2).await.0);
    city.scope.del(&SESSION.key(gone)).await.unwrap();
    let due = move |tx: &mut Tx<'_, Shard>| {
        tx.zadd(&ZONE_UNTIL.key(zone), &alive, 1.0)?;
        tx.zadd(&ZONE_UNTIL.key(zone), &gone, 1.0)
    };
    city.scope.transact::<(), hot::Error, _>(due).await.unwrap();
    assert_eq!(city.game.count(zone).await.unwrap(), 1);
    let end = city.scope.zscore(&ZONE_UNTIL.key(zone), &alive).await.unwrap().unwrap();
    let deadline = city.scope.deadline_of(&SESSION.key(alive)).await.unwrap().unwrap();
    assert_eq!(end as i64, deadline + 1);
    assert!(!city.scope.sismember(&ZONE_PLAYERS.key(zone), &gone).await.unwrap());
}

pub async fn ten_thousand_members_are_counted_and_kept(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    arrive(&city, zone, 0..10_000).await;
    assert_eq!(city.game.count(zone).await.unwrap(), 10_000);
    assert_eq!(city.game.member_ids(zone).await.unwrap().len(), 10_000);
    let beat = city.game.heartbeat(zone).await.unwrap();
    assert_eq!(beat, Heartbeat { members: 10_000, moved: 0 });
    assert_eq!(city.game.members(zone).await.unwrap().living.len(), 10_000);
}

pub async fn a_heartbeat_writes_positions_into_sessions(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let ((moving, before), (standing, _)) = (city.login(1).await, city.login(2).await);
    let at = before.last_activity + 50;
    let position = Position { x: -1.0, y: 2.5, z: 3.0, at };
    city.game.set_positions(vec![(moving, position)]).await.unwrap();
    city.external_set(&POSITION.key(standing), "malformed").await;
    let beat = city.game.heartbeat(zone).await.unwrap();
    assert_eq!(beat, Heartbeat { members: 2, moved: 1 });
    let session = city.game.session(moving).await.unwrap().unwrap();
    assert_eq!(session.position, Point::new(-1.0, 2.5, 3.0));
    assert!(session.last_activity >= before.last_activity, "moving is activity");
    let other = city.game.session(standing).await.unwrap().unwrap();
    assert_eq!(other.position, HERE(), "a position that cannot be read changes nothing");
    let late = Position { x: 9.0, y: 9.0, z: 9.0, at: before.login_time - 1 };
    city.scope.put(&POSITION.key(moving), late).await.unwrap();
    assert_eq!(city.game.heartbeat(zone).await.unwrap().moved, 0, "one of an earlier session is older");
    assert_eq!(city.game.heartbeat(city.zone(7)).await.unwrap(), Heartbeat::default(), "an empty zone");
}

pub async fn moving_sends_messages_to_both_zones(store: Store) {
    let city = City::of(&store);
    let (first, second) = (city.zone(1), city.zone(2));
    let mut messages = city.game.subscribe(&[first, second]).await.unwrap();
    let (entity, _) = city.login(1).await;
    city.game.move_to(entity, second).await.unwrap();
    city.game.move_to(entity, second).await.unwrap();
    city.game.logout(entity).await.unwrap();
    let expected = [
        (first, MessageType::EntityEntering, (0, first.0)),
        (first, MessageType::EntityLeaving, (first.0, second.0)),
        (second, MessageType::EntityEntering, (first.0, second.0)),
        (second, MessageType::EntityLeaving, (second.0, 0)),
    ];
    for (zone, message_type, (source, target)) in expected {
        let event = tokio::time::timeout(std::time::Duration::from_secs(10), messages.next()).await;
        let Ok(Some(ZoneEvent::Message { zone: on, message })) = event else { panic!("{event:?}") };
        assert_eq!((on, &message.message_type, message.entity()), (zone, &message_type, Some(entity)));
        assert_eq!((message.source_zone, message.target_zone), (source, target));
    }
}

pub async fn a_player_who_moved_and_then_acted_has_its_place(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let (entity, before) = city.login(1).await;
    let position = Position { x: 8.0, y: 2.5, z: 3.0, at: before.login_time };
    city.scope.put(&POSITION.key(entity), position).await.unwrap();
    let active = city.game.touch(entity).await.unwrap();
    assert!(active.last_activity >= position.at);
    assert_eq!(city.game.heartbeat(zone).await.unwrap().moved, 1);
    let session = city.game.session(entity).await.unwrap().unwrap();
    assert_eq!(session.position, Point::new(8.0, 2.5, 3.0));
    assert_eq!(session.last_activity, active.last_activity, "it moved before");
    assert_eq!(city.game.heartbeat(zone).await.unwrap().moved, 0, "it stands");
}

pub async fn a_move_takes_the_position_along_and_activity_keeps_the_zone(store: Store) {
    let city = City::of(&store);
    let (entity, before) = city.login(1).await;
    let position = Position { x: 8.0, y: 2.5, z: 3.0, at: before.login_time + 1 };
    city.game.set_positions(vec![(entity, position)]).await.unwrap();
    city.game.move_to(entity, city.zone(2)).await.unwrap();
    let session = city.game.session(entity).await.unwrap().unwrap();
    assert_eq!(session.position, Point::new(8.0, 2.5, 3.0), "where it is, not where it logged in");
    let key = PLAYER_ZONE.key(entity);
    let soon = store.now().await.unwrap() + 60_000;
    city.external(&key, Write::ExpireAt(soon)).await;
    city.game.touch(entity).await.unwrap();
    let deadline = city.scope.deadline_of(&key).await.unwrap();
    assert!(deadline > Some(soon + 7_000_000), "two hours after the last activity: {deadline:?}");
}
