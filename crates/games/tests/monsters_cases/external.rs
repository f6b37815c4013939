//! Values of other services are preserved, corrupt ones are reported.

use super::*;
use emberkeep_games::monsters::{Error, Hit, MONSTER, MonsterId};
use emberkeep_games::world::CharacterId;
use emberkeep_hot::{self as hot, Store};

const MONSTER_OF_OTHERS: &str = concat!(
    r#"{"uniqueId":1000000007,"worldId":0,"channelId":1,"mapId":100000000,"#,
    r#""instance":"00000000-0000-0000-0000-000000000000","monsterId":100100,"maxHp":9,"hp":9,"#,
    r#""damageEntries":{},"statusEffects":{},"aggro":[],"weight":12345678901234567890}"#,
);

/// A script's empty table, written as `{}`, once made monsters invulnerable after their first hit.
pub async fn what_other_services_wrote_survives_a_hit(store: Store) {
    let world = World::new(&store);
    let (id, key) = (MonsterId(1_000_000_007), MONSTER.key(MonsterId(1_000_000_007)));
    world.external_set(&key, MONSTER_OF_OTHERS).await;
    let hit = world.monsters.damage(world.tenant, id, CharacterId(4), 2).await;
    assert_eq!(hit, Ok(Hit { actual: 2, hp: 7, killed: false }));
    let stored = world.stored(&key).await.unwrap();
    assert!(
        stored.contains(r#""damageEntries":[{"characterId":4,"damage":2}],"statusEffects":[]"#),
        "{stored}"
    );
    assert!(stored.ends_with(r#""aggro":[],"weight":12345678901234567890}"#), "{stored}");
    assert!(world.monsters.damage(world.tenant, id, CharacterId(4), 7).await.unwrap().killed);
}

pub async fn what_other_services_wrote_survives_everything_else(store: Store) {
    let world = World::new(&store);
    let (id, key) = (MonsterId(1_000_000_007), MONSTER.key(MonsterId(1_000_000_007)));
    world.external_set(&key, MONSTER_OF_OTHERS).await;
    world.monsters.damage(world.tenant, id, ALICE, 2).await.unwrap();
    world.monsters.heal(world.tenant, id, 1).await.unwrap();
    world.monsters.control(world.tenant, id, ALICE).await.unwrap();
    world.poison(id, 1, 60_000, 1_000).await;
    world.age_effects(id, 2_000).await;
    assert_eq!(world.monsters.tick_effects(world.tenant, id).await.unwrap().hp, 6);
    world.monsters.cancel_effects(world.tenant, id).await.unwrap();
    let stored = world.stored(&key).await.unwrap();
    assert!(stored.contains(r#""statusEffects":[]"#), "{stored}");
    assert!(stored.ends_with(r#""aggro":[],"weight":12345678901234567890}"#), "{stored}");
}

pub async fn a_record_that_is_no_monster_is_an_error_and_stays(store: Store) {
    let world = World::new(&store);
    let id = MonsterId(1_000_000_001);
    world.external_set(&MONSTER.key(id), "{}").await;
    let error = world.monsters.damage(world.tenant, id, CharacterId(4), 2).await.unwrap_err();
    assert!(matches!(&error, Error::Store(hot::Error::Corrupt { .. })), "{error:?}");
    assert!(error.to_string().contains(&world.name_of(&MONSTER.key(id))), "{error}");
    assert!(world.monsters.remove(world.tenant, id).await.is_err());
    assert_eq!(world.stored(&MONSTER.key(id)).await.as_deref(), Some("{}"));
}

/// A record may contain the id of another monster. Changes must not affect that one.
pub async fn a_record_that_names_another_id_does_no_harm(store: Store) {
    let world = World::new(&store);
    let (liar, other) = (world.spawn(100).await.id, world.spawn(100).await.id);
    world.poison(liar, 5, 60_000, 1_000).await;
    world.age_effects(liar, 2_000).await;
    let lie = world.stored(&MONSTER.key(liar)).await.unwrap();
    let lie = lie.replace(&format!(r#""uniqueId":{liar}"#), &format!(r#""uniqueId":{other}"#));
    world.external_set(&MONSTER.key(liar), &lie).await;
    let before = world.get(other).await;
    let ran = world.monsters.run_due_effects(world.tenant, 10).await.unwrap().done;
    assert!(ran.len() == 1 && ran[0].id == liar && ran[0].hp <= 90, "{ran:?}");
    world.monsters.damage(world.tenant, liar, ALICE, 1).await.unwrap();
    world.monsters.cancel_effects(world.tenant, liar).await.unwrap();
    assert!(world.remove(liar.0).await);
    assert_eq!(world.get(other).await, before);
    assert_eq!((world.listed().await, world.free().await), (vec![other.0], vec![liar.0]));
}
