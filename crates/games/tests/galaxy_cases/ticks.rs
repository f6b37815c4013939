//! Ticks: whole for readers, one engine at a time, completed after a stop.

use super::*;
use emberkeep_games::galaxy::{
    CHUNK, Error, GameTime, HEAD, KEPT, MotionChange, Phase, SHIP, TICK, TICK_ENGINE, TIME, limits,
};
use emberkeep_hot as hot;

pub async fn a_tick_is_in_hashes_chunks_and_keys(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(5.0).await;
    let mut world = World::default();
    space.step(&mut world).await;
    space.step(&mut world).await;
    let view = space.state.tick().await.unwrap();
    assert_eq!((view.tick, view.world.ships.len()), (2, 1));
    assert_eq!(view.world.ships[&ship].player_id, player);
    assert_eq!(view.world, world);
    let found = space.state.ship(&ship).await.unwrap().unwrap();
    assert_eq!((found.motion.position.x, found.tick), (7.0, Some(2)));
    let scope = space.state.scope();
    assert_eq!(scope.get(&TICK.key()).await, Ok(Some(2)));
    assert_eq!(scope.get(&TIME.key()).await.unwrap(), Some(view.time));
    assert_eq!(space.run.load().await, Ok(world));
}

pub async fn thousands_of_ships_are_one_tick(store: Store) {
    let space = Space::of(&store).await;
    let mut world = World::default();
    for index in 0..600 {
        space.spawn(f64::from(index)).await;
    }
    space.step(&mut world).await;
    assert_eq!(world.ships.len(), 600);
    let head = space.state.head().await.unwrap();
    assert_eq!((head.entities, head.chunks), (600, 3));
    assert_eq!(space.state.tick().await.unwrap().world, world);
    let sol = emberkeep_games::galaxy::SystemId::sol();
    assert_eq!(space.state.system(&sol).await.unwrap().world, world);
    for _ in 0..4 {
        space.step(&mut world).await;
    }
    let kept = space.state.scope().hgetall(&KEPT.key()).await.unwrap();
    assert_eq!(kept.len() as i64, limits::TICKS_KEPT, "{kept:?}");
    let old = CHUNK.key(head.generation, head.tick, 0);
    assert_eq!(space.state.scope().exists(&old).await, Ok(false));
}

pub async fn queued_changes_are_in_the_next_tick(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let mut world = World::default();
    space.step(&mut world).await;
    let physics = space.state.physics();
    physics.move_ship(ship, MotionChange::fuel(77.0)).await.unwrap();
    physics
        .move_ship(ship, MotionChange::teleport(Vector::new(100.0, 0.0, 0.0), Vector::ZERO))
        .await
        .unwrap();
    assert_eq!(space.state.ship(&ship).await.unwrap().unwrap().motion.fuel, 30_000.0, "not before the tick");
    // The simulation does not look at them: the commit applies them.
    let mut step = space.run.begin(STEP).await.unwrap();
    assert_eq!(step.changes().len(), 2);
    space.run.commit(&mut step, &mut world).await.unwrap();
    let found = space.state.ship(&ship).await.unwrap().unwrap();
    assert_eq!((found.motion.fuel, found.motion.position.x), (77.0, 100.0));
    space.step(&mut world).await;
    assert_eq!(world.ships[&ship].motion.position.x, 101.0, "once");
}

pub async fn a_removed_ship_does_not_come_back(store: Store) {
    let space = Space::of(&store).await;
    let ((ship, _), (other, _)) = (space.spawn(0.0).await, space.spawn(0.0).await);
    let mut world = World::default();
    space.step(&mut world).await;
    let mut step = space.run.begin(STEP).await.unwrap();
    space.state.physics().remove_ship(ship).await.unwrap();
    // One that another program removes without a word.
    space.state.scope().del(&SHIP.key(other)).await.unwrap();
    space.run.commit(&mut step, &mut world).await.unwrap();
    assert!(!space.state.scope().exists(&SHIP.key(ship)).await.unwrap());
    assert!(!space.state.scope().exists(&SHIP.key(other)).await.unwrap());
    assert!(world.ships.is_empty(), "the engine learns it");
    space.step(&mut world).await;
    assert!(space.state.tick().await.unwrap().world.is_empty());
    assert!(
        space.state.physics().ships_in(&emberkeep_games::galaxy::SystemId::sol()).await.unwrap().is_empty()
    );
}

pub async fn a_key_of_another_type_does_not_stop_the_ticks(store: Store) {
    let space = Space::of(&store).await;
    let ((ship, _), (other, _)) = (space.spawn(0.0).await, space.spawn(0.0).await);
    let mut world = World::default();
    space.step(&mut world).await;
    space
        .change(move |tx| {
            tx.del(&SHIP.key(ship))?;
            let key = tx.raw_name(&SHIP.key(ship));
            tx.raw_write(key, hot::command::Write::Set("text".into(), hot::command::Expiry::Never))
        })
        .await;
    space.step(&mut world).await;
    assert_eq!(space.state.ship(&other).await.unwrap().unwrap().motion.position.x, 2.0);
    assert_eq!(world.ships.len(), 1);
    space.state.scope().del(&SHIP.key(ship)).await.unwrap();
}

