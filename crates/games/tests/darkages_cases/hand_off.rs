//! Shards and hand-offs: wherever a player is, it is there once.

use super::City;
use super::combat::hit;
use emberkeep_games::darkages::events::AuditRecord;
use emberkeep_games::darkages::{
    ADMITTED, ARRIVAL, AUDIT_LOG, DIRECTORY, Entity, EntityId, EntityNotice, Error, HandOff, HandOffsSwept,
    LoginPolicy, LoginRequest, MessageType, PLAY, PLAYER_ZONE, POSITION, Play, SESSION, SessionChange, Shard,
    ZoneEvent, ZoneId, ZoneMessage, ZoneSubscription,
};
use emberkeep_hot::Store;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::JoinSet;

pub async fn a_hand_off_within_a_shard_is_one_transaction(store: Store) {
    let city = City::of_shards(&store);
    let (entity, before) = city.login(1).await;
    let HandOff::Done(session) = city.game.hand_off(city.to(entity, city.zone(2))).await.unwrap() else {
        panic!("both zones are of one shard")
    };
    assert_eq!((session.zone_id, session.login_time), (city.zone(2).0, before.login_time));
    assert_eq!(session.position, city.to(entity, city.zone(2)).position);
    assert!(city.members(city.zone(1)).await.is_empty());
    assert_eq!(city.members(city.zone(2)).await, [entity.0]);
    assert_eq!(city.scope.get(&PLAYER_ZONE.key(entity)).await.unwrap(), Some(city.zone(2).0));
    let position = city.scope.get(&POSITION.key(entity)).await.unwrap().unwrap();
    assert_eq!((position.x, position.y, position.z), (1.0, 2.0, 3.0));
    for (zone, entity) in [(ZoneId(0), entity), (ZoneId(-1), entity)] {
        let refused = city.game.hand_off(city.to(entity, zone)).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "zone", .. })), "{refused:?}");
    }
    let away = city.player(9);
    assert_eq!(
        city.game.hand_off(city.to(away, city.zone(2))).await,
        Err(Error::NotLoggedIn { entity: away })
    );
}

pub async fn a_hand_off_between_shards_is_accepted_once(store: Store) {
    let city = City::of_shards(&store);
    let ((entity, before), (victim, _)) = (city.login(1).await, city.login(2).await);
    city.game.damage(hit(entity, victim, 10)).await.unwrap();
    let (source, target) = (city.zone(1), city.zone(11));
    let begun = city.game.hand_off(city.to(entity, target)).await.unwrap();
    assert_eq!(matches!(begun, HandOff::InTransit { .. }), city.is_split());
    assert_eq!(city.copies(entity).await, 1);
    if city.is_split() {
        assert_eq!(city.game.session(entity).await, Err(Error::InTransit { entity }));
        assert_eq!(city.game.touch(entity).await, Err(Error::InTransit { entity }));
        assert_eq!(city.game.hand_off(city.to(entity, source)).await, Err(Error::InTransit { entity }));
        let arrivals = city.game.arrivals(target).await.unwrap();
        assert_eq!(arrivals.iter().map(|passage| passage.entity()).collect::<Vec<_>>(), [entity]);
        assert_eq!(city.game.arrivals(source).await.unwrap(), []);
        assert_eq!(
            city.game.accept(entity, source).await,
            Err(Error::NotArrived { entity, zone: source }),
            "only where it arrived"
        );
        let mut servers = JoinSet::new();
        for _ in 0..16 {
            let game = city.game.clone();
            servers.spawn(async move { game.accept(entity, target).await.unwrap().login_time });
        }
        assert_eq!(servers.join_all().await, [before.login_time; 16], "accepting it again is harmless");
        assert_eq!(city.game.arrivals(target).await.unwrap(), []);
        assert_eq!(city.game.in_zone(source).session(entity).await, Ok(None));
    }
    assert_eq!(city.copies(entity).await, 1);
    let session = city.game.session(entity).await.unwrap().unwrap();
    assert_eq!((session.zone_id, session.login_time), (target.0, before.login_time));
    assert_eq!(city.game.in_zone(target).touch(entity).await.unwrap().zone_id, target.0);
    assert!(city.members(source).await.iter().all(|member| *member != entity.0));
    assert_eq!(city.members(target).await, [entity.0]);
    let there = city.game.scope_of(target);
    let play = there.get(&PLAY.key(entity)).await.unwrap().unwrap();
    assert_eq!((play.damage_dealt, play.zone_id), (10, target.0), "the play record moves along");
    assert_eq!(there.get(&POSITION.key(entity)).await.unwrap().unwrap().x, 1.0);
    assert!(city.play_ends(entity.0).await.is_empty(), "the play session goes on");
    city.hand_over(entity, source).await;
    assert_eq!((city.copies(entity).await, city.members(source).await.len()), (1, 2));
    city.game.logout(entity).await.unwrap();
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (0, 1));
}

