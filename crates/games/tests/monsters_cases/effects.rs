//! Status effects: applied, replaced, cancelled, refused.

use super::*;
use emberkeep_games::monsters::{EffectRequest, Error, MONSTER, MonsterId, SourceType, limits, rules};
use emberkeep_hot::Store;
use std::time::Duration;
use uuid::Uuid;

impl World {
    async fn apply(&self, id: MonsterId, status: &str, duration: u64) -> (Uuid, Vec<Uuid>) {
        let request = EffectRequest::new(ALICE, status, 1, ms(duration));
        let applied = self.monsters.apply_effect(self.tenant, id, request).await.unwrap();
        (applied.effect.id, applied.replaced.iter().map(|effect| effect.id).collect())
    }

    async fn borne(&self, id: MonsterId) -> Vec<Uuid> {
        self.get(id).await.effects.iter().map(|effect| effect.id).collect()
    }
}

pub async fn an_effect_is_stored_in_the_names_that_others_read(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let request = EffectRequest {
        source: SourceType::MONSTER_SKILL,
        source_skill: 126,
        source_skill_level: 3,
        ..EffectRequest::new(BOB, "SEAL", -7, ms(5_000)).every(ms(1_000))
    };
    let effect = world.monsters.apply_effect(world.tenant, id, request).await.unwrap().effect;
    assert_eq!(effect.expires_at_ms, effect.created_at_ms + 5_000);
    let stored = world.stored(&MONSTER.key(id)).await.unwrap();
    let expected = format!(
        concat!(
            r#""statusEffects":[{{"effectId":"{}","sourceType":"MONSTER_SKILL","sourceCharacterId":2,"#,
            r#""sourceSkillId":126,"sourceSkillLevel":3,"statuses":{{"SEAL":-7}},"durationMs":5000,"#,
            r#""tickIntervalMs":1000,"lastTickMs":{},"createdAtMs":{},"expiresAtMs":{}}}]"#,
        ),
        effect.id, effect.created_at_ms, effect.created_at_ms, effect.expires_at_ms
    );
    assert!(stored.contains(&expected), "{stored}\n{expected}");
    assert_eq!(world.effects_due(id).await, Some(effect.created_at_ms + 1_000));
}

pub async fn the_same_status_replaces_and_others_stay(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let (stun, _) = world.apply(id, "STUN", 9_000).await;
    let (seal, none) = world.apply(id, "SEAL", 9_000).await;
    assert!(none.is_empty());
    let (again, replaced) = world.apply(id, "STUN", 1_000).await;
    assert_eq!((replaced, world.borne(id).await), (vec![stun], vec![seal, again]));
}

pub async fn venom_stacks_to_three_and_the_one_that_ends_soonest_leaves(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let (long, _) = world.apply(id, rules::VENOM, 30_000).await;
    let (short, _) = world.apply(id, rules::VENOM, 10_000).await;
    let (middle, _) = world.apply(id, rules::VENOM, 20_000).await;
    let (new, replaced) = world.apply(id, rules::VENOM, 5_000).await;
    assert_eq!((replaced, world.borne(id).await), (vec![short], vec![long, middle, new]));
}

/// Each effect replaces the previous one: none is lost, none is there twice.
pub async fn effects_at_the_same_time_replace_one_another(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let mut tasks = Vec::new();
    for _ in 0..12 {
        let world = world.clone();
        tasks.push(tokio::spawn(async move { world.apply(id, "STUN", 60_000).await }));
    }
    let (mut applied, mut replaced) = (Vec::new(), Vec::new());
    for task in tasks {
        let (new, old) = task.await.unwrap();
        applied.push(new);
        replaced.extend(old);
    }
    replaced.extend(world.borne(id).await);
    applied.sort();
    replaced.sort();
    assert_eq!((applied.len(), applied), (12, replaced));
}

pub async fn an_effect_that_makes_no_sense_is_refused(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let fine = EffectRequest::new(BOB, rules::POISON, 5, ms(1_000)).every(ms(100));
    let wrong = [
        ("source type", EffectRequest { source: SourceType::new(""), ..fine.clone() }),
        (
            "source skill",
            EffectRequest { source: SourceType::MONSTER_SKILL, source_skill: 65_536, ..fine.clone() },
        ),
        ("statuses", EffectRequest { statuses: Default::default(), ..fine.clone() }),
        ("status", EffectRequest::new(BOB, "", 5, ms(1_000))),
        ("status", EffectRequest::new(BOB, " ", 5, ms(1_000))),
        ("duration", EffectRequest { duration: Duration::ZERO, ..fine.clone() }),
        ("duration", EffectRequest { duration: limits::EFFECT_DURATION_MAX + ms(1), ..fine.clone() }),
        ("tick interval", fine.clone().every(Duration::from_nanos(1))),
        ("tick interval", fine.clone().every(limits::EFFECT_DURATION_MAX + ms(1))),
    ];
    for (expected, request) in wrong {
        let error = world.monsters.apply_effect(world.tenant, id, request).await.unwrap_err();
        assert!(matches!(&error, Error::Invalid { what, .. } if *what == expected), "{expected}: {error:?}");
    }
    assert!(world.get(id).await.effects.is_empty());
    assert_eq!(world.effects_due(id).await, None);
}

pub async fn a_monster_bears_no_more_effects_than_the_bound(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    for n in 0..limits::EFFECTS_MAX {
        world.apply(id, &format!("STATUS {n}"), 60_000).await;
    }
    let request = EffectRequest::new(BOB, "ONE MORE", 1, ms(10));
    let refused = world.monsters.apply_effect(world.tenant, id, request).await.unwrap_err();
    assert!(matches!(refused, Error::TooMany { max: limits::EFFECTS_MAX, .. }), "{refused:?}");
    assert_eq!(world.get(id).await.effects.len(), limits::EFFECTS_MAX);
}

pub async fn effects_are_cancelled_by_id_by_name_or_all(store: Store) {
    let world = World::new(&store);
    let (monsters, tenant, id) = (&world.monsters, world.tenant, world.spawn(10).await.id);
    let (stun, _) = world.apply(id, "STUN", 1_000).await;
    let (first, _) = world.apply(id, rules::VENOM, 20_000).await;
    let (second, _) = world.apply(id, rules::VENOM, 30_000).await;
    let (seal, _) = world.apply(id, "SEAL", 40_000).await;
    assert_eq!(monsters.cancel_effect(tenant, id, stun).await.unwrap().unwrap().id, stun);
    assert_eq!(monsters.cancel_effect(tenant, id, stun).await, Ok(None));
    let expires = |effects: &[emberkeep_games::monsters::StatusEffect]| effects[0].expires_at_ms;
    assert_eq!(world.effects_due(id).await, Some(expires(&world.get(id).await.effects)));
    let gone = monsters.cancel_status(tenant, id, rules::VENOM).await.unwrap();
    assert_eq!(gone.iter().map(|effect| effect.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(monsters.cancel_status(tenant, id, rules::VENOM).await, Ok(vec![]));
    let gone = monsters.cancel_effects(tenant, id).await.unwrap();
    assert_eq!(gone.iter().map(|effect| effect.id).collect::<Vec<_>>(), [seal]);
    assert_eq!((world.borne(id).await, world.effects_due(id).await), (vec![], None));
}
