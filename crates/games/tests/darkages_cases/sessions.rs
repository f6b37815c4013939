//! Sessions: one for each player, closed into history once.

use super::{City, HERE};
use emberkeep_games::darkages::{
    Error, LoginPolicy, LoginRequest, PLAY, PLAYER_ZONE, POSITION, SESSION, SessionChange, ZONE_PLAYERS,
};
use emberkeep_hot::{self as hot, Store};
use tokio::task::JoinSet;

pub async fn a_login_writes_the_documents_keys(store: Store) {
    let city = City::of(&store);
    let (entity, session) = city.login(1).await;
    let zone = city.zone(1);
    assert_eq!(city.game.session(entity).await.unwrap(), Some(session.clone()));
    let position = city.scope.get(&POSITION.key(entity)).await.unwrap().unwrap();
    assert_eq!((position.x, position.z, position.at), (1234.5, 6789.0, session.login_time));
    assert_eq!(city.scope.get(&PLAYER_ZONE.key(entity)).await.unwrap(), Some(zone.0));
    assert!(city.scope.sismember(&ZONE_PLAYERS.key(zone), &entity).await.unwrap());
    let json = serde_json::to_string(&session).unwrap();
    let (id, at) = (entity.0, session.login_time);
    let expected = format!(
        r#"{{"entity_id":{id},"client_id":"player_abc123","zone_id":{},"login_time":{at},"last_activity":{at},"position":{{"x":1234.5,"y":0.0,"z":6789.0}},"health":100,"max_health":100,"team_id":0,"status":"active"}}"#,
        zone.0
    );
    assert_eq!(json, expected);
    let now = store.now().await.unwrap();
    for (deadline, seconds) in [
        (city.scope.deadline_of(&SESSION.key(entity)).await.unwrap(), 3_600),
        (city.scope.deadline_of(&ZONE_PLAYERS.key(zone)).await.unwrap(), 1_800),
        (city.scope.deadline_of(&POSITION.key(entity)).await.unwrap(), 120),
        (city.scope.deadline_of(&PLAYER_ZONE.key(entity)).await.unwrap(), 7_200),
    ] {
        let left = deadline.expect("every key of the document expires") - now;
        assert!((seconds * 1_000 - 60_000..=seconds * 1_000 + 5).contains(&left), "{left} of {seconds} s");
    }
}

pub async fn a_second_login_replaces_the_first_or_is_refused(store: Store) {
    let city = City::of(&store);
    let (entity, first) = city.login(1).await;
    let refused = LoginRequest { existing: LoginPolicy::Refuse, ..city.request(1) };
    let since = first.login_time;
    assert_eq!(city.game.login(refused.clone()).await, Err(Error::AlreadyLoggedIn { entity, since }));
    assert!(city.play_ends(entity.0).await.is_empty());
    let second = city.game.login(LoginRequest { zone: city.zone(2), ..city.request(1) }).await.unwrap();
    assert!(second.login_time > first.login_time);
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].play.login_time, ends[0].play.zone_id), (1, since, city.zone(1).0));
    assert!(city.members(city.zone(1)).await.is_empty());
    assert_eq!(city.members(city.zone(2)).await, [entity.0]);
    city.game.logout(entity).await.unwrap();
    city.game.login(refused).await.unwrap();
}

pub async fn of_64_logins_one_session_is_left_and_each_is_recorded(store: Store) {
    let city = City::of(&store);
    let entity = city.player(1);
    let mut logins = JoinSet::new();
    for number in 0..64 {
        let (city, zone) = (city.clone(), city.zone(number % 4));
        logins.spawn(async move { city.game.login(LoginRequest { zone, ..city.request(1) }).await.unwrap() });
    }
    let mut starts: Vec<i64> = logins.join_all().await.iter().map(|session| session.login_time).collect();
    let session = city.game.session(entity).await.unwrap().expect("one session is left");
    let mut listed = Vec::new();
    for number in 0..4 {
        listed.extend(city.members(city.zone(number)).await.iter().map(|_| city.zone(number).0));
    }
    assert_eq!(listed, [session.zone_id], "in one zone");
    let mut recorded: Vec<i64> =
        city.play_ends(entity.0).await.iter().map(|end| end.play.login_time).collect();
    recorded.push(session.login_time);
    starts.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(recorded, starts, "each play session is recorded once");
    starts.dedup();
    assert_eq!(starts.len(), 64, "and has a start of its own");
}

pub async fn a_logout_leaves_nothing_behind(store: Store) {
    let city = City::of(&store);
    let (entity, session) = city.login(1).await;
    city.game.logout(entity).await.unwrap();
    assert_eq!(city.game.logout(entity).await, Err(Error::NotLoggedIn { entity }));
    assert_eq!(city.game.touch(entity).await, Err(Error::NotLoggedIn { entity }));
    assert!(!city.scope.exists(&SESSION.key(entity)).await.unwrap());
    assert!(!city.scope.exists(&POSITION.key(entity)).await.unwrap());
    assert!(!city.scope.exists(&PLAYER_ZONE.key(entity)).await.unwrap());
    assert!(!city.scope.exists(&PLAY.key(entity)).await.unwrap());
    assert!(city.members(city.zone(1)).await.is_empty());
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].play.login_time), (1, session.login_time));
    assert!(ends[0].ended_at >= session.login_time);
}

