//! The log: lines for people, or one JSON object per line for machines. Both go to standard error.
//!
//! Logging never fails and never waits. Lines go through a bounded queue to a thread that writes them. What does not fit, because
//! standard error is a pipe that is never read, and what cannot be written, because its disk is full, is dropped and counted.
//! The count is logged when lines can be written again, and shown in `/metrics`.

use crate::settings::LogForm;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait to be written.
const WAITING_LINES_MAX: usize = 4_096;
/// Time for the lines that wait when the process ends.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

/// The log of this process. Cheap to clone.
#[derive(Clone)]
pub(super) struct Log {
    queue: SyncSender<Line>,
    dropped: Arc<AtomicU64>,
}

enum Line {
    Text(Vec<u8>),
    /// All lines before it were written.
    Flushed(Sender<()>),
}

impl Log {
    /// Logs from here on. Panics are logged, too: the usual hook would wait for standard error.
    pub(super) fn begin(form: LogForm, level: Level) -> io::Result<Log> {
        let log = Log::to(io::stderr())?;
        let lines = tracing_subscriber::fmt()
            .with_max_level(level)
            // Otherwise a line that cannot be written is reported by `eprintln!`, which panics then.
            .log_internal_errors(false)
            .with_writer(log.clone());
        match form {
            LogForm::Text => lines.with_target(false).init(),
            LogForm::Json => lines.json().flatten_event(true).init(),
        }
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
        Ok(log)
    }

    /// Begins the thread that writes.
    fn to(sink: impl Write + Send + 'static) -> io::Result<Log> {
        let (queue, lines) = sync_channel(WAITING_LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = dropped.clone();
        std::thread::Builder::new().name("log".into()).spawn(move || write_all(&lines, sink, &counter))?;
        Ok(Log { queue, dropped })
    }

    /// How many lines were not written so far.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        self.dropped.clone()
    }

    /// Waits until the lines so far were written, but not for long.
    pub(super) fn flush(&self) {
        let (flushed, waiting) = channel();
        if self.queue.try_send(Line::Flushed(flushed)).is_ok() {
            let _ = waiting.recv_timeout(FLUSH_WAIT);
        }
    }
}

/// Ends with the last clone of the log.
fn write_all(lines: &Receiver<Line>, mut sink: impl Write, dropped: &AtomicU64) {
    let mut reported = 0;
    for line in lines {
        match line {
            Line::Text(text) if sink.write_all(&text).is_err() => drop(dropped.fetch_add(1, Relaxed)),
            Line::Text(_) => {
                let so_far = dropped.load(Relaxed);
                if so_far > reported {
                    reported = so_far;
                    tracing::warn!("{so_far} lines of this log were dropped so far");
                }
            }
            Line::Flushed(flushed) => drop(flushed.send(())),
        }
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = &'a Log;

    fn make_writer(&'a self) -> &'a Log {
        self
    }
}

impl Write for &Log {
    /// One call is one line: the subscriber writes each event at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.queue.try_send(Line::Text(line.to_vec()))
        {
            self.dropped.fetch_add(1, Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a line when the test says so.
    struct Slow(Receiver<io::Result<()>>);

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.recv().expect("the test says what becomes of each line").map(|()| line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_never_waits_and_never_fails_and_what_is_lost_is_counted() {
        let (outcome, outcomes) = channel();
        let log = Log::to(Slow(outcomes)).unwrap();
        let lines = WAITING_LINES_MAX + 100;
        (0..lines).for_each(|_| (&log).write_all(b"line\n").unwrap());
        let overflow = log.dropped.load(Relaxed);
        // The thread may have taken one line off the queue.
        assert!((99..=100).contains(&overflow), "{overflow}");
        let written = lines as u64 - overflow;
        (0..written).for_each(|_| outcome.send(Err(io::ErrorKind::StorageFull.into())).unwrap());
        let (flushed, waiting) = channel();
        log.queue.send(Line::Flushed(flushed)).unwrap();
        waiting.recv().unwrap();
        assert_eq!(log.dropped.load(Relaxed), lines as u64, "all lines were lost, and all are counted");
    }
}
