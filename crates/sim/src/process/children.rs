//! The children as processes: started, spoken to, listened to, and never left behind.

use super::{Assignment, ChildMessage};
use anyhow::Context;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use tokio::sync::mpsc;

/// Something that a child said, or that it says nothing more.
pub(super) enum ChildEvent {
    Said(usize, ChildMessage),
    /// Its output ended, or was no word of ours: what it was.
    Silent(usize, Option<String>),
}

/// All children. Dropped, they are killed and waited for.
pub(super) struct Children {
    running: Vec<Running>,
    heard: mpsc::UnboundedReceiver<ChildEvent>,
}

struct Running {
    process: Child,
    input: ChildStdin,
}

impl Children {
    /// Starts one child per assignment.
    pub(super) fn start(
        briefs: &[Assignment],
        command: impl Fn() -> std::io::Result<Command>,
    ) -> anyhow::Result<Children> {
        let (tell, heard) = mpsc::unbounded_channel();
        let mut children = Children { running: Vec::new(), heard };
        for brief in briefs {
            let running = children.running.len();
            let child = Running::start(command()?, brief, running, tell.clone())
                .context("cannot start a further process")?;
            children.running.push(child);
        }
        Ok(children)
    }

    pub(super) fn count(&self) -> usize {
        self.running.len()
    }

    /// What one of them says next.
    pub(super) async fn hear(&mut self) -> ChildEvent {
        // The readers end with their children, and each says so first: there is always another word to come.
        self.heard.recv().await.unwrap_or(ChildEvent::Silent(0, None))
    }

    /// Says a line to all of them. Who is gone does not hear it, and is told by its silence.
    pub(super) fn tell_all(&mut self, line: &str) {
        for child in &mut self.running {
            let _ = writeln!(child.input, "{line}").and_then(|()| child.input.flush());
        }
    }

    /// How a child ended, in words. Waits for it, so it must have closed its output.
    pub(super) fn ended(&mut self, number: usize) -> String {
        let process = &mut self.running[number].process;
        let how = match process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => format!("nobody knows how: {error}"),
        };
        format!("process {number} (pid {}) ended without its books: {how}", process.id())
    }

    /// Kills a child that does not end.
    pub(super) fn kill(&mut self, number: usize) {
        let _ = self.running[number].process.kill();
    }
}

impl Running {
    fn start(
        mut command: Command,
        brief: &Assignment,
        number: usize,
        tell: mpsc::UnboundedSender<ChildEvent>,
    ) -> anyhow::Result<Running> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = process.stdin.take().context("its input is piped")?;
        let output = process.stdout.take().context("its output is piped")?;
        std::thread::spawn(move || {
            let strange = listen(BufReader::new(output), number, &tell);
            let _ = tell.send(ChildEvent::Silent(number, strange));
        });
        // A child that ended already is told by its silence, not by this write.
        let _ = writeln!(input, "{}", serde_json::to_string(brief)?).and_then(|()| input.flush());
        Ok(Running { process, input })
    }
}

/// Passes on what a child says until its output ends. Gives what it could not understand.
fn listen(output: impl BufRead, number: usize, tell: &mpsc::UnboundedSender<ChildEvent>) -> Option<String> {
    for line in output.lines() {
        let word = line
            .map_err(|error| error.to_string())
            .and_then(|line| serde_json::from_str(&line).map_err(|error| format!("{error} in {:.80}", line)));
        match word {
            Ok(word) => drop(tell.send(ChildEvent::Said(number, word))),
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
