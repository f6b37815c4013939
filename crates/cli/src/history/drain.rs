//! `emberkeep history drain`: delivers what is in the logs now, and in the spool of a server that is not running.

use super::{Opened, SpoolFolders, Spools, Stores};
use crate::output::{Stream, offer, print};
use emberkeep::history::outbox::{DrainError, Drained};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Time between two lines of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

const UNUSED_SPOOL: &str = "entries of a log that these stores do not have; name the --darkages-shards of the server that wrote them";

#[derive(clap::Args, Debug)]
pub(crate) struct DrainArguments {
    #[command(flatten)]
    stores: Stores,
    #[command(flatten)]
    spools: SpoolFolders,
}

/// Drains all logs. An interrupt ends it between two entries: nothing is lost or doubled.
pub(super) async fn run(arguments: &DrainArguments) -> anyhow::Result<ExitCode> {
    let opened = arguments.stores.open(Spools::Delivered(&arguments.spools)).await?;
    let outcome = tokio::select! {
        outcome = drained(&opened) => Some(outcome),
        () = progress(&opened) => None,
        _ = tokio::signal::ctrl_c() => None,
    };
    let Some((outcome, recorded)) = outcome else {
        print("interrupted; what is not in history yet waits in its log or spool\n")?;
        opened.close().await?;
        return Ok(ExitCode::FAILURE);
    };
    let (mut said, mut is_left) = (String::new(), false);
    for (consumer, outcome) in opened.consumers.iter().zip(outcome) {
        let log = consumer.log();
        said += &match outcome {
            Ok(Some(drained)) => {
                format!(
                    "{log}: {} delivered, {} of them dead letters\n",
                    drained.delivered, drained.dead_letters
                )
            }
            Ok(None) => format!("{log}: another process drains it\n"),
            Err(error) => format!("{log}: {error}\n"),
        };
        // An error is a rest, too: nothing is known of the log then.
        is_left |= consumer.lag().await.map_or(true, |lag| lag.entries > 0);
    }
    if let Some(recorded) = recorded {
        is_left |= recorded.is_err();
        said += &recorded
            .map_or_else(|error| format!("spool: {error}\n"), |count| format!("spool: {count} delivered\n"));
    }
    for folder in &opened.unused_spools {
        said += &format!("{}: {UNUSED_SPOOL}\n", folder.display());
        is_left = true;
    }
    opened.close().await?;
    print(if said.is_empty() { "no game has a log\n".to_owned() } else { said })?;
    Ok(if is_left { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

type Outcomes = (Vec<Result<Option<Drained>, DrainError>>, Option<emberkeep::history::Result<usize>>);

/// Recorded events first: they are no one else's.
async fn drained(opened: &Opened) -> Outcomes {
    let recorded = match &opened.recorded {
        Some((_, consumer)) => Some(consumer.drain_once().await),
        None => None,
    };
    (opened.consumers.drain_once().await, recorded)
}

/// Says how far it is, for ever.
async fn progress(opened: &Opened) {
    let mut ticks = interval(PROGRESS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let stats = opened.consumers.stats();
        let sum =
            |of: fn(&emberkeep::history::outbox::ConsumerStats) -> u64| stats.iter().map(of).sum::<u64>();
        let line = format!("{} delivered, {} wait\n", sum(|one| one.delivered), sum(|one| one.lag_entries));
        offer(Stream::Error, line);
    }
}
