//! The series of history: its consumers by log, and its store.

use super::text::Page;
use crate::history::HistoryTier;
use emberkeep_history::outbox::{ConsumerStats, FeedStats};

type Value = fn(&ConsumerStats) -> f64;

/// Of each consumer: name, kind, help, value.
const CONSUMERS: [(&str, &str, &str, Value); 10] = [
    ("lag_entries", "gauge", "Entries of a log that are not in history yet", |one| one.lag_entries as f64),
    ("spooled_entries", "gauge", "Those of them that are in the spool of this process", |one| {
        one.spooled_entries as f64
    }),
    ("spool_bytes", "gauge", "Bytes in use by that spool", |one| one.spool_bytes as f64),
    (
        "oldest_entry_seconds",
        "gauge",
        "How long the oldest of those entries has waited since this process saw it",
        |one| one.oldest_age.as_secs_f64(),
    ),
    ("delivered_total", "counter", "Entries delivered into history, dead letters included", |one| {
        one.delivered as f64
    }),
    ("dead_letters_total", "counter", "Entries that became dead letters", |one| one.dead_letters as f64),
    ("errors_total", "counter", "Failed rounds of a consumer; each is repeated", |one| one.errors as f64),
    (
        "alarms_total",
        "counter",
        "How often a log was found set back, an entry of it overwritten, or its source closed",
        |one| one.alarms as f64,
    ),
    ("restarts_total", "counter", "How often a consumer panicked and was started again", |one| {
        one.restarts as f64
    }),
    ("is_holder", "gauge", "1 if this process has the lease of the log", |one| {
        f64::from(u8::from(one.is_holder))
    }),
];

type FeedValue = fn(&FeedStats) -> u64;

/// Of the readers beside each consumer, which feed the leaderboards: name, help, value.
const FEEDS: [(&str, &str, FeedValue); 5] = [
    ("applied", "Entries of a log that this process applied to leaderboards", |one| one.applied),
    ("skipped", "Entries that cannot be applied to leaderboards", |one| one.skipped),
    ("missed", "Entries that were gone before they were applied to leaderboards", |one| one.missed),
    ("set_backs", "How often a feed found its log set back", |one| one.set_backs),
    ("errors", "Failed passes of a feed; each is repeated", |one| one.errors),
];

fn write_feeds(tier: Option<&HistoryTier>, page: &mut Page) {
    let feeds = tier.map(HistoryTier::feed_stats).unwrap_or_default();
    for (name, help, value) in FEEDS {
        let name = format!("emberkeep_log_feed_{name}_total");
        page.family(&name, "counter", help);
        for (log, stats) in &feeds {
            page.line(&name, &[("log", log)], value(stats) as f64);
        }
    }
}

pub(super) fn write(tier: Option<&HistoryTier>, page: &mut Page) {
    let consumers = tier.map(HistoryTier::stats).unwrap_or_default();
    for (name, kind, help, value) in CONSUMERS {
        let name = format!("emberkeep_history_{name}");
        page.family(&name, kind, help);
        for one in &consumers {
            page.line(&name, &[("log", &one.log)], value(one));
        }
    }
    write_feeds(tier, page);
    let waiting = tier.map_or(0, HistoryTier::waiting_entries);
    let help = "Entries of all logs that are not in history yet";
    page.single("emberkeep_history_waiting_entries", "gauge", help, waiting as f64);
    let is_open = tier.is_some_and(|tier| tier.history.store().is_open());
    page.single("emberkeep_history_open", "gauge", "1 if history is open", f64::from(u8::from(is_open)));
    let stats = tier.map(|tier| tier.history.stats()).unwrap_or_default();
    let store = [
        ("rows_written_total", "counter", "Rows written to history or removed", stats.rows_written),
        ("commits_total", "counter", "Commits to the backend of history", stats.commits),
        ("queued_rows", "gauge", "Rows that wait for the writer", stats.queued_rows as u64),
        ("queue_rows_max", "gauge", "Rows that may wait for the writer", stats.queue_rows_max as u64),
        ("queued_bytes", "gauge", "Bytes of the rows that wait", stats.queued_bytes as u64),
        ("queue_bytes_max", "gauge", "Bytes of rows that may wait", stats.queue_bytes_max as u64),
        ("waits_total", "counter", "Calls that waited for a place in the queue", stats.waits),
        ("refused_total", "counter", "Calls that were refused because the queue was full", stats.refused),
        ("windows", "gauge", "Retention windows of the embedded store", stats.windows as u64),
        ("windows_dropped_total", "counter", "Retention windows that were dropped", stats.windows_dropped),
    ];
    for (name, kind, help, value) in store {
        page.single(&format!("emberkeep_history_{name}"), kind, help, value as f64);
    }
}
