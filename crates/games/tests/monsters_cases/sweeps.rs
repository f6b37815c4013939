//! The sweep finds and repairs what no call reads.

use super::*;
use bytes::Bytes;
use emberkeep_games::monsters::*;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::{Error as HotError, Store};

impl World {
    /// A complete sweep.
    pub async fn sweep(&self) -> SweepReport {
        let mut sweep = self.monsters.sweep();
        while sweep.turn().await.unwrap() {}
        sweep.report()
    }
}

pub async fn a_sweep_prunes_stale_entries_and_finds_orphans(store: Store) {
    let world = World::new(&store);
    let (stale, orphan, fine) = (world.spawn_id().await, world.spawn_id().await, world.spawn_id().await);
    world.external_del(&MONSTER.key(MonsterId(stale))).await;
    let member = vec![Bytes::from(orphan.to_string())];
    world.external(&field_key(&world.field), Write::SRem(member)).await;
    let report = world.sweep().await;
    assert!(report.stale >= 1 && report.orphans >= 1, "{report:?}");
    assert_eq!(world.indexed(world.field).await, [orphan, fine]);
    assert_eq!(world.listed().await, [orphan, fine]);
}

pub async fn a_sweep_removes_keys_without_a_record(store: Store) {
    let world = World::new(&store);
    let (living, dead, gone) =
        (world.spawn_laden().await, world.spawn_laden().await, world.spawn_laden().await);
    // Another service writes the timer of a monster that is dead.
    let timer = world.stored(&DROP_TIMER.key(dead)).await.unwrap();
    world.kill(dead).await;
    world.external_set(&DROP_TIMER.key(dead), &timer).await;
    world.external_del(&MONSTER.key(gone)).await;
    let report = world.sweep().await;
    assert!(report.timers >= 2 && report.cooldowns >= 2, "{report:?}");
    for id in [dead, gone] {
        assert_eq!((world.stored(&DROP_TIMER.key(id)).await, world.drop_due(id).await), (None, None));
    }
    let cools = async |id, skill| world.stored(&MONSTER_COOLDOWN.key(id, SkillId(skill))).await;
    assert_eq!((cools(gone, 1).await, cools(gone, 2).await), (None, None));
    // A dead monster has its cooldowns until it is removed; the living ones are unchanged.
    assert!(cools(dead, 1).await.is_some() && cools(living, 1).await.is_some());
    assert!(world.drop_due(living).await.is_some() && world.effects_due(living).await.is_some());
}

pub async fn a_sweep_makes_known_what_other_services_wrote(store: Store) {
    let world = World::new(&store);
    let id = world.spawn_laden().await;
    let (drop, effects) = (world.drop_due(id).await, world.effects_due(id).await);
    // As another service leaves them: the documented keys without ours.
    world.external_del(&DROP_TIMERS.key()).await;
    world.external_del(&MONSTER_EFFECTS.key()).await;
    world.external_del(&MONSTER_COOLDOWNS.key(id)).await;
    let end = store.now().await.unwrap() + 600_000;
    let marker = MONSTER_COOLDOWN.key(id, SkillId(77));
    world.external(&marker, Write::Set(Bytes::from_static(b"1"), Expiry::At(end))).await;
    let report = world.sweep().await;
    assert!(report.hints >= 5, "{report:?}");
    assert_eq!((world.drop_due(id).await, world.effects_due(id).await), (drop, effects));
    // It is removed with the monster, so that a reused id does not inherit it.
    assert!(world.remove(id.0).await);
    assert_eq!(world.stored(&marker).await, None);
    assert_eq!(world.spawn(10).await.id, id);
    assert!(!world.is_cooling(id, 77).await && !world.is_cooling(id, 1).await);
}

pub async fn a_second_sweep_finds_nothing_to_do(store: Store) {
    let world = World::new(&store);
    world.spawn_laden().await;
    world.sweep().await;
    let keys = world.keys().await;
    let again = world.sweep().await;
    assert_eq!((again.stale, again.orphans, again.timers), (0, 0, 0), "{again:?}");
    assert_eq!((again.cooldowns, again.hints), (0, 0), "{again:?}");
    assert_eq!(world.keys().await, keys);
}

pub async fn a_sweep_names_what_it_cannot_read_and_leaves_it(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let (monster, timer) = (MONSTER.key(MonsterId(1_500_000_000)), DROP_TIMER.key(id));
    world.external_set(&monster, "{").await;
    world.external_set(&timer, "{").await;
    let report = world.sweep().await;
    for key in [world.name_of(&monster), world.name_of(&timer)] {
        let reported = report
            .corrupt
            .iter()
            .any(|error| matches!(error, HotError::Corrupt { .. }) && error.to_string().contains(&key));
        assert!(reported, "{key}: {report:?}");
    }
    assert_eq!(world.stored(&monster).await.as_deref(), Some("{"));
    assert_eq!(world.stored(&timer).await.as_deref(), Some("{"));
}

/// A turn is bounded: a sweep over many monsters takes several, and continues where it stopped.
pub async fn a_sweep_goes_on_turn_by_turn(store: Store) {
    let world = World::new(&store);
    let mut spawned = Vec::new();
    for _ in 0..20 {
        spawned.push(world.spawn_laden().await.0);
    }
    world.external_del(&field_key(&world.field)).await;
    let (mut sweep, mut turns) = (world.monsters.sweep(), 0);
    while sweep.turn().await.unwrap() {
        turns += 1;
    }
    assert!(turns >= 5, "{turns}");
    assert!(!sweep.turn().await.unwrap(), "the end stays the end");
    assert_eq!(world.indexed(world.field).await, spawned);
}
