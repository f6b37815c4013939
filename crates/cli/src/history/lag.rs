//! `emberkeep history lag`: how far history is behind.

use super::{SpoolFolders, Spools, Stores, age};
use crate::duration;
use crate::output::{Stream, offer, print};
use comfy_table::{Table, presets};
use emberkeep::history::outbox::LogLag;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub(crate) struct LagArguments {
    #[command(flatten)]
    stores: Stores,
    #[command(flatten)]
    spools: SpoolFolders,
    /// The exit code is 1 if an entry has waited longer: 30s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    max_age: Option<Duration>,
    /// One JSON object per log, one per line
    #[arg(long)]
    json: bool,
}

/// Prints what waits in each log. Nothing is changed.
pub(super) async fn run(arguments: &LagArguments) -> anyhow::Result<ExitCode> {
    let opened = arguments.stores.open(Spools::Counted(&arguments.spools)).await?;
    opened.in_use.iter().for_each(|folder| say_in_use(folder));
    let mut logs = Vec::new();
    for consumer in opened.consumers.iter() {
        logs.push(consumer.lag().await?);
    }
    if let Some((_, consumer)) = &opened.recorded {
        let (entries, oldest) = consumer.waiting()?;
        logs.push(LogLag { log: "spool".to_owned(), entries, oldest, is_set_back: false });
    }
    let now = opened.history.store().now();
    opened.close().await?;
    print(if arguments.json { lines(&logs, now) } else { table(&logs, now) })?;
    let is_late = |log: &LogLag| {
        let waited = log.oldest.map(|oldest| Duration::from_millis((now - oldest.0).max(0) as u64));
        arguments.max_age.zip(waited).is_some_and(|(max, waited)| waited > max)
    };
    Ok(if logs.iter().any(is_late) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn say_in_use(folder: &Path) {
    let folder = folder.display();
    offer(
        Stream::Error,
        format!("{folder} is in use and not counted: the /metrics of its server has what is in it\n"),
    );
}

fn table(logs: &[LogLag], now: i64) -> String {
    if logs.is_empty() {
        return "no game has a log\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(["log", "waiting", "oldest", ""]);
    for log in logs {
        let oldest = log.oldest.map_or_else(|| "–".to_owned(), |oldest| age(now, oldest.0));
        let note = if log.is_set_back { "set back: entries were lost" } else { "" };
        table.add_row([log.log.clone(), log.entries.to_string(), oldest, note.to_owned()]);
    }
    format!("{table}\n")
}

fn lines(logs: &[LogLag], now: i64) -> String {
    let line = |log: &LogLag| {
        let age_ms = log.oldest.map(|oldest| (now - oldest.0).max(0));
        let line = json!({"log": log.log, "entries": log.entries, "oldestAgeMs": age_ms, "isSetBack": log.is_set_back});
        format!("{line}\n")
    };
    logs.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep::schema::Timestamp;

    #[test]
    fn a_log_is_a_row_and_an_object() {
        let log =
            LogLag { log: "1/log:a".into(), entries: 3, oldest: Some(Timestamp(1_000)), is_set_back: false };
        let shown = table(std::slice::from_ref(&log), 31_000);
        assert!(shown.contains("1/log:a") && shown.contains("30 s"), "{shown}");
        let line: serde_json::Value = serde_json::from_str(&lines(&[log], 31_000)).unwrap();
        assert_eq!(line, json!({"log": "1/log:a", "entries": 3, "oldestAgeMs": 30_000, "isSetBack": false}));
    }
}
