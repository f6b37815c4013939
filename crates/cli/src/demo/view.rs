//! What is shown while the players play: redrawn in place on a terminal, else one line per second.

use super::tally::Totals;
use emberkeep::hot::engine::Stats;
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
    /// Lines on the terminal that the next redraw goes over.
    drawn: usize,
}

impl View {
    pub(super) fn new(title: String, length: Duration, totals: Totals) -> View {
        let start = Instant::now();
        View {
            title,
            length,
            start,
            before: (totals, start),
            terminal: std::io::stdout().is_terminal(),
            drawn: 0,
        }
    }

    /// Time between two redraws.
    pub(super) fn interval(&self) -> Duration {
        if self.terminal { Duration::from_millis(250) } else { Duration::from_secs(1) }
    }

    /// What stands above the lines of a log; the live view has it in itself.
    pub(super) fn open(&self) {
        if !self.terminal {
            println!("{}, for {}", self.title, in_words(self.length));
        }
    }

    /// Shows this moment.
    pub(super) fn draw(&mut self, totals: Totals, stats: &Stats) {
        let now = Instant::now();
        let (before, then) = std::mem::replace(&mut self.before, (totals, now));
        let totals = &self.before.0;
        let window = Window {
            rate: (totals.hits - before.hits) as f64 / (now - then).as_secs_f64().max(1e-9),
            latency: latency(&totals.latency.since(&before.latency)),
        };
        let text = if self.terminal { self.screen(&window, stats) } else { self.line(&window, stats) };
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        self.drawn = if self.terminal { text.lines().count() } else { 0 };
        let mut out = std::io::stdout().lock();
        // A view nobody can see any more must not end the game before its check.
        let _ = write!(out, "{up}{text}").and_then(|()| out.flush());
    }

    fn line(&self, window: &Window, stats: &Stats) -> String {
        let totals = &self.before.0;
        format!(
            "{:>4}  {:>9} hits/s  {}  {} kills  {} late  {} refused  {} conflicts  {} combined commits\n",
            in_words(self.start.elapsed()),
            grouped(window.rate as u64),
            window.latency,
            grouped(totals.kills),
            grouped(totals.late),
            grouped(totals.refused),
            grouped(stats.conflicts),
            grouped(stats.combined_commits),
        )
    }

    fn screen(&self, window: &Window, stats: &Stats) -> String {
        let totals = &self.before.0;
        let elapsed = in_words(self.start.elapsed().min(self.length));
        let rows = [
            ("", format!("{}, {elapsed} of {}, Ctrl-C ends it", self.title, in_words(self.length))),
            ("hits/s", format!("{} ({} in all)", grouped(window.rate as u64), grouped(totals.hits))),
            ("latency", window.latency.clone()),
            ("kills", format!("{} ({} hits came late)", grouped(totals.kills), grouped(totals.late))),
            (
                "conflicts",
                format!("{} ({} calls refused)", grouped(stats.conflicts), grouped(totals.refused)),
            ),
            (
                "combined",
                format!(
                    "{} commits of {} steps",
                    grouped(stats.combined_commits),
                    grouped(stats.combined_steps)
                ),
            ),
        ];
        rows.iter().fold(String::new(), |mut out, (name, value)| {
            // 2K clears what a longer line left behind.
            let _ = writeln!(out, "\x1b[2K{name:>10}  {value}");
            out
        })
    }

    /// What the whole game came to.
    pub(super) fn close(&self, totals: &Totals) {
        let seconds = self.start.elapsed().as_secs_f64();
        println!(
            "{} hits in {seconds:.1} s: {} hits/s, {}; {} kills",
            grouped(totals.hits),
            grouped((totals.hits as f64 / seconds.max(1e-9)) as u64),
            latency(&totals.latency),
            grouped(totals.kills),
        );
    }
}

/// What happened between two redraws.
struct Window {
    rate: f64,
    latency: String,
}

fn latency(counts: &super::histogram::Counts) -> String {
    match (counts.quantile(0.5), counts.quantile(0.99)) {
        (Some(p50), Some(p99)) => format!("p50 {}  p99 {}", in_words(p50), in_words(p99)),
        _ => "p50 -  p99 -".to_owned(),
    }
}

/// Thousands apart.
fn grouped(number: u64) -> String {
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
fn in_words(time: Duration) -> String {
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
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        let told = |ns| in_words(Duration::from_nanos(ns));
        assert_eq!([told(12), told(3_140), told(250_000)], ["12 ns", "3.1 µs", "250 µs"]);
        assert_eq!([told(2_500_000), told(30_000_000_000)], ["2.5 ms", "30 s"]);
    }
}
