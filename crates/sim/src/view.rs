//! The progress of a simulation: redrawn in place on a terminal, else two lines per second.

use crate::latency::Latencies;
use crate::stats::{Count, Totals};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

/// Shows the game, each time compared with the time before.
pub(super) struct View {
    title: String,
    length: Duration,
    start: Instant,
    /// Counters and their time at the last redraw.
    before: (Totals, Instant),
    terminal: bool,
    /// Whether the terminal shows lines that the next redraw goes over.
    drawn: bool,
}

/// What the line of life shows, in the order of a life.
const LIFE: [(Count, &str); 6] = [
    (Count::Spawns, "spawns"),
    (Count::Kills, "kills"),
    (Count::Ticks, "ticks"),
    (Count::Drops, "drops"),
    (Count::Triggers, "reactors triggered"),
    (Count::Teardowns, "teardowns"),
];

impl View {
    pub(super) fn new(title: String, length: Duration) -> View {
        let start = Instant::now();
        let terminal = std::io::stdout().is_terminal();
        View { title, length, start, before: (Totals::none(), start), terminal, drawn: false }
    }

    /// Time between two redraws.
    pub(super) fn interval(&self) -> Duration {
        if self.terminal { Duration::from_millis(250) } else { Duration::from_secs(1) }
    }

    /// The game begins. Above the lines of a log stands what is played; the live view has it in itself.
    pub(super) fn open(&mut self) {
        self.start = Instant::now();
        self.before.1 = self.start;
        if !self.terminal {
            show(&format!("{}, for {}\n", self.title, format_duration(self.length)));
        }
    }

    /// Draws the counts of this moment.
    pub(super) fn draw(&mut self, totals: Totals) {
        let now = Instant::now();
        let (before, then) = std::mem::replace(&mut self.before, (totals, now));
        let totals = &self.before.0;
        let hits = totals.get(Count::Hits).saturating_sub(before.get(Count::Hits));
        let window = Window {
            rate: hits as f64 / (now - then).as_secs_f64().max(1e-9),
            latency: latency(&totals.latency.since(&before.latency)),
        };
        let text = if self.terminal { self.screen(&window) } else { self.lines(&window) };
        show(&text);
    }

    fn lines(&self, window: &Window) -> String {
        let totals = &self.before.0;
        format!(
            "{:>4}  {:>9} hits/s  {}  {} late  {} refused  {} conflicts  {} combined commits\n      {}\n",
            format_duration(self.start.elapsed()),
            group_digits(window.rate as u64),
            window.latency,
            group_digits(totals.get(Count::Late)),
            group_digits(totals.get(Count::Refused)),
            group_digits(totals.conflicts),
            group_digits(totals.combined_commits),
            life(totals, &LIFE),
        )
    }

    fn screen(&mut self, window: &Window) -> String {
        let totals = &self.before.0;
        let elapsed = format_duration(self.start.elapsed().min(self.length));
        let of = |what| group_digits(totals.get(what));
        let (rate, commits, transactions) =
            (window.rate as u64, totals.combined_commits, totals.combined_transactions);
        let rows = [
            ("", self.title.clone()),
            ("time", format!("{elapsed} of {}, Ctrl-C ends it", format_duration(self.length))),
            (
                "hits/s",
                format!("{} ({} in all, {} late)", group_digits(rate), of(Count::Hits), of(Count::Late)),
            ),
            ("latency", window.latency.clone()),
            ("life", life(totals, &LIFE[..3])),
            ("", life(totals, &LIFE[3..])),
            (
                "conflicts",
                format!("{} ({} calls refused)", group_digits(totals.conflicts), of(Count::Refused)),
            ),
            (
                "combined",
                format!("{} commits of {} transactions", group_digits(commits), group_digits(transactions)),
            ),
        ];
        let up = if self.drawn { format!("\x1b[{}A", rows.len()) } else { String::new() };
        self.drawn = true;
        // ?7 keeps a line that is too long for the terminal from becoming two, 2K clears what a longer one left behind.
        let start = format!("{up}\x1b[?7l");
        let rows = rows.iter().fold(start, |mut out, (name, value)| {
            let _ = writeln!(out, "\x1b[2K{name:>10}  {value}");
            out
        });
        rows + "\x1b[?7h"
    }

    /// What the whole game came to.
    pub(super) fn close(&self, totals: &Totals) {
        let seconds = self.start.elapsed().as_secs_f64();
        let hits = totals.get(Count::Hits);
        show(&format!(
            "{} hits in {seconds:.1} s: {} hits/s, {}\n{}\n",
            group_digits(hits),
            group_digits((hits as f64 / seconds.max(1e-9)) as u64),
            latency(&totals.latency),
            life(totals, &LIFE),
        ));
    }
}

/// Standard output that fails must not end the simulation before its check.
fn show(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// What happened between two redraws.
struct Window {
    rate: f64,
    latency: String,
}

fn life(totals: &Totals, shown: &[(Count, &str)]) -> String {
    let counts = shown.iter().map(|(what, name)| format!("{} {name}", group_digits(totals.get(*what))));
    counts.collect::<Vec<_>>().join("  ")
}

fn latency(counts: &Latencies) -> String {
    match (counts.quantile(0.5), counts.quantile(0.99)) {
        (Some(p50), Some(p99)) => format!("p50 {}  p99 {}", format_duration(p50), format_duration(p99)),
        _ => "p50 -  p99 -".to_owned(),
    }
}

/// A number with a comma between its thousands.
pub(super) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time with a unit that suits it.
fn format_duration(time: Duration) -> String {
    match time.as_nanos() {
        ns @ 0..1_000 => format!("{ns} ns"),
        ns @ 1_000..100_000 => format!("{:.1} µs", ns as f64 / 1e3),
        ns @ 100_000..1_000_000 => format!("{} µs", ns / 1_000),
        ns @ 1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        ns => format!("{:.0} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_readable() {
        assert_eq!(
            (group_digits(0), group_digits(999), group_digits(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        let shown = |ns| format_duration(Duration::from_nanos(ns));
        assert_eq!([shown(12), shown(3_140), shown(250_000)], ["12 ns", "3.1 µs", "250 µs"]);
        assert_eq!([shown(2_500_000), shown(30_000_000_000)], ["2.5 ms", "30 s"]);
    }
}