/// Within a shard and between shards: the same messages, and the connections go along.
pub async fn hand_offs_within_and_between_shards_are_alike(store: Store) {
    let city = City::of_shards(&store);
    let source = city.zone(1);
    for (number, target) in [(1, city.zone(2)), (2, city.zone(11))] {
        let (mut left, mut entered) =
            (city.game.subscribe(&[source]).await.unwrap(), city.game.subscribe(&[target]).await.unwrap());
        let (entity, _) = city.login(number).await;
        let ids = [city.open(entity, 1).await, city.open(entity, 2).await];
        let opened = city.game.connection(ids[0].clone()).await.unwrap();
        city.hand_over(entity, target).await;
        assert_eq!(city.connection_ids(entity).await, ids);
        assert_eq!(city.game.connection(ids[0].clone()).await.unwrap(), opened, "as it was");
        let entering = next_message(&mut left).await;
        assert_eq!((entering.message_type, entering.target_zone), (MessageType::EntityEntering, source.0));
        let (leaving, entering, complete) = (
            next_message(&mut left).await,
            next_message(&mut entered).await,
            next_message(&mut entered).await,
        );
        for (message, message_type) in [
            (&leaving, MessageType::EntityLeaving),
            (&entering, MessageType::EntityEntering),
            (&complete, MessageType::HandoffComplete),
        ] {
            assert_eq!((&message.message_type, message.entity()), (&message_type, Some(entity)));
            assert_eq!((message.source_zone, message.target_zone), (source.0, target.0));
        }
        let notice: EntityNotice = complete.payload.read().unwrap();
        assert_eq!(notice.position, Some(city.to(entity, target).position));
        assert_eq!(
            notice.handoff.is_some(),
            city.is_split() && target == city.zone(11),
            "numbers are between shards"
        );
        city.game.kick(entity, "done".into()).await.unwrap();
        assert!(city.connection_ids(entity).await.is_empty());
    }
}

async fn next_message(subscription: &mut ZoneSubscription) -> ZoneMessage {
    let event = tokio::time::timeout(Duration::from_secs(10), subscription.next()).await;
    let Ok(Some(ZoneEvent::Message { message, .. })) = event else { panic!("{event:?}") };
    message
}

