//! `emberkeep demo`: players hit monsters, and at the end every count is checked against the store.
//!
//! What is checked: each monster's damage entries sum to the health it lost, and to what the players counted for
//! it; every kill had one killer; no id was handed out while its monster lived; index and records agree.

mod arena;
mod check;
mod histogram;
mod player;
mod random;
mod tally;
mod view;

use crate::open::{StoreArguments, open};
use anyhow::Context;
use arena::{Arena, patiently};
use check::{Seen, violations};
use emberkeep::games::monsters::{MONSTER_ID_FREE, MONSTER_ID_NEXT, MonsterId};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tally::{Ledger, Totals};
use tokio::task::JoinSet;
use view::View;

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
    /// Players that hit at the same time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    players: u32,
    /// Monsters that live at the same time
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    monsters: u32,
    /// Leave the monsters in the store when the game is over
    #[arg(long)]
    keep: bool,
}

/// Plays, checks, and says which it was.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(play_and_check(arguments))
}

async fn play_and_check(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let store = open(&arguments.store).await?;
    let arena =
        Arena::populate(&store, arguments.monsters as usize).await.context("cannot spawn the monsters")?;
    let arena = Arc::new(arena);
    let ledger = play(&arena, arguments).await?;

    let seen = Seen::read(&arena).await.context("cannot read back what the game left")?;
    let mut wrong = arena.violations.take();
    wrong.extend(violations(&ledger, &arena.expected(), &seen));
    if !arguments.keep {
        clean_up(&arena).await.context("cannot remove the monsters of the game")?;
    }
    store.close().await.context("cannot close the store")?;
    Ok(judged(&wrong))
}

/// Lets the players play until the time is over or somebody presses Ctrl-C.
async fn play(arena: &Arc<Arena>, arguments: &Arguments) -> anyhow::Result<Ledger> {
    let store = arena.scope.store();
    let title =
        format!("{} players hit {} monsters on {}", arguments.players, arguments.monsters, store.name());
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    // The first poll is what makes Ctrl-C ours: from the first line on, it ends the game and not the check.
    tokio::select! {
        biased;
        _ = &mut interrupted => arena.end(),
        () = std::future::ready(()) => {}
    }
    let mut view = View::new(title, arguments.length, Totals::of(&arena.tallies));
    view.open();
    let mut players = JoinSet::new();
    for number in 0..arguments.players as usize {
        players.spawn(player::play(arena.clone(), number));
    }
    let over = tokio::time::sleep(arguments.length);
    tokio::pin!(over);
    let mut redraw = tokio::time::interval(view.interval());
    redraw.tick().await;
    while !arena.is_over() {
        tokio::select! {
            () = &mut over => arena.end(),
            _ = &mut interrupted => arena.end(),
            _ = redraw.tick() => view.draw(Totals::of(&arena.tallies), &store.stats()),
        }
    }
    let mut ledger = Ledger::default();
    while let Some(played) = players.join_next().await {
        ledger.merge(played.context("a player panicked")?);
    }
    view.close(&Totals::of(&arena.tallies));
    Ok(ledger)
}

/// Removes what the game put into the store.
async fn clean_up(arena: &Arena) -> anyhow::Result<()> {
    for id in arena.expected() {
        patiently(|| arena.monsters.remove(arena.tenant, MonsterId(id))).await?;
    }
    arena.scope.del(&MONSTER_ID_NEXT.key()).await?;
    arena.scope.del(&MONSTER_ID_FREE.key()).await?;
    Ok(())
}

/// Says whether the promises held.
fn judged(wrong: &[String]) -> ExitCode {
    if wrong.is_empty() {
        println!("invariants held");
        return ExitCode::SUCCESS;
    }
    for violation in wrong.iter().take(VIOLATIONS_SHOWN_MAX) {
        eprintln!("violated: {violation}");
    }
    eprintln!("invariants violated: {} findings", wrong.len());
    ExitCode::FAILURE
}