pub async fn a_staged_tick_is_completed_by_the_next_engine(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let mut world = World::default();
    space.step(&mut world).await;
    let mut step = space.run.begin(STEP).await.unwrap();
    step.apply(&mut world);
    world.ships.get_mut(&ship).unwrap().motion.position.x = 50.0;
    let staged = space.state.physics().stage(space.run.epoch(), &step, &world).await.unwrap();
    assert_eq!(staged.head.tick, 2);
    assert_eq!(space.state.tick().await.unwrap().tick, 1, "not switched");
    assert_eq!(space.state.ship(&ship).await.unwrap().unwrap().tick, Some(2), "one ahead");
    // A process that is the tick-engine alone: physics is another one.
    let alone = space.state.acting_as(&TICK_ENGINE).tick_engine();
    alone.start(StartRequest::new("engine-1")).await.unwrap();
    let view = space.state.tick().await.unwrap();
    assert_eq!((view.tick, view.world.ships[&ship].motion.position.x), (2, 50.0));
    let again = space.state.tick_engine().start(StartRequest::new("engine-1")).await.unwrap();
    assert!(matches!(space.run.begin(STEP).await, Err(Error::Lease(_))), "the former engine is over");
    let mut world = again.load().await.unwrap();
    let mut step = again.begin(STEP).await.unwrap();
    assert_eq!(again.commit(&mut step, &mut world).await.unwrap().tick, 3);
}

pub async fn a_stalled_engine_changes_nothing(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let mut world = World::default();
    space.step(&mut world).await;
    // The first engine has a step and is stalled; its lease ends, and a second one commits.
    let mut stalled = space.run.begin(STEP).await.unwrap();
    let mut stale_world = world.clone();
    stale_world.ships.get_mut(&ship).unwrap().motion.position.x = -1_000.0;
    let refused = space.state.tick_engine().start(StartRequest::new("engine-2")).await;
    assert!(matches!(refused, Err(Error::LeaseHeld { .. })));
    space.run.release().await.unwrap();
    let second = space.state.tick_engine().start(StartRequest::new("engine-2")).await.unwrap();
    assert!(second.epoch() > space.run.epoch());
    let mut step = second.begin(STEP).await.unwrap();
    let mut newer = second.load().await.unwrap();
    let stage = space.state.physics();
    let (epoch, lost) = (space.run.epoch(), stalled.clone());
    let late = tokio::spawn(async move { stage.stage(epoch, &lost, &stale_world).await });
    newer.ships.get_mut(&ship).unwrap().motion.position.x = 2.0;
    second.commit(&mut step, &mut newer).await.unwrap();
    assert!(matches!(late.await.unwrap(), Err(Error::Lease(_))));
    assert!(matches!(space.run.commit(&mut stalled, &mut world).await, Err(Error::Lease(_))));
    assert!(matches!(space.run.switch(&space.state.head().await.unwrap()).await, Err(Error::Lease(_))));
    assert!(matches!(space.run.reset(None).await, Err(Error::Lease(_))));
    assert_eq!(space.state.ship(&ship).await.unwrap().unwrap().motion.position.x, 2.0, "no hash went back");
    assert_eq!(space.state.head().await.unwrap().tick, 2);
}

pub async fn a_step_that_is_not_the_next_one_is_refused(store: Store) {
    let space = Space::of(&store).await;
    let (mut world, mut other) = (World::default(), World::default());
    let mut one = space.run.begin(STEP).await.unwrap();
    let mut two = space.run.begin(STEP).await.unwrap();
    space.run.commit(&mut one, &mut world).await.unwrap();
    assert!(matches!(space.run.commit(&mut two, &mut other).await, Err(Error::StaleStep { .. })));
    let mut three = space.run.begin(STEP).await.unwrap();
    space.run.reset(None).await.unwrap();
    assert!(matches!(space.run.commit(&mut three, &mut world).await, Err(Error::StaleStep { .. })));
    assert_eq!(space.state.head().await.unwrap().tick, 0);
}

