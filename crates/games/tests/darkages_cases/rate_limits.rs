//! Rate limits of what an entity does.

use super::City;
use emberkeep_games::darkages::{Entity, EntityId, Error, RATE, RateCheck};
use emberkeep_hot::Store;
use emberkeep_schema::Name;
use std::time::Duration;
use tokio::task::JoinSet;

fn attack() -> Name {
    Name::new("attack").unwrap()
}

fn check(entity: EntityId, event: &str, limit: usize, window: Duration) -> RateCheck {
    RateCheck { entity, action: attack(), event_id: event.into(), limit, window }
}

pub async fn events_beyond_the_limit_are_refused(store: Store) {
    let city = City::of(&store);
    let entity = city.player(1);
    let window = Duration::from_secs(300);
    let first = city.game.check_rate(check(entity, "e1", 2, window)).await.unwrap();
    assert_eq!((first.allowed, first.remaining), (true, 1));
    let again = city.game.check_rate(check(entity, "e1", 2, window)).await.unwrap();
    assert_eq!((again.allowed, again.remaining), (true, 1), "a known event is not counted again");
    let second = city.game.check_rate(check(entity, "e2", 2, window)).await.unwrap();
    assert_eq!((second.allowed, second.remaining), (true, 0));
    let third = city.game.check_rate(check(entity, "e3", 2, window)).await.unwrap();
    assert!(!third.allowed && third.retry_after > Duration::from_secs(200), "{third:?}");
    let key = RATE.key(attack());
    let scope = store.scope(Entity(entity));
    let now = store.now().await.unwrap();
    let life = scope.deadline_of(&key).await.unwrap().unwrap() - now;
    assert!((240_000..=300_000).contains(&life), "the window, if it is longer than a minute: {life}");
    let other = city.player(2);
    assert!(city.game.check_rate(check(other, "e1", 2, Duration::from_secs(1))).await.unwrap().allowed);
    let life = store.scope(Entity(other)).deadline_of(&key).await.unwrap().unwrap() - now;
    assert!((50_000..=70_000).contains(&life), "a minute otherwise: {life}");
}

pub async fn rate_limits_without_a_window_are_refused(store: Store) {
    let city = City::of(&store);
    let entity = city.player(1);
    let none = check(entity, "e1", 2, Duration::ZERO);
    let endless = check(entity, "e1", 2, Duration::MAX);
    let nothing = check(entity, "e1", 0, Duration::from_secs(1));
    for refused in [none, endless, nothing] {
        let refused = city.game.check_rate(refused).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "rate limit", .. })), "{refused:?}");
    }
    for event in ["", "with\nline", &"x".repeat(129)] {
        let refused = city.game.check_rate(check(entity, event, 2, Duration::from_secs(1))).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "event id", .. })), "{refused:?}");
    }
    for entity in [EntityId(i64::MIN), EntityId(i64::MAX)] {
        let event = format!("{}", city.first);
        city.game.check_rate(check(entity, &event, 1_000, Duration::from_secs(1))).await.unwrap();
    }
}

pub async fn of_64_events_at_once_the_limit_is_admitted(store: Store) {
    let city = City::of(&store);
    let entity = city.player(1);
    let mut checks = JoinSet::new();
    for number in 0..64 {
        let game = city.game.clone();
        let event = check(entity, &format!("e{number}"), 10, Duration::from_secs(300));
        checks.spawn(async move { game.check_rate(event).await.unwrap().allowed });
    }
    let admitted = checks.join_all().await.into_iter().filter(|allowed| *allowed).count();
    assert_eq!(admitted, 10);
}
