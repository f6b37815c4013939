//! `emberkeep history dead-letters`: entries that could not be stored as what they are.
//!
//! There is no command that delivers one again: its position in its source has passed. Nothing of it is in tables and
//! totals, so once the cause is repaired the game may record the event anew.

use super::{Opened, Spools, Stores, age};
use crate::output::print;
use anyhow::bail;
use comfy_table::{Table, presets};
use emberkeep::history::DeadLetter;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub(crate) struct DeadLettersArguments {
    #[command(flatten)]
    stores: Stores,
    /// Only of this log, as `history lag` names it, or of recorded events: spool/SOURCE
    #[arg(long, value_name = "LOG")]
    log: Option<String>,
    /// Only after this sequence: the next page
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: i64,
    /// Dead letters of a log that are listed
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Prints the entry of this sequence; needs --log
    #[arg(long, value_name = "SEQ", requires = "log")]
    show: Option<i64>,
}

/// Lists dead letters, or prints one.
pub(super) async fn run(arguments: &DeadLettersArguments) -> anyhow::Result<ExitCode> {
    let opened = arguments.stores.open(Spools::Unopened).await?;
    let outcome = match arguments.show {
        Some(sequence) => show(&opened, arguments, sequence).await,
        None => list(&opened, arguments).await,
    };
    opened.close().await?;
    print(outcome?)?;
    Ok(ExitCode::SUCCESS)
}

/// The logs that were asked for. Those of spools are named after sources, which another machine may have had.
async fn logs(opened: &Opened, asked: Option<&str>) -> anyhow::Result<Vec<String>> {
    let known: Vec<String> = opened.consumers.iter().map(|consumer| consumer.log().to_owned()).collect();
    match asked {
        None => Ok([known, opened.history.spools_with_dead_letters().await?].concat()),
        Some(log) if log.starts_with("spool/") || known.iter().any(|name| name == log) => {
            Ok(vec![log.to_owned()])
        }
        Some(log) if known.is_empty() => bail!("there is no log {log}: no game has a log"),
        Some(log) => bail!("there is no log {log}; there are {}, and spool/SOURCE", known.join(", ")),
    }
}

async fn list(opened: &Opened, arguments: &DeadLettersArguments) -> anyhow::Result<String> {
    let (now, mut page) = (opened.history.store().now(), String::new());
    for log in logs(opened, arguments.log.as_deref()).await? {
        let query = opened.history.range(DeadLetter::partition(log.clone()));
        let query = query.between(arguments.after + 1..).rows_max(arguments.limit.into());
        let found = query.page(None).await?;
        let more = found.next.is_some();
        let letters = found.into_rows()?;
        let Some(last) = letters.last().map(|letter| letter.sequence) else { continue };
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(["sequence", "age", "reason"]);
        for letter in letters {
            table.add_row([letter.sequence.to_string(), age(now, letter.at.0), letter.reason]);
        }
        page += &format!("{log}\n{table}\n");
        if more {
            page += &format!("more follow: --log {log} --after {last}\n");
        }
    }
    Ok(if page.is_empty() { "there are no dead letters\n".to_owned() } else { page })
}

/// One sequence may have several: a log that was set back gives its sequences again.
async fn show(opened: &Opened, arguments: &DeadLettersArguments, sequence: i64) -> anyhow::Result<String> {
    let mut shown = String::new();
    for log in logs(opened, arguments.log.as_deref()).await? {
        let query = opened.history.range(DeadLetter::partition(log.clone())).equal(sequence);
        for letter in query.page(None).await?.into_rows()? {
            let entry = String::from_utf8(letter.entry)
                .unwrap_or_else(|error| error.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect());
            shown += &format!(
                "log          {log}\nsequence     {sequence}\nincarnation  {}\nat           {} ms\nreason       {}\nentry        {entry}\n",
                letter.incarnation, letter.at.0, letter.reason
            );
        }
        if shown.is_empty() {
            bail!("{log} has no dead letter {sequence}; leave out --show to list them");
        }
    }
    Ok(shown)
}