pub async fn a_session_of_another_program_keeps_its_fields(store: Store) {
    let city = City::of(&store);
    let entity = city.player(1);
    let json = format!(
        r#"{{"entity_id":{},"client_id":"c","zone_id":42,"login_time":1704067200000,"last_activity":1704067260000,"position":{{"x":1234.5,"y":0.0,"z":6789.0}},"health":85,"max_health":100,"team_id":1,"status":"active","guild":{{"id":7}}}}"#,
        entity.0
    );
    city.external_set(&SESSION.key(entity), &json).await;
    let before = store.now().await.unwrap();
    let change = SessionChange { team_id: Some(2), status: Some("afk".into()), ..SessionChange::default() };
    let session = city.game.change(entity, change).await.unwrap();
    assert_eq!((session.team_id, session.status.as_str(), session.health), (2, "afk", 85));
    assert!(session.last_activity >= before);
    let stored = serde_json::to_string(&city.game.session(entity).await.unwrap().unwrap()).unwrap();
    assert!(stored.ends_with(r#""status":"afk","guild":{"id":7}}"#), "{stored}");
    city.game.logout(entity).await.unwrap();
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].play.login_time), (1, 1_704_067_200_000), "it is recorded, too");
}

pub async fn changes_are_bounded(store: Store) {
    let city = City::of(&store);
    let (entity, _) = city.login(1).await;
    let is_invalid = |result: Result<_, Error>| matches!(result, Err(Error::Invalid { .. }));
    for change in [
        SessionChange { health: Some(-1), ..SessionChange::default() },
        SessionChange { max_health: Some(0), ..SessionChange::default() },
        SessionChange { status: Some("x".repeat(33)), ..SessionChange::default() },
        SessionChange { status: Some("a\nb".into()), ..SessionChange::default() },
    ] {
        assert!(is_invalid(city.game.change(entity, change).await));
    }
    let full = city.game.change(entity, SessionChange { health: Some(500), ..SessionChange::default() });
    assert_eq!(full.await.unwrap().health, 100, "not more than full health");
    for request in [
        LoginRequest { max_health: 0, ..city.request(2) },
        LoginRequest { zone: emberkeep_games::darkages::ZoneId(-1), ..city.request(2) },
        LoginRequest { client_id: "x".repeat(129), ..city.request(2) },
        LoginRequest {
            position: emberkeep_games::darkages::Point { x: f64::NAN, ..HERE() },
            ..city.request(2)
        },
    ] {
        assert!(is_invalid(city.game.login(request).await));
    }
    assert!(city.game.session(city.player(2)).await.unwrap().is_none());
}

pub async fn a_malformed_session_is_an_error_that_names_its_key(store: Store) {
    let city = City::of(&store);
    let (entity, _) = city.login(1).await;
    city.external_set(&SESSION.key(entity), "{").await;
    let failed = city.game.touch(entity).await;
    let Err(Error::Store(error @ hot::Error::Corrupt { .. })) = failed else { panic!("{failed:?}") };
    assert!(error.to_string().contains(&format!("session:{}", entity.0)), "{error}");
    let still = city.game.login(city.request(1)).await;
    assert!(
        matches!(still, Err(Error::Store(hot::Error::Corrupt { .. }))),
        "nothing is overwritten: {still:?}"
    );
}

pub async fn a_session_that_another_program_replaced_has_ended(store: Store) {
    let city = City::of(&store);
    let (entity, first) = city.login(1).await;
    let (own, mut other) = (city.game.session(entity).await.unwrap().unwrap(), first.clone());
    assert_eq!(own, first);
    other.login_time = first.login_time + 5;
    city.external_set(&SESSION.key(entity), &serde_json::to_string(&other).unwrap()).await;
    city.game.touch(entity).await.unwrap();
    let ends = city.play_ends(entity.0).await;
    let known = (ends.len(), ends[0].play.login_time, ends[0].ended_at);
    assert_eq!(known, (1, first.login_time, first.last_activity), "at its last activity");
    let play = city.scope.get(&PLAY.key(entity)).await.unwrap().unwrap();
    assert_eq!(play.login_time, other.login_time);
    assert_ne!(play.session_id, ends[0].play.session_id);
    city.game.touch(entity).await.unwrap();
    city.game.logout(entity).await.unwrap();
    let starts: Vec<i64> = city.play_ends(entity.0).await.iter().map(|end| end.play.login_time).collect();
    assert_eq!(starts, [first.login_time, other.login_time], "each once");
}