pub async fn of_64_logins_into_different_shards_one_session_is_left(store: Store) {
    let city = City::of_shards(&store);
    let entity = city.player(1);
    let mut logins = JoinSet::new();
    for number in 0..64 {
        let (city, zone) = (city.clone(), city.zone(number % 3 * 10 + 1));
        logins.spawn(async move { city.game.login(LoginRequest { zone, ..city.request(1) }).await });
    }
    let (mut starts, mut replaced) = (Vec::new(), 0);
    for login in logins.join_all().await {
        match login {
            Ok(session) => starts.push(session.login_time),
            Err(Error::Replaced { .. }) => replaced += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((starts.len() + replaced, city.is_split() || replaced == 0), (64, true));
    assert_eq!(city.copies(entity).await, 1);
    let session = city.game.session(entity).await.unwrap().expect("one session is left");
    let mut listed = Vec::new();
    for zone in [1, 11, 21].map(|number| city.zone(number)) {
        listed.extend(city.members(zone).await.iter().map(|_| zone.0));
    }
    assert_eq!(listed, [session.zone_id]);
    let mut recorded: Vec<i64> =
        city.play_ends(entity.0).await.iter().map(|end| end.play.login_time).collect();
    recorded.push(session.login_time);
    recorded.sort_unstable();
    starts.sort_unstable();
    assert_eq!(recorded, starts, "each login that began is recorded once, none that was refused");
    starts.dedup();
    assert_eq!(starts.len(), recorded.len(), "and has a start of its own");
    emberkeep_testkit::report!(
        "64 logins into three shards: {} began, {replaced} were replaced before",
        starts.len()
    );
    city.game.logout(entity).await.unwrap();
    assert_eq!(city.copies(entity).await, 0);
}

pub async fn a_login_in_another_shard_ends_the_first_session(store: Store) {
    let city = City::of_shards(&store);
    let (entity, first) = city.login(1).await;
    let elsewhere = LoginRequest { zone: city.zone(21), ..city.request(1) };
    let refused = LoginRequest { existing: LoginPolicy::Refuse, ..elsewhere.clone() };
    let since = first.login_time;
    assert_eq!(city.game.login(refused.clone()).await, Err(Error::AlreadyLoggedIn { entity, since }));
    let second = city.game.login(elsewhere).await.unwrap();
    assert!(second.login_time > since);
    assert_eq!(city.game.session(entity).await.unwrap().unwrap().zone_id, city.zone(21).0);
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].play.login_time, city.copies(entity).await), (1, since, 1));
    if city.is_split() {
        let late = city.game.in_zone(city.zone(1));
        assert_eq!(late.touch(entity).await, Err(Error::NotLoggedIn { entity }));
        assert_eq!(
            late.logout(entity).await,
            Err(Error::NotLoggedIn { entity }),
            "it is not this server's player"
        );
    }
    city.game.logout(entity).await.unwrap();
    assert_eq!(city.game.logout(entity).await, Err(Error::NotLoggedIn { entity }));
    city.game.login(refused).await.unwrap();
}

pub async fn players_of_different_shards_do_not_fight(store: Store) {
    let city = City::of_shards(&store);
    let (attacker, _) = city.login(1).await;
    let away = LoginRequest { zone: city.zone(11), ..city.request(2) };
    city.game.login(away).await.unwrap();
    let target = city.player(2);
    let refused = city.game.damage(hit(attacker, target, 10)).await;
    assert!(matches!(refused, Err(Error::OtherShard { entity, .. }) if entity == target), "{refused:?}");
    let refused = city.game.move_to(attacker, city.zone(11)).await;
    assert!(matches!(refused, Err(Error::OtherShard { entity, .. }) if entity == attacker), "{refused:?}");
    assert!(city.hits_on(target).await.is_empty());
    city.hand_over(attacker, city.zone(12)).await;
    assert_eq!(city.game.damage(hit(attacker, target, 10)).await.unwrap().health, 90);
    assert_eq!(city.hits_on(target).await[0].shard_id, 2);
}

