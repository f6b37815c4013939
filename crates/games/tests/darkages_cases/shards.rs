//! What the sweep of a shard does with players who are broken, late or of another program.

use super::City;
use emberkeep_games::darkages::{
    ADMITTED, ARRIVAL, ARRIVALS_DUE, DIRECTORY, Entity, EntityId, Error, HandOff, HandOffsSwept, PLAY,
    Passage, Play, SESSION, Shard, ZONE_ARRIVALS, ZoneId,
};
use emberkeep_hot::command::Write;
use emberkeep_hot::{Store, Tx};
use emberkeep_primitives::directory::DirectoryEntry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinSet;

/// A session as another program writes it, with a time of its last activity that is long ago.
async fn of_another_program(city: &City, number: i64) -> EntityId {
    let (entity, zone) = (city.player(number), city.zone(1).0);
    let json = format!(
        r#"{{"entity_id":{},"client_id":"c","zone_id":{zone},"login_time":1704067200000,"last_activity":1704067260000,"position":{{"x":1.0,"y":0.0,"z":6.0}},"health":85,"max_health":100,"team_id":1,"status":"active"}}"#,
        entity.0
    );
    city.external_set(&SESSION.key(entity), &json).await;
    city.make_due(entity).await;
    entity
}

pub async fn sessions_of_another_program_survive_many_sweeps_at_once(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    for number in 0..8 {
        let entity = of_another_program(&city, number).await;
        let mut sweeps = JoinSet::new();
        for _ in 0..16 {
            let game = city.game.in_zone(city.zone(1));
            sweeps.spawn(async move { game.close_expired(100).await.unwrap().closed });
        }
        assert_eq!(sweeps.join_all().await, [0; 16]);
        assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (1, 0));
    }
    // Its shard has admitted more than a new entry would have.
    let entity = of_another_program(&city, 9).await;
    let highest = store.now().await.unwrap() * 1_000 + 60_000_000;
    city.scope.put(&ADMITTED.key(entity), highest).await.unwrap();
    assert_eq!(city.game.close_expired(100).await.unwrap().closed, 0);
    assert!(city.game.session(entity).await.unwrap().is_some());
    assert!(store.scope(Entity(entity)).get(&DIRECTORY.key()).await.unwrap().unwrap().number > highest);
}

/// It lives as long as its key, whatever its last activity says.
pub async fn a_session_of_another_program_survives_a_hand_off(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let entity = of_another_program(&city, 1).await;
    assert_eq!(city.game.close_expired(100).await.unwrap().alive, 1);
    city.hand_over(entity, city.zone(11)).await;
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (1, 0));
}

/// One that cannot be read, and one whose entry cannot: the others are swept.
pub async fn a_broken_player_does_not_stop_the_sweep_of_a_shard(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let ((broken, _), (fine, _), (odd, _)) = (city.login(1).await, city.login(2).await, city.login(3).await);
    let break_entry = async |entity: EntityId| {
        let entry = store.scope(Entity(entity));
        let stored = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
        let broken = DirectoryEntry { home: "x".into(), ..stored.clone() };
        entry.put(&DIRECTORY.key(), broken).await.unwrap();
        stored
    };
    let stored = break_entry(broken).await;
    city.scope.del(&SESSION.key(odd)).await.unwrap();
    city.external(&SESSION.key(odd), Write::SAdd(vec!["x".into()])).await;
    for entity in [broken, fine, odd] {
        city.make_due(entity).await;
    }
    let done = city.game.close_expired(100).await.unwrap();
    assert_eq!((done.failed, done.alive, done.unreadable, done.closed), (1, 1, 1, 0));
    assert_eq!(city.game.close_expired(100).await.unwrap(), Default::default(), "they are tried again later");
    store.scope(Entity(broken)).put(&DIRECTORY.key(), stored).await.unwrap();
    // The same on the way.
    let there = City { scope: city.game.scope_of(city.zone(11)), ..city.clone() };
    for entity in [broken, fine] {
        city.game.hand_off(city.to(entity, city.zone(11))).await.unwrap();
        let due = move |tx: &mut Tx<'_, Shard>| tx.zadd(&ARRIVALS_DUE.key(), &entity, 1.0);
        there.scope.transact::<(), emberkeep_hot::Error, _>(due).await.unwrap();
    }
    let stored = break_entry(broken).await;
    let done = city.game.sweep_hand_offs(100).await.unwrap();
    assert_eq!((done.failed, done.returned), (1, 1));
    assert_eq!(city.game.sweep_hand_offs(100).await.unwrap(), HandOffsSwept::default());
    store.scope(Entity(broken)).put(&DIRECTORY.key(), stored).await.unwrap();
    city.game.accept(broken, city.zone(11)).await.unwrap();
    assert_eq!((city.copies(broken).await, city.copies(fine).await), (1, 1));
    city.scope.del(&SESSION.key(odd)).await.unwrap();
}

/// A process that ended after it removed an arrival and before it ended the entry; and a sweep that comes late.
pub async fn the_entry_of_an_arrival_ends_with_it(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, _) = city.login(1).await;
    city.game.hand_off(city.to(entity, city.zone(11))).await.unwrap();
    let there = city.game.scope_of(city.zone(11));
    let due = move |tx: &mut Tx<'_, Shard>| tx.zadd(&ARRIVALS_DUE.key(), &entity, 1.0);
    there.del(&ARRIVAL.key(entity)).await.unwrap();
    there.transact::<(), emberkeep_hot::Error, _>(due).await.unwrap();
    assert_eq!(city.game.session(entity).await, Err(Error::InTransit { entity }));
    city.game.sweep_hand_offs(100).await.unwrap();
    assert_eq!(city.game.session(entity).await, Ok(None));
    // One that was accepted meanwhile, and whose entry does not say so yet, is not ended.
    city.game.login(city.request(1)).await.unwrap();
    city.hand_over(entity, city.zone(11)).await;
    let entry = store.scope(Entity(entity));
    let mut stored = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    stored.from = Some("1".into());
    entry.put(&DIRECTORY.key(), stored).await.unwrap();
    there.transact::<(), emberkeep_hot::Error, _>(due).await.unwrap();
    city.game.sweep_hand_offs(100).await.unwrap();
    assert!(city.game.session(entity).await.unwrap().is_some());
}

