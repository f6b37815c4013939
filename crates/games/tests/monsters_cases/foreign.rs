//! Beside other services: what they wrote stays, what is broken is told.

use super::World;
use emberkeep_games::monsters::{Error, Hit, MONSTER, MonsterId};
use emberkeep_games::world::CharacterId;
use emberkeep_hot::{self as hot, Store};

pub async fn what_other_services_wrote_survives_a_hit(store: Store) {
    let world = World::new(&store);
    let key = MONSTER.key(MonsterId(1_000_000_007));
    let monster = concat!(
        r#"{"uniqueId":1000000007,"worldId":0,"channelId":1,"mapId":100000000,"#,
        r#""instance":"00000000-0000-0000-0000-000000000000","monsterId":100100,"maxHp":9,"hp":9,"#,
        r#""damageEntries":{},"statusEffects":{},"aggro":[],"weight":12345678901234567890}"#,
    );
    world.foreign_set(&key, monster).await;
    let hit = world.monsters.damage(world.tenant, MonsterId(1_000_000_007), CharacterId(4), 2).await;
    assert_eq!(hit, Ok(Hit::Struck { actual: 2, hp: 7, killed: false }));
    let stored = world.stored(&key).await.unwrap();
    assert!(
        stored.contains(r#""damageEntries":[{"characterId":4,"damage":2}],"statusEffects":[]"#),
        "{stored}"
    );
    assert!(stored.ends_with(r#""aggro":[],"weight":12345678901234567890}"#), "{stored}");
}

pub async fn a_record_that_is_no_monster_is_an_error_and_stays(store: Store) {
    let world = World::new(&store);
    let id = MonsterId(1_000_000_001);
    world.foreign_set(&MONSTER.key(id), "{}").await;
    let error = world.monsters.damage(world.tenant, id, CharacterId(4), 2).await.unwrap_err();
    assert!(matches!(&error, Error::Store(hot::Error::Corrupt { .. })), "{error:?}");
    assert!(error.to_string().contains("atlas:monster:"), "{error}");
    assert_eq!(world.stored(&MONSTER.key(id)).await.as_deref(), Some("{}"));
}