/// The target leaves between the look-up and the hit: it is not the attacker who is away.
pub async fn a_hit_on_a_player_who_leaves_names_the_target(store: Store) {
    let city = City::of_shards(&store);
    let (attacker, _) = city.login(1).await;
    let (target, _) = city.login(2).await;
    let is_over = AtomicBool::new(false);
    let leave = async {
        for zone in [11, 1].repeat(30) {
            city.hand_over(target, city.zone(zone)).await;
        }
        is_over.store(true, Relaxed);
    };
    let hits = async {
        while !is_over.load(Relaxed) {
            match city.game.damage(hit(attacker, target, 1)).await {
                Err(
                    Error::OtherShard { entity, .. } | Error::InTransit { entity } | Error::Dead { entity },
                ) if entity == target => {}
                result => drop(result.unwrap()),
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(leave, hits);
}

pub async fn a_logout_on_the_way_ends_the_session_once(store: Store) {
    let city = City::of_shards(&store);
    for number in 1..=3 {
        let (entity, _) = city.login(number).await;
        city.game.hand_off(city.to(entity, city.zone(11))).await.unwrap();
        match number {
            1 => city.game.logout(entity).await.unwrap(),
            2 => city.game.kick(entity, "cheats".into()).await.unwrap(),
            _ => drop(city.game.login(city.request(number)).await.unwrap()),
        }
        assert_eq!(city.copies(entity).await, usize::from(number == 3));
        assert_eq!(city.play_ends(entity.0).await.len(), 1);
        let late = city.game.accept(entity, city.zone(11)).await;
        assert_eq!(late, Err(Error::NotArrived { entity, zone: city.zone(11) }));
        assert_eq!(city.copies(entity).await, usize::from(number == 3), "nothing comes back");
    }
}

pub async fn a_refused_arrival_goes_back(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, session) = city.login(1).await;
    city.game.hand_off(city.to(entity, city.zone(11))).await.unwrap();
    city.game.refuse(entity, city.zone(11)).await.unwrap();
    let back = city.game.session(entity).await.unwrap().expect("it is where it was");
    assert_eq!((back.zone_id, back.login_time), (city.zone(1).0, session.login_time));
    assert_eq!((city.copies(entity).await, city.members(city.zone(1)).await), (1, vec![entity.0]));
    let (zone, none) = (city.zone(11), Err(Error::NotArrived { entity, zone: city.zone(11) }));
    assert_eq!(city.game.refuse(entity, zone).await, none);
}

/// Wherever a process ended, the sweep completes what it began.
pub async fn a_departure_that_was_only_announced_is_undone(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, session) = city.login(1).await;
    let entry = store.scope(Entity(entity));
    let mut moving = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    (moving.from, moving.home) = (Some(moving.home.clone()), "2".into());
    moving.number += 1;
    entry.put(&DIRECTORY.key(), moving).await.unwrap();
    assert_eq!(city.game.session(entity).await, Err(Error::InTransit { entity }));
    city.make_due(entity).await;
    let done = city.game.close_expired(100).await.unwrap();
    assert_eq!((done.alive, done.closed), (1, 0));
    assert_eq!(city.game.session(entity).await.unwrap().unwrap().login_time, session.login_time);
    assert_eq!(city.copies(entity).await, 1);
    city.hand_over(entity, city.zone(11)).await;
    assert_eq!(city.copies(entity).await, 1);
}

pub async fn a_session_that_the_directory_does_not_know_is_closed(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, first) = city.login(1).await;
    // A login elsewhere that ended after its claim.
    let entry = store.scope(Entity(entity));
    let mut claimed = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    (claimed.home, claimed.behind, claimed.owner) = ("3".into(), vec!["1".into()], "a login".into());
    claimed.number += 1;
    entry.put(&DIRECTORY.key(), claimed).await.unwrap();
    assert_eq!(city.game.session(entity).await, Ok(None), "it is not returned");
    city.make_due(entity).await;
    assert_eq!(city.game.close_expired(100).await.unwrap().closed, 1);
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].play.login_time, city.copies(entity).await), (1, first.login_time, 0));
    city.game.login(city.request(1)).await.unwrap();
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (1, 1));
}

/// A player who was kept in its shard under a number of its own: the entry says that it is leaving, or has ended.
async fn kept(city: &City, store: &Store, number: i64, ended: bool) -> EntityId {
    let (entity, _) = city.login(number).await;
    let entry = store.scope(Entity(entity));
    let mut stored = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    let play = city.scope.get(&PLAY.key(entity)).await.unwrap().unwrap();
    let highest = stored.number + 60_000_000;
    (stored.from, stored.home, stored.ended) = (Some(stored.home.clone()), "2".into(), ended);
    stored.number += 1;
    entry.put(&DIRECTORY.key(), stored).await.unwrap();
    city.scope.put(&ADMITTED.key(entity), highest).await.unwrap();
    city.scope.put(&PLAY.key(entity), Play { number: highest, ..play }).await.unwrap();
    entity
}

pub async fn a_player_who_was_kept_is_not_lost(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    for (number, ended) in [(1, false), (2, true)] {
        let entity = kept(&city, &store, number, ended).await;
        for _ in 0..2 {
            city.make_due(entity).await;
            assert_eq!(city.game.close_expired(100).await.unwrap().closed, 0);
        }
        assert!(city.game.session(entity).await.unwrap().is_some());
        // A departure that begins before the entry has the number ends nothing.
        let entry = store.scope(Entity(entity));
        let mut stored = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
        stored.number -= 1;
        entry.put(&DIRECTORY.key(), stored).await.unwrap();
        let play = city.scope.get(&PLAY.key(entity)).await.unwrap().unwrap();
        let higher = Play { number: play.number + 60_000_000, ..play };
        city.scope.put(&PLAY.key(entity), higher).await.unwrap();
        let late = city.game.hand_off(city.to(entity, city.zone(11))).await;
        assert_eq!(late, Err(Error::InTransit { entity }));
        for _ in 0..2 {
            city.make_due(entity).await;
            assert_eq!(city.game.close_expired(100).await.unwrap().closed, 0);
        }
        assert!(city.game.session(entity).await.unwrap().is_some());
        city.hand_over(entity, city.zone(11)).await;
        assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (1, 0));
    }
}

