//! A star system to look at: bodies on Kepler orbits, stations and gates about them, and ships that fly by their rules.
//!
//! A game of its own, written on the library's public API as any other would be. `serve --demo` runs it; nothing else needs it.
//!
//! Budget: one tick at a time, four a second, some hundred ships. Ends within a tick when asked to.

mod bodies;
mod facing;
mod flight;
mod maneuver;
mod orbit;
mod populate;
mod rules;
mod ship;
mod sky;
mod tick;
mod vector;

use emberkeep::games::galaxy::{Error, GalaxyState, StartRequest, TickRun, World};
use emberkeep::hot::Store;
use sky::Sky;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The name of the tick engine, so that a server that is started again need not wait for its own lease.
const ENGINE: &str = "demo";
/// The longest real time that one tick makes up for, after the machine was asleep.
const ELAPSED_MAX: Duration = Duration::from_secs(2);

/// Runs the star system of a store until `end` is true.
pub(crate) async fn live(store: &Store, end: &watch::Receiver<bool>) -> anyhow::Result<()> {
    let galaxy = GalaxyState::new(store.clone());
    let run = galaxy.tick_engine().start(StartRequest::new(ENGINE)).await?;
    let result = ticks(&galaxy, &run, end.clone()).await;
    run.release().await?;
    result
}

async fn ticks(galaxy: &GalaxyState, run: &TickRun, mut end: watch::Receiver<bool>) -> anyhow::Result<()> {
    let time = galaxy.head().await?.time();
    let mut sky = Sky::new(time)?;
    populate::populate(galaxy, &sky, time.micros() as f64 / 1e6).await?;
    let mut world = run.load().await?;
    let mut last = Instant::now();
    while !*end.borrow() {
        let period = Duration::from_secs_f64(1.0 / galaxy.clock().await?.tick_rate);
        let next = (last + period).max(Instant::now());
        if tokio::time::timeout_at(next, end.wait_for(|end| *end)).await.is_ok() {
            break;
        }
        let elapsed = last.elapsed().min(ELAPSED_MAX);
        last = Instant::now();
        tick(galaxy, run, &mut sky, &mut world, elapsed).await?;
    }
    Ok(())
}

async fn tick(
    galaxy: &GalaxyState,
    run: &TickRun,
    sky: &mut Sky,
    world: &mut World,
    elapsed: Duration,
) -> anyhow::Result<()> {
    let mut step = match run.begin(elapsed).await {
        Err(Error::Paused) => return Ok(()),
        step => step?,
    };
    step.apply(world);
    tick::advance(galaxy, sky, world, &step).await?;
    run.commit(&mut step, world).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep::games::galaxy::{ClockChange, RuleMode, ShipId, SystemId};
    use emberkeep::hot::embedded::Embedded;
    use std::sync::Arc;

    /// Some hours of the star system, as fast as they can be computed.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn hours_pass_and_the_ships_stay_in_their_orbits() -> anyhow::Result<()> {
        fastrand::seed(7);
        let galaxy = GalaxyState::new(Store::new(Arc::new(Embedded::in_memory())));
        let run = galaxy.tick_engine().start(StartRequest::new(ENGINE)).await?;
        let time = galaxy.head().await?.time();
        let mut sky = Sky::new(time)?;
        populate::populate(&galaxy, &sky, time.micros() as f64 / 1e6).await?;
        populate::populate(&galaxy, &sky, time.micros() as f64 / 1e6).await?;
        let mut world = run.load().await?;
        let fast = ClockChange { time_scale: Some(100.0), ..ClockChange::default() };
        galaxy.tick_engine().set_clock(fast).await?;
        for _ in 0..150 {
            tick(&galaxy, &run, &mut sky, &mut world, Duration::from_millis(500)).await?;
        }
        let view = galaxy.system(&SystemId::sol()).await?;
        assert_eq!(
            (view.world.ships.len(), view.world.stations.len(), view.world.jumpgates.len()),
            (240, 6, 2)
        );
        assert_eq!(view.world.bodies.len(), sky.bodies().len());
        assert_eq!(view.tick, 150);
        let ships: Vec<ShipId> = view.world.ships.keys().copied().collect();
        let (mut completed, mut fired) = (0, 0);
        for id in ships {
            let motion = &view.world.ships[&id].motion;
            let (frame, host) = ship::frame(motion, &sky);
            let radii = frame.radius() / sky.bodies()[host].radius;
            assert!((0.9..8.0).contains(&radii), "{id}: {radii} radii of {}", sky.bodies()[host].name);
            let maneuver = galaxy.maneuver(id).await?;
            completed += usize::from(maneuver.is_some_and(|maneuver| maneuver.status == "completed"));
            let rules = galaxy.rules(id).await?;
            fired += rules.iter().filter(|rule| rule.mode == RuleMode::Once && !rule.enabled).count();
        }
        assert!(completed > 0, "transfers complete");
        assert!(fired > 0, "some ship passed its station");
        Ok(())
    }
}
