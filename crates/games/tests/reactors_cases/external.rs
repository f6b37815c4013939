//! Records of other services are read and preserved.

use super::{BOX, HERO, World};
use bytes::Bytes;
use emberkeep_games::reactors::{Error, Outcome, REACTOR, ReactorId, spots_key};
use emberkeep_hot::Store;
use emberkeep_hot::command::{Expiry, Write};
use std::time::Duration;

pub async fn what_other_services_wrote_survives_a_hit(store: Store) {
    let world = World::new(&store);
    let id = world.external_create(1).await;
    let hit = world.reactors.hit(world.tenant, id, HERO, 0).await.unwrap();
    assert_eq!((hit.outcome, hit.reactor.state), (Outcome::Advanced { from: 0 }, 1));
    let stored = world.stored(&REACTOR.key(id)).await.unwrap();
    for kept in [
        r#""region":"GMS","majorVersion":83,"minorVersion":1}"#,
        r#""stateInfo":{"0":[{"type":0,"activeSkills":[],"nextState":1}],"1":[]}"#,
        r#""state":1,"eventState":0,"delay":5000,"#,
        r#""touches":{"7":[]}}"#,
    ] {
        assert!(stored.contains(kept), "{kept} in {stored}");
    }
    // The second state is the script's `{}`: no events, so the reactor triggers, with the delay of the
    // record.
    let last = world.reactors.hit(world.tenant, id, HERO, 0).await.unwrap();
    assert_eq!(last.outcome, Outcome::Triggered { cooldown: Some(Duration::from_secs(5)) });
}

pub async fn what_is_only_read_stays_byte_for_byte(store: Store) {
    let world = World::new(&store);
    let id = world.external_create(1).await;
    let before = world.stored(&REACTOR.key(id)).await.unwrap();
    assert!(before.contains("007123456+02:00"));
    let reactor = world.get(id).await;
    assert_eq!(reactor.update_time.ms(), Some(1_709_243_999_007));
    world.create(2).await;
    assert_eq!(world.listed().await.len(), 2);
    super::sweeps::sweep(&world).await;
    let refused = world.reactors.update_with(world.tenant, id, |reactor| reactor.x += 1).await;
    assert!(refused.is_err());
    assert_eq!(world.stored(&REACTOR.key(id)).await, Some(before));
}

pub async fn a_record_without_a_tenant_is_unreadable_not_everybodys(store: Store) {
    let world = World::new(&store);
    let id = ReactorId(1_600_000_001);
    let json = world.external_json(id, 1).replacen("\"tenant\"", "\"renter\"", 1);
    world.external_set(&REACTOR.key(id), &json).await;
    let error = world.reactors.get(world.tenant, id).await.unwrap_err();
    assert!(matches!(error, Error::Store(emberkeep_hot::Error::Corrupt { .. })), "{error:?}");
    world.external(&REACTOR.key(id), Write::Del).await;
}

pub async fn a_corrupt_hint_costs_nothing_but_a_look(store: Store) {
    let world = World::new(&store);
    let first = world.create(1).await;
    let hints = spots_key(&world.field);
    let on_top = |x| world.reactors.create(world.tenant, world.request(x));
    let rubbish = vec![(Bytes::from(first.id.to_string()), Bytes::from_static(b"somewhere"))];
    for writes in [
        vec![Write::Del],
        vec![Write::Del, Write::Set(Bytes::from_static(b"a string"), Expiry::Never)],
        vec![Write::Del, Write::HSet(rubbish)],
    ] {
        for write in writes {
            world.external(&hints, write).await;
        }
        assert_eq!(on_top(1).await, Err(Error::SpotTaken { id: first.id }));
    }
    let second = on_top(2).await.unwrap();
    let remembered = world.scope.hgetall(&hints).await.unwrap();
    assert_eq!(remembered, [(first.id, first.spot()), (second.id, second.spot())]);
}

pub async fn a_hint_alone_refuses_no_creation(store: Store) {
    let world = World::new(&store);
    let first = world.create(1).await;
    // Enters a wrong spot for the first reactor, and a spot for one that does not exist.
    let lie = format!("{BOX}:2:-88");
    let lies = [first.id, ReactorId(1_999_999_999)]
        .map(|id| (Bytes::from(id.to_string()), Bytes::from(lie.clone())));
    world.external(&spots_key(&world.field), Write::HSet(lies.to_vec())).await;
    let second = world.create(2).await;
    let remembered = world.scope.hgetall(&spots_key(&world.field)).await.unwrap();
    assert_eq!(remembered, [(first.id, first.spot()), (second.id, second.spot())]);
}