pub async fn a_login_or_logout_ends_a_player_who_was_kept(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    for number in 1..=3 {
        let entity = kept(&city, &store, number, false).await;
        match number {
            1 => city.game.logout(entity).await.unwrap(),
            2 => city.game.kick(entity, "cheats".into()).await.unwrap(),
            _ => {
                let zone = city.zone(21);
                city.game.login(LoginRequest { zone, ..city.request(number) }).await.unwrap();
            }
        }
        city.make_due(entity).await;
        city.game.close_expired(100).await.unwrap();
        let left = usize::from(number == 3);
        assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (left, 1));
        assert_eq!(city.game.session(entity).await.unwrap().is_some(), number == 3);
    }
}

/// A logout or kick whose process ended after its claim is completed by the next one, with its audit entry.
pub async fn a_kick_that_was_only_begun_is_completed(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, _) = city.login(1).await;
    let entry = store.scope(Entity(entity));
    let mut stored = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    (stored.ended, stored.behind, stored.number) = (true, vec!["1".into()], stored.number + 1);
    entry.put(&DIRECTORY.key(), stored).await.unwrap();
    city.game.kick(entity, "cheats".into()).await.unwrap();
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (0, 1));
    let audited: Vec<AuditRecord> = city.waiting(AUDIT_LOG.key()).await;
    let kicks = audited.iter().filter(|entry| entry.player_id == entity.0 && entry.event_type == "kick");
    assert_eq!(kicks.count(), 1);
    assert_eq!(city.game.kick(entity, "cheats".into()).await, Err(Error::NotLoggedIn { entity }));
}

