//! Fights: each hit counts once, one kills; sessions that end are recorded once.

use super::City;
use emberkeep_games::darkages::history::HitType;
use emberkeep_games::darkages::{
    CONNECTIONS, DamageRequest, EntityId, Error, Fighter, LoginRequest, PLAY, SESSION, SESSIONS_DUE, Session,
    SessionChange, Shard, ZONE_PLAYERS,
};
use emberkeep_hot::command::Write;
use emberkeep_hot::{self as hot, Store, Tx};
use tokio::task::JoinSet;

pub fn hit(attacker: EntityId, target: EntityId, amount: i32) -> DamageRequest {
    let (attacker, hit_type) = (Fighter::Player(attacker), HitType::Normal);
    DamageRequest { attacker, target, amount, hit_type, ability: Some("fireball".into()) }
}

pub async fn one_of_64_hits_kills_and_each_is_recorded(store: Store) {
    let city = City::of(&store);
    let (target, _) = city.login(0).await;
    for number in 1..=4 {
        city.login(number).await;
    }
    let mut hits = JoinSet::new();
    for number in 0..64 {
        let (game, request) = (city.game.clone(), hit(city.player(1 + number % 4), target, 7));
        hits.spawn(async move { game.damage(request).await });
    }
    let outcomes = hits.join_all().await;
    let landed: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    assert_eq!(landed.len(), 15, "100 of health last for 15 hits of 7");
    assert_eq!(landed.iter().filter(|hit| hit.killed).count(), 1, "one kills");
    assert_eq!(landed.iter().map(|hit| hit.actual).sum::<i32>(), 100);
    assert!(
        outcomes.iter().all(|outcome| outcome.is_ok() || *outcome == Err(Error::Dead { entity: target }))
    );
    let recorded = city.hits_on(target).await;
    assert_eq!(recorded.len(), 15);
    assert_eq!(recorded.iter().map(|hit| hit.damage).sum::<i32>(), 100);
    assert_eq!(recorded.iter().filter(|hit| hit.is_kill).count(), 1);
    let play = city.scope.get(&PLAY.key(target)).await.unwrap().unwrap();
    assert_eq!((play.deaths, play.damage_taken), (1, 100));
    let (mut kills, mut dealt) = (0, 0);
    for number in 1..=4 {
        let play = city.scope.get(&PLAY.key(city.player(number))).await.unwrap().unwrap();
        (kills, dealt) = (kills + play.kills, dealt + play.damage_dealt);
    }
    assert_eq!((kills, dealt), (1, 100));
    let risen = SessionChange { health: Some(40), ..SessionChange::default() };
    city.game.change(target, risen).await.unwrap();
    assert_eq!(city.game.damage(hit(city.player(1), target, 10)).await.unwrap().health, 30);
}

pub async fn a_hit_needs_a_living_target_and_valid_arguments(store: Store) {
    let city = City::of(&store);
    let ((attacker, _), (target, _)) = (city.login(1).await, city.login(2).await);
    let (away, entity) = (city.player(9), city.player(9));
    assert_eq!(city.game.damage(hit(away, target, 1)).await, Err(Error::NotLoggedIn { entity }));
    assert_eq!(city.game.damage(hit(attacker, away, 1)).await, Err(Error::NotLoggedIn { entity }));
    let missed = |amount| DamageRequest { hit_type: HitType::Missed, ..hit(attacker, target, amount) };
    for request in [
        hit(attacker, target, -1),
        hit(attacker, target, i32::MAX),
        hit(attacker, attacker, 1),
        missed(1),
        DamageRequest { ability: Some("x".repeat(129)), ..hit(attacker, target, 1) },
    ] {
        let refused = city.game.damage(request).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    assert!(city.hits_on(target).await.is_empty(), "nothing was recorded");
    let outcome = city.game.damage(missed(0)).await.unwrap();
    assert_eq!((outcome.actual, outcome.health, outcome.killed), (0, 100, false));
    assert_eq!(city.hits_on(target).await[0].hit_type, HitType::Missed);
}

pub async fn a_creature_hits_without_statistics(store: Store) {
    let city = City::of(&store);
    let (target, _) = city.login(1).await;
    let request = DamageRequest { attacker: Fighter::Npc(-5), ..hit(target, target, 30) };
    assert_eq!(city.game.damage(request).await.unwrap().health, 70);
    let recorded = city.hits_on(target).await;
    assert_eq!((recorded[0].attacker_id, recorded[0].attacker_is_player), (-5, false));
    assert!(recorded[0].target_is_player);
}

pub async fn an_expired_session_is_closed_once(store: Store) {
    let city = City::of(&store);
    let (entity, session) = city.login(1).await;
    city.scope.del(&SESSION.key(entity)).await.unwrap();
    city.make_due(entity).await;
    assert_eq!(city.game.expired(10).await.unwrap(), [entity]);
    let mut sweeps = JoinSet::new();
    for _ in 0..16 {
        let game = city.game.clone();
        sweeps.spawn(async move { game.close_expired(100).await.unwrap().closed });
    }
    assert_eq!(sweeps.join_all().await.iter().sum::<usize>(), 1, "one of 16 sweeps closes it");
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].ended_at), (1, session.last_activity), "the last known activity");
    assert!(!city.scope.exists(&PLAY.key(entity)).await.unwrap());
    assert!(city.members(city.zone(1)).await.is_empty());
}

