//! The sweep repairs what is never read.

use super::{BOX, World};
use bytes::Bytes;
use emberkeep_games::reactors::{Error, REACTOR, REACTORS_ALL, ReactorId, SweepReport, field_key, spots_key};
use emberkeep_hot::Store;
use emberkeep_hot::command::Write;
use std::time::Duration;

/// A complete sweep.
pub(super) async fn sweep(world: &World) -> SweepReport {
    world.reactors.sweep().run(Duration::ZERO).await.unwrap()
}

pub async fn a_sweep_removes_stale_entries_and_brings_orphans_home(store: Store) {
    let world = World::new(&store);
    let (stale, orphan, stray) = (world.create(1).await, world.create(2).await, world.create(3).await);
    let member = |id: ReactorId| vec![Bytes::from(id.to_string())];
    world.external(&REACTOR.key(stale.id), Write::Del).await;
    world.external(&field_key(&world.field), Write::SRem(member(orphan.id))).await;
    world.external(&REACTORS_ALL.key(), Write::SRem(member(stray.id))).await;
    let report = sweep(&world).await;
    assert!(report.fields.stale >= 1 && report.all.stale >= 1, "{report:?}");
    assert!(report.fields.orphans >= 1 && report.all.orphans >= 1, "{report:?}");
    assert_eq!(world.indexed().await, [orphan.id, stray.id]);
    assert!(!world.in_all(stale.id).await && world.in_all(orphan.id).await && world.in_all(stray.id).await);
    let report = sweep(&world).await;
    assert_eq!((report.fields.stale, report.fields.orphans, report.all.orphans), (0, 0, 0), "{report:?}");
}

pub async fn a_sweep_sets_right_what_is_remembered_of_spots(store: Store) {
    let world = World::new(&store);
    let (moved, gone) = (world.create(1).await, world.create(2).await);
    // An external client moves one reactor, which the game never does, and removes another.
    world.external_set(&REACTOR.key(moved.id), &world.external_json(moved.id, 5)).await;
    world.external(&REACTOR.key(gone.id), Write::Del).await;
    assert_eq!(sweep(&world).await.spots, 2);
    let remembered = world.scope.hgetall(&spots_key(&world.field)).await.unwrap();
    assert_eq!(remembered, [(moved.id, world.spot(5))]);
    let on_top = world.reactors.create(world.tenant, world.request(5)).await;
    assert_eq!(on_top, Err(Error::SpotTaken { id: moved.id }));
    assert_eq!(world.create(1).await.classification, BOX);
    assert_eq!(sweep(&world).await.spots, 0);
}