pub async fn of_64_logins_that_refuse_one_begins(store: Store) {
    let city = City::of_shards(&store);
    let entity = city.player(1);
    let mut logins = JoinSet::new();
    for number in 0..64 {
        let (city, zone) = (city.clone(), city.zone(number % 3 * 10 + 1));
        let request = LoginRequest { zone, existing: LoginPolicy::Refuse, ..city.request(1) };
        logins.spawn(async move { city.game.login(request).await });
    }
    let mut begun = 0;
    for login in logins.join_all().await {
        match login {
            Ok(_) => begun += 1,
            Err(Error::AlreadyLoggedIn { .. } | Error::Replaced { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((begun, city.copies(entity).await, city.play_ends(entity.0).await.len()), (1, 1, 0));
}

/// Two logins that found no session: the first has claimed the entry and not begun yet.
pub async fn a_login_that_refuses_waits_for_one_that_begins(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, session) = city.login(1).await;
    let entry = store.scope(Entity(entity));
    let mut stored = entry.get(&DIRECTORY.key()).await.unwrap().unwrap();
    city.game.logout(entity).await.unwrap();
    let refuse = LoginRequest { existing: LoginPolicy::Refuse, ..city.request(1) };
    (stored.home, stored.since_ms) = ("2".into(), store.now().await.unwrap());
    stored.number = stored.since_ms * 1_000 + 60_000_000;
    let (number, since) = (stored.number, stored.since_ms);
    entry.put(&DIRECTORY.key(), stored.clone()).await.unwrap();
    assert_eq!(city.game.login(refuse.clone()).await, Err(Error::AlreadyLoggedIn { entity, since }));
    // It is taken for dead, and cannot begin any more.
    stored.since_ms = session.login_time - 60_000;
    entry.put(&DIRECTORY.key(), stored).await.unwrap();
    city.game.login(refuse).await.unwrap();
    let admitted = city.game.scope_of(city.zone(11)).get(&ADMITTED.key(entity)).await.unwrap();
    assert!(admitted.is_some_and(|highest| highest > number), "{admitted:?}");
    assert_eq!(city.copies(entity).await, 1);
}

pub async fn a_lost_entry_is_restored_from_the_session(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, session) = city.login(1).await;
    let entry = store.scope(Entity(entity));
    entry.del(&DIRECTORY.key()).await.unwrap();
    assert_eq!(city.game.session(entity).await, Ok(None));
    assert!(city.game.in_zone(city.zone(1)).session(entity).await.unwrap().is_some());
    city.make_due(entity).await;
    assert_eq!(city.game.close_expired(100).await.unwrap().alive, 1);
    assert_eq!(city.game.session(entity).await.unwrap().unwrap().login_time, session.login_time);
    // A clock that was set back gives a lower number than the shard has: the login goes on above it.
    let highest = session.login_time * 1_000 + 60_000_000;
    city.scope.put(&ADMITTED.key(entity), highest).await.unwrap();
    entry.del(&DIRECTORY.key()).await.unwrap();
    city.game.login(city.request(1)).await.unwrap();
    assert_eq!(city.copies(entity).await, 1);
    assert!(entry.get(&DIRECTORY.key()).await.unwrap().unwrap().number > highest);
}

pub async fn a_session_of_another_program_gets_an_entry(store: Store) {
    let city = City::of_shards(&store);
    let entity = city.player(1);
    let json = format!(
        r#"{{"entity_id":{},"client_id":"c","zone_id":{},"login_time":1704067200000,"last_activity":1704067260000,"position":{{"x":1.0,"y":0.0,"z":6.0}},"health":85,"max_health":100,"team_id":1,"status":"active"}}"#,
        entity.0,
        city.zone(1).0
    );
    city.external_set(&SESSION.key(entity), &json).await;
    let here = city.game.in_zone(city.zone(1));
    let change = SessionChange { health: Some(50), ..SessionChange::default() };
    assert_eq!(here.change(entity, change).await.unwrap().health, 50);
    city.make_due(entity).await;
    assert_eq!(city.game.close_expired(100).await.unwrap().alive, 1);
    assert_eq!(city.game.session(entity).await.unwrap().unwrap().health, 50);
    city.hand_over(entity, city.zone(11)).await;
    assert_eq!(city.copies(entity).await, 1);
    city.game.logout(entity).await.unwrap();
    assert_eq!((city.copies(entity).await, city.play_ends(entity.0).await.len()), (0, 1));
}

pub async fn players_of_many_zones_are_handed_off_at_once(store: Store) {
    let city = City::of_shards(&store);
    let mut players = JoinSet::new();
    for number in 0..16 {
        let city = city.clone();
        players.spawn(async move {
            let (entity, session) = city.login(number).await;
            for step in 1..=6 {
                let zone = city.zone((i32::try_from(number).unwrap() + step) % 3 * 10 + 1);
                assert_eq!(city.hand_over(entity, zone).await.login_time, session.login_time);
            }
            (entity, city.copies(entity).await)
        });
    }
    for (entity, copies) in players.join_all().await {
        assert_eq!(copies, 1, "{entity}");
    }
    let mut members = 0;
    for zone in [1, 11, 21] {
        members += city.members(city.zone(zone)).await.len();
    }
    assert_eq!(members, 16);
    let swept = city.game.sweep_hand_offs(100).await.unwrap();
    assert_eq!(swept, HandOffsSwept::default(), "nothing is left on the way");
}

pub async fn an_arrival_that_cannot_be_read_is_left_alone(store: Store) {
    let city = City::of_shards(&store);
    if !city.is_split() {
        return;
    }
    let (entity, _) = city.login(1).await;
    city.game.hand_off(city.to(entity, city.zone(11))).await.unwrap();
    let there = City { scope: city.game.scope_of(city.zone(11)), ..city.clone() };
    there.external_set(&ARRIVAL.key(entity), "[").await;
    let scope = there.scope.clone();
    let due = move |tx: &mut emberkeep_hot::Tx<'_, Shard>| {
        tx.zadd(&emberkeep_games::darkages::ARRIVALS_DUE.key(), &entity, 1.0)
    };
    scope.transact::<(), emberkeep_hot::Error, _>(due).await.unwrap();
    let accepted = city.game.accept(entity, city.zone(11)).await;
    assert!(
        matches!(&accepted, Err(Error::Store(error)) if error.to_string().contains("ember:arrival")),
        "{accepted:?}"
    );
    assert_eq!(city.game.arrivals(city.zone(11)).await, Ok(vec![]), "and hides no other");
    assert_eq!(city.game.sweep_hand_offs(100).await.unwrap().unreadable, 1);
    there.scope.del(&ARRIVAL.key(entity)).await.unwrap();
    city.game.login(city.request(1)).await.unwrap();
    assert_eq!(city.copies(entity).await, 1);
}