pub async fn a_play_record_that_cannot_be_read_does_not_stop_the_sweep(store: Store) {
    let city = City::of(&store);
    let ((bad, _), (good, _)) = (city.login(1).await, city.login(2).await);
    for entity in [bad, good] {
        city.scope.del(&SESSION.key(entity)).await.unwrap();
        city.make_due(entity).await;
    }
    city.external_set(&PLAY.key(bad), "[").await;
    let done = city.game.close_expired(100).await.unwrap();
    assert_eq!((done.closed, done.unreadable), (1, 1));
    assert_eq!(city.play_ends(good.0).await.len(), 1);
    assert!(city.scope.exists(&PLAY.key(bad)).await.unwrap(), "it is as it was");
    city.scope.del(&PLAY.key(bad)).await.unwrap();
}

/// Another program left a string where the closing needs a set, a record or connections.
pub async fn a_key_of_a_wrong_type_stops_only_its_own_closing(store: Store) {
    let city = City::of(&store);
    let broken = |number: i64| LoginRequest { zone: city.zone(9), ..city.request(number) };
    for (round, number) in [10, 20, 30].into_iter().enumerate() {
        let bad = city.player(number);
        city.game.login(broken(number)).await.unwrap();
        let mut all = vec![bad];
        for other in 1..=3 {
            all.push(city.login(number + other).await.0);
        }
        for entity in &all {
            city.scope.del(&SESSION.key(*entity)).await.unwrap();
            city.make_due(*entity).await;
        }
        match round {
            0 => city.external_set(&ZONE_PLAYERS.key(city.zone(9)), "x").await,
            1 => city.external_set(&CONNECTIONS.key(bad), "x").await,
            _ => {
                city.external(&PLAY.key(bad), Write::Del).await;
                city.external(&PLAY.key(bad), Write::SAdd(vec!["x".into()])).await;
            }
        }
        let done = city.game.close_expired(100).await.unwrap();
        let expected = if round < 2 { (3, 1, 0) } else { (3, 0, 1) };
        assert_eq!((done.closed, done.failed, done.unreadable), expected, "round {round}");
        assert_eq!(done.failure.is_some(), round < 2, "{:?}", done.failure);
        for entity in &all[1..] {
            assert_eq!(city.play_ends(entity.0).await.len(), 1, "round {round}");
        }
        assert_eq!(city.game.close_expired(100).await.unwrap(), Default::default(), "it is tried later");
        city.scope.del(&ZONE_PLAYERS.key(city.zone(9))).await.unwrap();
        city.scope.del(&CONNECTIONS.key(bad)).await.unwrap();
        if round == 2 {
            city.scope.del(&PLAY.key(bad)).await.unwrap();
        }
        city.make_due(bad).await;
        let closed = usize::from(round < 2);
        assert_eq!(city.game.close_expired(100).await.unwrap().closed, closed, "as soon as it can be");
        assert_eq!(city.play_ends(bad.0).await.len(), closed);
    }
}

