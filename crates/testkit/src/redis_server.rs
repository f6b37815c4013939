//! One Redis or Valkey server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::launch::{DATABASES, write_clock};
use crate::options::{Flavor, RedisOptions};
use crate::port::free_port;
use crate::process::ChildGuard;
use crate::resp::Resp;
use crate::scratch::{Scratch, scratch};
use crate::unavailable::Unavailable;

/// Normally 10 ms; the rest is for a machine that compiles at the same time.
const READY_MAX: Duration = Duration::from_secs(20);
/// Another process may win the race for a free port, but not this often.
const PORT_TRIES_MAX: usize = 10;
/// In both servers' logs, once they listen and have loaded their data.
const READY_LINE: &str = "Ready to accept connections";

/// A running server: killed, waited for and its folder removed on drop.
///
/// All methods take `&self`, so that a shared server and a server in an `Arc` can be disturbed too.
#[derive(Debug)]
pub struct RedisServer {
    // Before the folder: fields drop in this order, and the server writes into the folder.
    process: Mutex<Option<ChildGuard>>,
    folder: Scratch,
    options: RedisOptions,
    program: PathBuf,
    port: u16,
    databases_used: AtomicUsize,
}

impl RedisOptions {
    /// Starts it and waits until it accepts connections.
    pub fn start(self) -> Result<RedisServer, Unavailable> {
        RedisServer::start_with(self)
    }
}

impl RedisServer {
    /// A Redis in memory only, on a free port.
    pub fn start() -> Result<Self, Unavailable> {
        Self::options().start()
    }

    /// Options for a server that [`start`](RedisServer::start) does not fit.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// A Redis that has loaded `aof` as its append-only file. The file itself is not touched.
    pub fn loading(aof: impl AsRef<Path>) -> Result<Self, Unavailable> {
        Self::options().load(aof).start()
    }

    fn start_with(options: RedisOptions) -> Result<Self, Unavailable> {
        let program = options.flavor.program()?;
        let mut taken = String::new();
        for _ in 0..PORT_TRIES_MAX {
            let port = options.port.unwrap_or_else(free_port);
            let server = Self::prepare(&options, &program, port).map_err(failed)?;
            match server.launch() {
                Err(Unavailable::Failed(why)) if why.contains("Address already in use") => taken = why,
                Err(other) => return Err(other),
                Ok(()) => return Ok(server),
            }
            if options.port.is_some() {
                break;
            }
        }
        Err(Unavailable::Failed(taken))
    }

    fn prepare(options: &RedisOptions, program: &Path, port: u16) -> io::Result<Self> {
        let folder = scratch();
        options.write_files(folder.path())?;
        Ok(Self {
            process: Mutex::new(None),
            folder,
            options: options.clone(),
            program: program.to_owned(),
            port,
            databases_used: AtomicUsize::new(0),
        })
    }

    /// Starts the process in the existing folder and waits until it is ready.
    fn launch(&self) -> Result<(), Unavailable> {
        let folder = self.folder.path();
        let _ = fs::remove_file(folder.join("log"));
        let env = self.options.environment(folder)?;
        let args = self.options.command_line(folder, self.port);
        let mut process = ChildGuard::spawn(&self.program, &args, &env, folder).map_err(failed)?;
        let deadline = Instant::now() + READY_MAX;
        // The log, not a PING: a PING might be answered by a stranger who took the port first, and
        // needs a password that a test may have forbidden.
        while !self.log().contains(READY_LINE) {
            if process.ended().is_some() || Instant::now() > deadline {
                return Err(Unavailable::Failed(self.last_words()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        *self.process() = Some(process);
        Ok(())
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where clients connect: `127.0.0.1:port`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where clients connect, as a URL: `redis://[:password@]127.0.0.1:port`
    pub fn url(&self) -> String {
        match &self.options.password {
            Some(password) => format!("redis://:{password}@127.0.0.1:{}", self.port),
            None => format!("redis://127.0.0.1:{}", self.port),
        }
    }

    /// The URL of an empty database that no other test of this process uses.
    ///
    /// Publish/subscribe channels, scripts and CLIENT commands are not separated by this.
    pub fn fresh_db(&self) -> String {
        let number = self.databases_used.fetch_add(1, Ordering::Relaxed);
        assert!(number < DATABASES, "more than {DATABASES} databases asked of one server");
        format!("{}/{number}", self.url())
    }

    /// A new plain connection, with the password already given, in database 0.
    ///
    /// # Panics
    /// When the server cannot be reached.
    #[track_caller]
    pub fn client(&self) -> Resp {
        let mut client = Resp::connect(self.address())
            .unwrap_or_else(|e| panic!("cannot connect to {}: {e}", self.address()));
        if let Some(password) = &self.options.password {
            assert!(client.call(&["AUTH", password]).is_ok(), "the server refuses its own password");
        }
        client
    }

    /// A new plain connection to the database of a URL from [`RedisServer::fresh_db`].
    #[track_caller]
    pub fn client_of(&self, url: &str) -> Resp {
        let number = url.rsplit('/').next().unwrap_or_default();
        let mut client = self.client();
        assert!(client.call(&["SELECT", number]).is_ok(), "no database in {url}");
        client
    }

    /// Which server this is.
    pub fn flavor(&self) -> Flavor {
        self.options.flavor
    }

    /// Its process id, or `None` when it is not running.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(ChildGuard::pid)
    }

    /// The folder in which it works: its configuration, log and data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it has logged since its last start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// SIGKILL; returns when it is gone.
    pub fn kill9(&self) {
        if let Some(mut process) = self.process().take() {
            process.kill9();
        }
    }

    /// SIGTERM; returns when it is gone.
    pub fn stop(&self) {
        if let Some(mut process) = self.process().take() {
            process.stop();
        }
    }

    /// SIGSTOP: connections stay open, nothing is answered.
    pub fn pause(&self) {
        if let Some(process) = self.process().as_mut() {
            process.signal("STOP");
        }
    }

    /// Lets the server go on (SIGCONT) after [`RedisServer::pause`].
    pub fn resume(&self) {
        if let Some(process) = self.process().as_mut() {
            process.signal("CONT");
        }
    }

    /// Kills it if it runs, and starts it again on the same port in the same folder. It comes back
    /// empty unless [`RedisOptions::appendonly`] was asked for.
    pub fn restart(&self) -> Result<(), Unavailable> {
        self.kill9();
        self.launch()
    }

    /// Moves the wall clock of a server that was started with [`RedisOptions::clock_offset`],
    /// while it runs, forwards or backwards; returns when its TIME shows it.
    ///
    /// # Panics
    /// When it was started without, or does not follow.
    pub fn set_clock_offset(&self, seconds: i64) {
        assert!(self.options.clock_offset_s.is_some(), "started without clock_offset");
        write_clock(self.folder.path(), seconds).expect("the folder is ours");
        let mut client = self.client();
        let deadline = Instant::now() + READY_MAX;
        // The server looks at its clock when its loop wakes up, so one answer may still be old.
        while (clock_offset(&mut client) - seconds).abs() > 1 {
            assert!(Instant::now() < deadline, "the clock does not follow");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<ChildGuard>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_words(&self) -> String {
        let out = fs::read_to_string(self.folder.join("out")).unwrap_or_default();
        let text = format!("{out}{}", self.log());
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

/// How many seconds the server's clock is ahead of ours.
fn clock_offset(client: &mut Resp) -> i64 {
    let theirs: i64 = client.call(&["TIME"]).items()[0].text().parse().expect("seconds");
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
    theirs - ours
}

fn failed(e: io::Error) -> Unavailable {
    Unavailable::Failed(e.to_string())
}
