//! A workload simulator: many players on one store, in one process or in several, and a checker of every invariant.
//!
//! Players hit monsters, poison, heal and move them, and hit reactors. Background tasks run effects, deliver drops, respawn
//! reactors, tear fields down and sweep. Only the store keeps order between them.
//!
//! `ledger.rs` explains how the simulation is checked, `check/` what is checked. `emberkeep demo` runs it once;
//! [`ServerDemo`] runs it without an end and without a check inside a server.

mod actions;
mod actor;
mod background;
mod check;
mod city;
mod city_plan;
mod cleanup;
mod latency;
mod ledger;
mod plan;
mod play;
mod player;
mod process;
mod room;
mod roster;
mod server_demo;
mod stars;
mod stats;
mod view;
mod world;

pub use city::TemporaryFolder;
pub use city_plan::CityPlan;
pub use plan::Plan;
pub use process::run_child;
pub use room::open_room;
pub use server_demo::{CITY_PLAYER, CITY_ZONE, ServerDemo, TENANT};

use anyhow::Context;
use check::judge;
use city::CityHistory;
use city_plan::City;
use cleanup::clean_up;
use emberkeep::history::History;
use emberkeep::hot::Store;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use play::{PlayResult, play, populate};
use std::future::Future;
use std::process::Command;
use std::sync::Arc;
use view::View;
use world::World;

/// Said when there is no city.
const CITY_LEFT_OUT: &str = "the city was left out: this store has events of DarkAges; name the history that they go to with --history";

/// Gives the command of a child process.
pub type ChildCommand = fn() -> std::io::Result<Command>;

/// The result of a simulation.
#[derive(Debug)]
pub struct Report {
    /// What was checked and removed, one line each.
    pub lines: Vec<String>,
    /// Every violated invariant; empty if all of them held.
    pub violations: Vec<String>,
}

/// Runs the plan until its time is over or Ctrl-C, shows the progress on standard output, and checks every invariant.
///
/// The events of the city go to the history that is named, or to one in a temporary folder. The city is left out if the store
/// has events of DarkAges and no history is named for them.
///
/// With more than one process, `child` gives the command of a process that calls [`run_child`] on the same store. Unless
/// `keep` is set, everything that the simulation stored is removed at the end. Closes the store.
pub fn run(
    store: Store,
    plan: Plan,
    history: Option<History>,
    keep: bool,
    child: ChildCommand,
) -> LocalBoxFuture<'static, anyhow::Result<Report>> {
    // The body of an `async fn` is compiled in the crate that polls it. In a box it is compiled here, beside the server.
    run_and_check(store, plan, history, keep, child).boxed_local()
}

async fn run_and_check(
    store: Store,
    mut plan: Plan,
    history: Option<History>,
    keep: bool,
    child: ChildCommand,
) -> anyhow::Result<Report> {
    let city = CityPlan::new();
    let mut history = CityHistory::begin(&City::new(store.clone(), city.clone()), history).await?;
    plan.city = history.as_ref().map(|_| city);
    let world = Arc::new(World::new(store.clone(), plan, 0));
    let spawned = populate(&world).await.context("cannot spawn the monsters")?;
    let mut played = play_with_view(&world, child).await?;
    played.ledger.merge(spawned);

    let verdict = judge(&world, &played).await?;
    let mut lines: Vec<String> = verdict.checked.iter().map(|line| format!("checked {line}")).collect();
    let mut violations = verdict.wrong;
    if let (Some(history), Some(city)) = (&mut history, &world.city) {
        history.stop().await;
        // Without the results of every process the sums prove nothing.
        if played.complete {
            let verdict = city::judge(city, history, &played.city).await?;
            lines.extend(verdict.checked.iter().map(|line| format!("checked {line}")));
            violations.extend(verdict.wrong);
        }
    } else {
        lines.push(CITY_LEFT_OUT.to_owned());
    }
    if !keep {
        let cleaned = clean_up(&world).await?;
        lines.push(cleaned.summary);
        violations.extend(cleaned.left);
        if let (Some(history), Some(city)) = (&history, &world.city) {
            city::clean_up(city, history).await.context("cannot remove the logs of the city")?;
        }
    }
    if let Some(history) = history {
        history.close().await?;
    }
    store.close().await.context("cannot close the store")?;
    Ok(Report { lines, violations })
}

async fn play_with_view(world: &Arc<World>, child: ChildCommand) -> anyhow::Result<PlayResult> {
    let plan = &world.plan;
    let mut view = View::new(plan.title(&world.store.name()), plan.length);
    let interrupted = interrupted();
    let played = if plan.processes > 1 {
        process::play_together(plan, world.totals(), child, &mut view, interrupted).await?
    } else {
        background::list_all_fields(world).await.context("cannot list the fields")?;
        view.open();
        let every = view.interval();
        play(world, interrupted, every, |totals| view.draw(totals)).await?
    };
    view.close(&played.totals);
    Ok(played)
}

/// Completes at Ctrl-C. From this call on, Ctrl-C ends the simulation and not the check.
fn interrupted() -> impl Future<Output = ()> {
    use std::task::{Context, Waker};
    let mut signal = Box::pin(tokio::signal::ctrl_c());
    // The first poll registers the signal handler.
    let early = signal.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    async move {
        if !early {
            let _ = signal.await;
        }
    }
}