pub async fn a_session_of_another_program_is_closed_when_it_expires(store: Store) {
    let city = City::of(&store);
    let (entity, session) = city.login(1).await;
    // As if it had never been ours.
    city.scope.del(&PLAY.key(entity)).await.unwrap();
    city.scope.del(&emberkeep_games::darkages::SESSIONS_DUE.key()).await.unwrap();
    city.game.move_to(entity, city.zone(5)).await.unwrap();
    city.scope.del(&SESSION.key(entity)).await.unwrap();
    let due = city.scope.zscore(&emberkeep_games::darkages::SESSIONS_DUE.key(), &entity).await.unwrap();
    assert!(due.is_some(), "its end will be noticed");
    city.make_due(entity).await;
    assert_eq!(city.game.close_expired(100).await.unwrap().closed, 1);
    let ends = city.play_ends(entity.0).await;
    assert_eq!((ends.len(), ends[0].play.login_time), (1, session.login_time));
}

pub async fn a_living_session_is_not_closed(store: Store) {
    let city = City::of(&store);
    let (entity, _) = city.login(1).await;
    city.make_due(entity).await;
    let done = city.game.close_expired(100).await.unwrap();
    assert_eq!((done.closed, done.alive), (0, 1));
    assert!(city.game.session(entity).await.unwrap().is_some());
    assert!(city.play_ends(entity.0).await.is_empty());
    assert_eq!(
        city.game.close_expired(100).await.unwrap().alive,
        0,
        "it is looked at again when it can be gone"
    );
}

pub async fn being_hit_is_no_activity(store: Store) {
    let city = City::of(&store);
    let ((attacker, _), (target, before)) = (city.login(1).await, city.login(2).await);
    let key = SESSION.key(target);
    let soon = store.now().await.unwrap() + 60_000;
    city.external(&key, Write::ExpireAt(soon)).await;
    for request in
        [hit(attacker, target, 1), DamageRequest { attacker: Fighter::Npc(3), ..hit(attacker, target, 1) }]
    {
        city.game.damage(request).await.unwrap();
        assert_eq!(city.scope.deadline_of(&key).await.unwrap(), Some(soon), "a player who left goes");
        let session = city.game.session(target).await.unwrap().unwrap();
        assert_eq!(session.last_activity, before.last_activity);
    }
    let play = city.scope.get(&PLAY.key(target)).await.unwrap().unwrap();
    assert_eq!((play.last_activity, play.damage_taken), (before.last_activity, 2));
    city.external(&SESSION.key(attacker), Write::ExpireAt(soon)).await;
    city.game.damage(hit(attacker, target, 1)).await.unwrap();
    let deadline = city.scope.deadline_of(&SESSION.key(attacker)).await.unwrap();
    assert!(deadline > Some(soon + 3_000_000), "to hit is activity: {deadline:?}");
    city.external(&key, Write::Persist).await;
    city.game.damage(hit(attacker, target, 1)).await.unwrap();
    assert!(city.scope.deadline_of(&key).await.unwrap().is_some(), "no session lives for ever");
}

pub async fn expired_sessions_are_found_behind_living_ones(store: Store) {
    let city = City::of(&store);
    let gone = city.player(999);
    let entities: Vec<EntityId> = (0..600).map(|number| city.player(number)).collect();
    let fill = move |tx: &mut Tx<'_, Shard>| {
        for entity in &entities {
            let session = Session::new(entity.0, "c".into(), 0, 1, 1, super::HERE(), 100, 100);
            tx.put(&SESSION.key(entity), &session)?;
            tx.zadd(&SESSIONS_DUE.key(), entity, 1.0)?;
        }
        tx.zadd(&SESSIONS_DUE.key(), &gone, 2.0)
    };
    city.scope.transact::<(), hot::Error, _>(fill).await.unwrap();
    assert_eq!(city.game.expired(1).await.unwrap(), [gone]);
    city.game.close_expired(1_000).await.unwrap();
    assert!(city.game.expired(10).await.unwrap().is_empty());
}