/// In no zone: its zone does not name the shard that it returns to.
pub async fn a_player_in_no_zone_returns_to_its_shard(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, _) = city.login(1).await;
    city.game.move_to(entity, ZoneId::NONE).await.unwrap();
    city.game.hand_off(city.to(entity, city.zone(11))).await.unwrap();
    let passage = city.game.arrivals(city.zone(11)).await.unwrap().remove(0);
    city.game.scope_of(city.zone(11)).del(&ARRIVAL.key(entity)).await.unwrap();
    // The way back, whose process ended when it had been delivered.
    let entry = store.scope(Entity(entity));
    let mut stored = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    (stored.home, stored.from) = ("1".into(), Some("2".into()));
    entry.put(&DIRECTORY.key(), stored).await.unwrap();
    let back = Passage { returns: true, source_zone: passage.target_zone, target_zone: 0, ..passage };
    city.scope.put(&ARRIVAL.key(entity), back).await.unwrap();
    let due = move |tx: &mut Tx<'_, Shard>| tx.zadd(&ARRIVALS_DUE.key(), &entity, 1.0);
    city.scope.transact::<(), emberkeep_hot::Error, _>(due).await.unwrap();
    assert_eq!(city.game.sweep_hand_offs(100).await.unwrap().accepted, 1);
    assert!(city.game.session(entity).await.unwrap().is_some());
    assert_eq!(city.copies(entity).await, 1);
}

pub async fn an_accepted_arrival_closes_what_was_left_there(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, session) = city.login(1).await;
    let play = city.scope.get(&PLAY.key(entity)).await.unwrap().unwrap();
    let left = Play { login_time: session.login_time - 1_000, number: 0, ..play };
    city.game.scope_of(city.zone(11)).put(&PLAY.key(entity), left).await.unwrap();
    city.hand_over(entity, city.zone(11)).await;
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].play.login_time), (1, session.login_time - 1_000));
}

pub async fn thousands_of_arrivals_are_listed_in_part(store: Store) {
    let city = City::of_shards(&store);
    let (zone, first) = (city.zone(11), city.first);
    let enter = move |tx: &mut Tx<'_, Shard>| {
        for number in 10..1_510 {
            tx.sadd(&ZONE_ARRIVALS.key(zone), &EntityId(first + number))?;
        }
        Ok(())
    };
    city.game.scope_of(zone).transact::<(), emberkeep_hot::Error, _>(enter).await.unwrap();
    let (entity, _) = city.login(1).await;
    city.game.hand_off(city.to(entity, zone)).await.unwrap();
    // Entries without an arrival count for the limit, so the one arrival is among those that are read, or not.
    let listed = city.game.arrivals(zone).await.unwrap();
    assert!(listed.len() <= usize::from(city.is_split()), "{listed:?}");
    city.game.scope_of(zone).del(&ZONE_ARRIVALS.key(zone)).await.unwrap();
}

/// A departure that begins between the sweep's look at the directory and its confirmation does not end the session.
pub async fn sweeps_beside_hand_offs_end_no_session(store: Store) {
    let city = City::of_shards(&store);
    let mut starts = Vec::new();
    for number in 0..4 {
        starts.push(city.login(number).await.1.login_time);
    }
    let (mut servers, mut sweeps) = (JoinSet::new(), JoinSet::new());
    let is_over = Arc::new(AtomicBool::new(false));
    for number in 0..4 {
        let city = city.clone();
        servers.spawn(async move {
            for step in 0..60 {
                let zone = city.zone(step % 3 * 10 + 1);
                match city.game.hand_off(city.to(city.player(number), zone)).await {
                    Ok(HandOff::Done(_)) => {}
                    Ok(HandOff::InTransit { .. }) | Err(Error::InTransit { .. }) => {
                        match city.game.accept(city.player(number), zone).await {
                            // The sweep kept it where it was.
                            Ok(_) | Err(Error::NotArrived { .. } | Error::Replaced { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    for _ in 0..2 {
        let (city, is_over) = (city.clone(), is_over.clone());
        sweeps.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                for scope in city.game.scopes() {
                    let there = City { scope, ..city.clone() };
                    for number in 0..4 {
                        there.make_due(city.player(number)).await;
                    }
                }
                city.game.close_expired(100).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
    }
    servers.join_all().await;
    is_over.store(true, Ordering::Relaxed);
    sweeps.join_all().await;
    city.game.sweep_hand_offs(100).await.unwrap();
    for (number, start) in (0..4).zip(starts) {
        let entity = city.player(number);
        assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (1, 0), "{entity}");
        for zone in [1, 11, 21].map(|zone| city.zone(zone)) {
            if city.game.arrivals(zone).await.unwrap().iter().any(|passage| passage.entity() == entity) {
                city.game.accept(entity, zone).await.unwrap();
            }
        }
        for scope in city.game.scopes() {
            City { scope, ..city.clone() }.make_due(entity).await;
        }
        city.game.close_expired(100).await.unwrap();
        assert_eq!(city.game.session(entity).await.unwrap().map(|session| session.login_time), Some(start));
    }
}
