//! A child process that cannot outlive us.
//!
//! Invariants:
//! 1. [`ChildGuard`] kills the child and waits for it on drop, so no zombie and no server is left.
//! 2. If this process ends without drop (statics, `abort`, `kill -9`), the watchdog's pipe closes
//!    and the watchdog kills the child and removes its folder.
//! 3. There is no moment without a watchdog: the child waits at a gate until its watchdog runs, and
//!    gives up when the gate closes unopened.
//!
//! `PR_SET_PDEATHSIG` would not do: it fires when the spawning *thread* ends, and tests are threads.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Waits for the go-ahead, then becomes the real program under the same process id.
const GATE: &str = r#"read -r go || exit 1; exec "$@" </dev/null"#;

/// A line means "the child is gone, go in peace"; end of file means that our parent died.
/// Signals from a terminal are ignored, because then the work is still to be done.
const WATCHDOG: &str = r#"
trap '' INT TERM HUP
read -r released && exit 0
kill -KILL "$1"
rm -f "/dev/shm/faketime_shm_$1" "/dev/shm/sem.faketime_sem_$1"
case "$2" in */emberkeep-test-*) sleep 0.05; rm -rf -- "$2" ;; esac
"#;

/// How long a polite stop may take before it becomes a kill.
const STOP_MAX: Duration = Duration::from_secs(5);

/// A running child and its watchdog.
#[derive(Debug)]
pub(crate) struct ChildGuard {
    child: Child,
    watchdog: Child,
    leash: ChildStdin,
    reaped: Option<ExitStatus>,
}

impl ChildGuard {
    /// Starts `program`; its output goes to `folder/out`. `folder` is removed by the watchdog if
    /// this process dies and its name is that of a scratch folder.
    pub(crate) fn spawn(
        program: &Path,
        args: &[String],
        env: &[(String, String)],
        folder: &Path,
    ) -> io::Result<Self> {
        let out = File::options().create(true).append(true).open(folder.join("out"))?;
        let mut child = shell(GATE, "gate")
            .arg(program)
            .args(args)
            .envs(env.iter().map(|(k, v)| (k, v)))
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()?;
        let mut gate = child.stdin.take().expect("stdin is piped");
        let mut watchdog = shell(WATCHDOG, "watchdog")
            .arg(child.id().to_string())
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let leash = watchdog.stdin.take().expect("stdin is piped");
        gate.write_all(b"go\n")?;
        Ok(Self { child, watchdog, leash, reaped: None })
    }

    /// The process id of the program itself.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.reaped.is_none() {
            self.reaped = self.child.try_wait().ok().flatten();
        }
        self.reaped
    }

    /// SIGKILL, and wait until it is gone.
    pub(crate) fn kill9(&mut self) {
        if self.reaped.is_none() {
            let _ = self.child.kill();
            self.reaped = self.child.wait().ok();
            remove_faketime_leftovers(self.child.id());
        }
    }

    /// SIGTERM, and wait; SIGKILL if that takes too long.
    pub(crate) fn stop(&mut self) {
        self.signal("TERM");
        let deadline = Instant::now() + STOP_MAX;
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill9();
    }

    /// Sends a signal by name. The standard library knows only KILL, hence the shell.
    pub(crate) fn signal(&mut self, name: &str) {
        if self.ended().is_none() {
            let status = Command::new("/bin/sh")
                .args(["-c", r#"kill -s "$1" "$2""#, "signal", name, &self.pid().to_string()])
                .status();
            assert!(status.is_ok_and(|s| s.success()), "cannot send SIG{name}");
        }
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.kill9();
        // Only now: until the child is reaped its process id cannot belong to another process.
        let _ = self.leash.write_all(b"released\n");
        let _ = self.watchdog.wait();
    }
}

/// libfaketime shares memory under the process id and cannot tidy up after a SIGKILL.
fn remove_faketime_leftovers(pid: u32) {
    for name in [format!("faketime_shm_{pid}"), format!("sem.faketime_sem_{pid}")] {
        let _ = std::fs::remove_file(Path::new("/dev/shm").join(name));
    }
}

/// In a process group of its own, so that Ctrl-C reaches the test only and the order of the end
/// stays ours.
fn shell(script: &str, name: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, name]).stdin(Stdio::piped()).process_group(0);
    command
}
