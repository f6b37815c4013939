//! `emberkeep demo`: the whole life of some maps, played by many at once, and at the end every promise is checked.
//!
//! Players hit monsters, poison, heal and move them, hit reactors; effects tick, friends drop things, reactors come back when
//! their spot has cooled down, fields are torn down and come to life again, sweeps go over everything. All of it in one
//! process or in several on one store. Nobody keeps order between them but the store.
//!
//! How it is checked stands in `ledger.rs`, what is checked in `check/`.

mod actor;
mod acts;
mod check;
mod clean;
mod histogram;
mod ledger;
mod life;
mod nature;
mod plan;
mod play;
mod player;
mod process;
mod random;
mod room;
mod roster;
mod tally;
mod view;
mod world;

pub(crate) use life::{Life, TENANT};
pub(crate) use room::open_room;

use crate::open::{StoreArguments, open};
use crate::output::{Stream, offer, print};
use anyhow::{Context, bail};
use check::judge;
use clean::clean_up;
use plan::Plan;
use play::{Played, play, populate};
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use view::View;
use world::World;

/// Violations that are printed one by one.
const VIOLATIONS_SHOWN_MAX: usize = 20;

/// How the game is played.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How long the players play
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = crate::duration::parse)]
    length: Duration,
    #[command(flatten)]
    store: StoreArguments,
    /// Players that hit at the same time, in all processes together
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    players: u32,
    /// Monsters that live at the same time
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    monsters: u32,
    /// Processes that play on one store; more than one needs a server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,
    /// Tenants among which the monsters are divided
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    tenants: u32,
    /// Fields of each tenant [default: so that about 200 monsters share one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fields: Option<u32>,
    /// Leave everything in the store when the game is over
    #[arg(long)]
    keep: bool,
    /// Play for a parent process
    #[arg(long, hide = true)]
    child: bool,
}

impl Arguments {
    fn plan(&self) -> anyhow::Result<Plan> {
        let (players, processes) = (self.players, self.processes);
        if processes > 1 && self.store.is_in_process() {
            bail!(
                "--processes {processes} needs a server that all of them reach; name one with --hot redis://… or redis+cluster://…"
            );
        }
        if players < processes {
            bail!("--players {players} are fewer than --processes {processes}; each needs one");
        }
        let plan = Plan::new(self.tenants, self.fields, self.monsters);
        Ok(Plan { players, processes, length: self.length, ..plan })
    }
}

/// Plays, checks, and says which it was.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = arguments.plan()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if arguments.child {
        return runtime.block_on(process::run_child(&arguments.store)).map(|()| ExitCode::SUCCESS);
    }
    runtime.block_on(play_and_check(plan, arguments))
}

async fn play_and_check(plan: Plan, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let store = open(&arguments.store).await?;
    let world = Arc::new(World::new(store.clone(), plan, 0));
    let spawned = populate(&world).await.context("cannot spawn the monsters")?;
    let mut played = play_with_view(&world).await?;
    played.ledger.merge(spawned);

    let verdict = judge(&world, &played).await?;
    let mut said: String = verdict.checked.iter().map(|line| format!("checked {line}\n")).collect();
    let mut wrong = verdict.wrong;
    if !arguments.keep {
        let cleaned = clean_up(&world).await?;
        said += &format!("{}\n", cleaned.said);
        wrong.extend(cleaned.left);
    }
    store.close().await.context("cannot close the store")?;
    print(said)?;
    judged(&wrong)
}

/// Plays, in this process or in others, until the time is over or somebody presses Ctrl-C.
async fn play_with_view(world: &Arc<World>) -> anyhow::Result<Played> {
    let plan = &world.plan;
    let mut view = View::new(plan.title(&world.store.name()), plan.length);
    let interrupted = interrupted();
    let played = if plan.processes > 1 {
        process::play_together(plan, world.totals(), &mut view, interrupted).await?
    } else {
        nature::look_everywhere(world).await.context("cannot list the fields")?;
        view.open();
        let every = view.interval();
        play(world, interrupted, every, |totals| view.draw(totals)).await?
    };
    view.close(&played.totals);
    Ok(played)
}

/// Ends when somebody presses Ctrl-C. From this call on, that ends the game and not the check.
fn interrupted() -> impl Future<Output = ()> {
    use std::task::{Context, Waker};
    let mut signal = Box::pin(tokio::signal::ctrl_c());
    // The first poll is what makes Ctrl-C ours.
    let early = signal.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    async move {
        if !early {
            let _ = signal.await;
        }
    }
}

/// Says whether the promises held.
fn judged(wrong: &[String]) -> anyhow::Result<ExitCode> {
    if wrong.is_empty() {
        print("invariants held\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = wrong.iter().take(VIOLATIONS_SHOWN_MAX);
    let mut said: String = shown.map(|violation| format!("violated: {violation}\n")).collect();
    let findings = if wrong.len() == 1 { "finding" } else { "findings" };
    said += &format!("invariants violated: {} {findings}\n", wrong.len());
    offer(Stream::Error, said);
    Ok(ExitCode::FAILURE)
}
