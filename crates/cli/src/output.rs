//! Standard output and standard error, neither of which may be there: closed, full, or a pipe that is never read.
//!
//! Commands print their result with [`print`]. A reader that stops early, such as `head`, ends the output quietly; any other
//! failure is the failure of the command. What is only good to know is [`offer`]ed: it is given up after a while.

use anyhow::Context;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc;
use std::time::Duration;

/// Time after which a line that is only good to know is given up.
const OFFER_WAIT: Duration = Duration::from_secs(1);

/// Prints the result of a command. A pipe without a reader is not a failure.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    match show(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        shown => shown.context("cannot write to standard output"),
    }
}

/// The same, for a result that must have been read by the system before the command goes on.
pub(crate) fn show(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    out.flush()
}

/// Where a line goes that is only good to know.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Out,
    Error,
}

/// Prints something, unless that fails or takes long: a pipe that is never read blocks its writer once it is full.
pub(crate) fn offer(stream: Stream, text: String) {
    let (done, waiting) = mpsc::channel();
    let printing = std::thread::Builder::new().name("print".into()).spawn(move || {
        let _ = match stream {
            Stream::Out => show(text),
            Stream::Error => io::stderr().write_all(text.as_bytes()),
        };
        let _ = done.send(());
    });
    if printing.is_ok() {
        let _ = waiting.recv_timeout(OFFER_WAIT);
    }
}

/// Asks a question; anything but a plain yes, and an input that has ended, is a no.
pub(crate) fn confirmed(out: &mut impl Write, question: &str) -> io::Result<bool> {
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
