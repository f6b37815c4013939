//! Child processes: started, sent lines, read from, and never left behind.

use super::{Assignment, ChildMessage};
use crate::ChildCommand;
use anyhow::Context;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use tokio::sync::mpsc;

/// A message of a child, or the end of its output.
pub(super) enum ChildEvent {
    Message(usize, ChildMessage),
    /// Its output ended, or was not a message: then the problem.
    Ended(usize, Option<String>),
}

/// All children. Dropped, they are killed and waited for.
pub(super) struct Children {
    running: Vec<Running>,
    events: mpsc::UnboundedReceiver<ChildEvent>,
}

struct Running {
    process: Child,
    input: ChildStdin,
}

impl Children {
    /// Starts one child per assignment.
    pub(super) fn start(assignments: &[Assignment], command: ChildCommand) -> anyhow::Result<Children> {
        let (sender, events) = mpsc::unbounded_channel();
        let mut children = Children { running: Vec::new(), events };
        for assignment in assignments {
            let running = children.running.len();
            let child = Running::start(command()?, assignment, running, sender.clone())
                .context("cannot start a further process")?;
            children.running.push(child);
        }
        Ok(children)
    }

    pub(super) fn count(&self) -> usize {
        self.running.len()
    }

    /// The next event of any of them.
    pub(super) async fn next(&mut self) -> ChildEvent {
        // Each reader sends `Ended` before it ends, so another event always comes.
        self.events.recv().await.unwrap_or(ChildEvent::Ended(0, None))
    }

    /// Sends a line to all of them. The end of its output tells of a child that is gone.
    pub(super) fn send_all(&mut self, line: &str) {
        for child in &mut self.running {
            let _ = writeln!(child.input, "{line}").and_then(|()| child.input.flush());
        }
    }

    /// Describes how a child ended. Waits for it, so it must have closed its output.
    pub(super) fn ended(&mut self, number: usize) -> String {
        let process = &mut self.running[number].process;
        let how = match process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => format!("its status is unknown: {error}"),
        };
        format!("process {number} (pid {}) ended without its results: {how}", process.id())
    }

    /// Kills a child that does not end.
    pub(super) fn kill(&mut self, number: usize) {
        let _ = self.running[number].process.kill();
    }
}

impl Running {
    fn start(
        mut command: Command,
        assignment: &Assignment,
        number: usize,
        sender: mpsc::UnboundedSender<ChildEvent>,
    ) -> anyhow::Result<Running> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = process.stdin.take().context("its input is piped")?;
        let output = process.stdout.take().context("its output is piped")?;
        std::thread::spawn(move || {
            let strange = listen(BufReader::new(output), number, &sender);
            let _ = sender.send(ChildEvent::Ended(number, strange));
        });
        // The end of its output tells of a child that ended already, not this write.
        let _ = writeln!(input, "{}", serde_json::to_string(assignment)?).and_then(|()| input.flush());
        Ok(Running { process, input })
    }
}

/// Passes on the messages of a child until its output ends. Returns what is not a message.
fn listen(output: impl BufRead, number: usize, sender: &mpsc::UnboundedSender<ChildEvent>) -> Option<String> {
    for line in output.lines() {
        let message = line
            .map_err(|error| error.to_string())
            .and_then(|line| serde_json::from_str(&line).map_err(|error| format!("{error} in {:.80}", line)));
        match message {
            Ok(message) => drop(sender.send(ChildEvent::Message(number, message))),
            Err(strange) => return Some(strange),
        }
    }
    None
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.process.kill();
            let _ = child.process.wait();
        }
    }
}