pub async fn readers_beside_ticks_see_whole_ticks(store: Store) {
    let space = Space::of(&store).await;
    for _ in 0..300 {
        space.spawn(0.0).await;
    }
    let mut world = World::default();
    space.step(&mut world).await;
    let reader = GalaxyState::new(store.clone());
    let reads = tokio::spawn(async move {
        let (mut last, mut seen) = (0, 0);
        while last < 30 {
            let view = reader.tick().await.unwrap();
            let expected = view.tick as f64;
            let mixed = view.world.ships.values().find(|ship| ship.motion.position.x != expected);
            assert_eq!(mixed, None, "tick {}", view.tick);
            assert!(view.tick >= last, "{} after {last}", view.tick);
            assert_eq!(view.world.ships.len(), 300);
            seen += usize::from(view.tick > last);
            last = view.tick;
        }
        seen
    });
    while space.state.head().await.unwrap().tick < 30 {
        space.step(&mut world).await;
    }
    assert!(reads.await.unwrap() > 1);
}

pub async fn a_reset_begins_the_next_generation(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let mut world = World::default();
    space.step(&mut world).await;
    let before = space.state.head().await.unwrap();
    let time = GameTime::parse("2000-01-01T13:00:00Z").unwrap();
    let refused = space.run.reset_to(before.generation, None).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "generation", .. })));
    assert_eq!(space.run.reset(Some(time)).await, Ok(before.generation + 1));
    let view = space.state.tick().await.unwrap();
    assert_eq!((view.generation, view.tick, view.time), (before.generation + 1, 0, time));
    assert!(view.world.is_empty());
    assert_eq!(space.state.ship(&ship).await, Ok(None));
    assert_eq!(space.state.fleet(player).await.unwrap().ships, []);
    assert_eq!(space.state.era().await.unwrap().phase, Phase::Running);
    let again = space.state.tick_engine().start(StartRequest::new("engine-1")).await.unwrap();
    let mut step = again.begin(STEP).await.unwrap();
    assert_eq!((step.tick, step.changes().len()), (1, 0), "changes of the former generation are gone");
    assert!(again.load().await.unwrap().is_empty());
    again.commit(&mut step, &mut World::default()).await.unwrap();
}

pub async fn a_reset_that_was_interrupted_is_completed(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    space
        .change(move |tx| {
            let era = tx.get(&emberkeep_games::galaxy::ERA.key())?.unwrap();
            let era =
                emberkeep_games::galaxy::Era { phase: Phase::Reset, generation: era.generation + 1, ..era };
            tx.put(&emberkeep_games::galaxy::ERA.key(), &era)?;
            let head = emberkeep_games::galaxy::TickHead::new(era.generation, 0, 0);
            tx.put(&HEAD.key(), &head)
        })
        .await;
    let refused = space.state.physics().spawn_ship(NewShip::new(ShipId(Uuid::new_v4()), player, "no")).await;
    assert_eq!(refused, Err(Error::Busy { phase: "reset" }));
    assert_eq!(space.run.begin(STEP).await, Err(Error::Busy { phase: "reset" }));
    space.state.tick_engine().start(StartRequest::new("engine-1")).await.unwrap();
    assert_eq!(space.state.ship(&ship).await, Ok(None));
    assert_eq!(space.state.era().await.unwrap().phase, Phase::Running);
}

pub async fn pinned_ticks_are_kept(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let mut world = World::default();
    space.step(&mut world).await;
    let engine = space.state.tick_engine();
    let pin = engine.pin("snapshot-1", Duration::from_secs(60)).await.unwrap();
    for _ in 0..6 {
        space.step(&mut world).await;
    }
    let pinned = engine.pinned_world(&pin).await.unwrap();
    assert_eq!(pinned.ships[&ship].motion.position.x, 1.0);
    let pin = engine.renew_pin(&pin, Duration::from_secs(60)).await.unwrap();
    engine.unpin(&pin).await.unwrap();
    space.step(&mut world).await;
    let gone = engine.pinned_world(&pin).await;
    assert!(matches!(gone, Err(Error::TickGone { tick: 1, .. })));
    assert!(matches!(engine.renew_pin(&pin, Duration::from_secs(1)).await, Err(Error::TickGone { .. })));
    assert!(engine.pin("", Duration::from_secs(1)).await.is_err());
}

pub async fn a_galaxy_of_another_program_is_taken_over(store: Store) {
    let space = Space::of(&store).await;
    let ship = ShipId(Uuid::new_v4());
    space
        .change(move |tx| {
            tx.hset(&SHIP.key(ship), &"position".to_owned(), &"[7, 0, 0]".to_owned())?;
            tx.del(&HEAD.key())?;
            tx.put(&TICK.key(), &123_456)?;
            tx.put(&TIME.key(), &GameTime::parse("2000-01-01T13:00:00Z").unwrap())
        })
        .await;
    let run = space.state.tick_engine().start(StartRequest::new("engine-1")).await.unwrap();
    let mut world = run.load().await.unwrap();
    assert_eq!(world.ships[&ship].motion.position.x, 7.0);
    let mut step = run.begin(STEP).await.unwrap();
    assert_eq!(step.tick, 123_457);
    run.commit(&mut step, &mut world).await.unwrap();
    assert_eq!(space.state.tick().await.unwrap().world.ships.len(), 1);
}
