//! The child's side: reads its brief, plays its part, tells its books.

use super::super::nature::look_everywhere;
use super::super::play::play;
use super::super::world::World;
use super::{Brief, GO, Word};
use crate::open::{StoreArguments, open};
use anyhow::{Context, bail};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Time between two words on the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Plays as a child of another process of this program.
pub(in super::super) async fn run(store: &StoreArguments) -> anyhow::Result<()> {
    let mut parent = listen();
    let brief = parent.recv().await.context("the parent process said nothing")?;
    let brief: Brief =
        serde_json::from_str(&brief).context("the parent process said something else than a brief")?;
    let store = open(store).await?;
    let world = Arc::new(World::new(store.clone(), brief.plan, brief.process));
    look_everywhere(&world).await.context("cannot list the fields")?;
    // From now on Ctrl-C, which a terminal sends to all of us, ends the game and not the books.
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    tokio::select! {
        biased;
        _ = &mut interrupted => world.end(),
        () = std::future::ready(()) => {}
    }
    say(&Word::Ready)?;
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
    let progress = |totals| drop(say(&Word::Progress(totals)));
    let played = play(&world, stop, PROGRESS_EVERY, progress).await?;
    say(&Word::Done(Box::new(played)))?;
    store.close().await.context("cannot close the store")
}

/// The parent's lines. Reading blocks, so a thread of its own does it; it ends with the process.
fn listen() -> mpsc::UnboundedReceiver<String> {
    let (tell, heard) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    heard
}

fn say(word: &Word) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, word)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
