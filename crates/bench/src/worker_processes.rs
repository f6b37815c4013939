//! Further processes of a workload: this binary again, with the hidden subcommand `worker`.
//!
//! A child says `ready` when it has connected, begins at `go`, and ends with one line of JSON. A child whose parent
//! is gone reads the end of its input and ends too; whatever it does is bounded anyway.

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// A running child, killed and waited for on drop.
pub(super) struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts `emberkeep-bench worker …` with these arguments.
    pub(super) fn start(arguments: &[String]) -> Result<Child> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        forget_settings(&mut command, std::env::vars_os().map(|(name, _)| name));
        let mut process = command
            .arg("worker")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a further process")?;
        let input = process.stdin.take().context("its input is piped")?;
        let output = BufReader::new(process.stdout.take().context("its output is piped")?);
        Ok(Child { process, input, output })
    }

    /// The process id of the worker.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line it says.
    pub(super) fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("a further process ended without an answer, see above");
        }
        Ok(line.trim_end().to_owned())
    }

    /// Says a line to it.
    pub(super) fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}")?;
        Ok(self.input.flush()?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A child gets everything by its arguments: variables with the user's settings, such as tokens, are not for it.
fn forget_settings(command: &mut Command, variables: impl Iterator<Item = OsString>) {
    for name in variables.filter(|name| name.to_string_lossy().starts_with("EMBERKEEP_")) {
        command.env_remove(name);
    }
}

/// Starts one child per list of arguments, lets all of them begin at once, and gathers what they found.
pub(super) fn together<T: DeserializeOwned>(children: &[Vec<String>]) -> Result<Vec<T>> {
    let mut running: Vec<Child> =
        children.iter().map(|arguments| Child::start(arguments)).collect::<Result<_>>()?;
    for child in &mut running {
        let line = child.hear()?;
        if line != "ready" {
            bail!("a further process said {line:?}, expected ready");
        }
    }
    running.iter_mut().try_for_each(|child| child.tell("go"))?;
    running.iter_mut().map(|child| Ok(serde_json::from_str(&child.hear()?)?)).collect()
}

/// Prints a line that a reader sees at once.
pub(super) fn print_line(line: impl std::fmt::Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The child's side: says `ready` and waits for `go`.
pub(super) fn wait_for_go() -> Result<()> {
    print_line("ready")?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if line.trim_end() != "go" {
        bail!("the parent process is gone");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_inherits_no_setting() {
        let mut command = Command::new("emberkeep-bench");
        forget_settings(
            &mut command,
            ["PATH", "EMBERKEEP_TOKENS", "EMBERKEEP_HTTP"].map(OsString::from).into_iter(),
        );
        let changed: Vec<_> = command.get_envs().collect();
        assert_eq!(changed, [("EMBERKEEP_HTTP".as_ref(), None), ("EMBERKEEP_TOKENS".as_ref(), None)]);
    }
}
