//! The child's side: reads its assignment, plays its part, sends its results.

use super::{Assignment, ChildMessage, GO};
use crate::background::list_all_fields;
use crate::play::play;
use crate::world::World;
use anyhow::{Context, bail};
use emberkeep::hot::Store;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Time between two words on the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Plays as a child process: reads its assignment from standard input, and writes its results to standard output.
pub fn run_child(store: Store) -> LocalBoxFuture<'static, anyhow::Result<()>> {
    // In a box for the same reason as `run`.
    play_assignment(store).boxed_local()
}

async fn play_assignment(store: Store) -> anyhow::Result<()> {
    let mut parent = listen();
    let assignment = parent.recv().await.context("the parent process sent nothing")?;
    let assignment: Assignment = serde_json::from_str(&assignment)
        .context("the parent process sent something other than an assignment")?;
    let world = Arc::new(World::new(store.clone(), assignment.plan, assignment.process));
    list_all_fields(&world).await.context("cannot list the fields")?;
    // From now on Ctrl-C, which a terminal sends to all of us, ends the simulation and not its report.
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    tokio::select! {
        biased;
        _ = &mut interrupted => world.end(),
        () = std::future::ready(()) => {}
    }
    say(&ChildMessage::Ready)?;
    match parent.recv().await.as_deref() {
        Some(GO) => {}
        Some(_) => world.end(),
        None => bail!("the parent process is gone"),
    }
    // Any further line is a stop, and so is the end of the input.
    let stop = async {
        tokio::select! {
            _ = parent.recv() => {}
            _ = &mut interrupted => {}
        }
    };
    let progress = |totals| drop(say(&ChildMessage::Progress(Box::new(totals))));
    let played = play(&world, stop, PROGRESS_EVERY, progress).await?;
    say(&ChildMessage::DutyResult(Box::new(played)))?;
    store.close().await.context("cannot close the store")
}

/// The parent's lines. Reading blocks, so a thread of its own does it; it ends with the process.
fn listen() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn say(word: &ChildMessage) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, word)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
