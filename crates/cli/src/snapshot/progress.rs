//! A line that shows how far a command is, on a terminal only.

use super::shown::bytes;
use emberkeep::snapshot::Progress;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Time between two lines.
const EVERY: Duration = Duration::from_millis(100);
/// Characters of a whole bar.
const WIDTH: u64 = 30;

/// The line of a command.
pub(super) struct ProgressBar {
    is_shown: bool,
    next: Instant,
}

impl ProgressBar {
    pub(super) fn new() -> ProgressBar {
        ProgressBar { is_shown: stderr().is_terminal(), next: Instant::now() }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        if self.is_shown && Instant::now() >= self.next {
            self.next = Instant::now() + EVERY;
            let _ = write!(stderr(), "\r{}\x1b[K", line(progress));
        }
    }

    /// Clears the line.
    pub(super) fn end(&self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn line(Progress { keys, bytes: size, total }: Progress) -> String {
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{keys} keys, {}", bytes(size));
    };
    let done = (keys.min(total) * WIDTH / total) as usize;
    let (full, empty) = ("#".repeat(done), "-".repeat(WIDTH as usize - done));
    format!("[{full}{empty}] {keys} of {total} keys, {}", bytes(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        let progress = Progress { keys: 50, bytes: 2_048, total: Some(100) };
        assert_eq!(line(progress), format!("[{}{}] 50 of 100 keys, 2.0 KiB", "#".repeat(15), "-".repeat(15)));
        assert_eq!(line(Progress { total: None, ..progress }), "50 keys, 2.0 KiB");
    }
}
