//! One Redis or Valkey server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::binaries::faketime_preload;
use crate::options::{Flavor, RedisOptions};
use crate::port::free_port;
use crate::process::Guarded;
use crate::resp::Resp;
use crate::scratch::{Scratch, scratch};
use crate::unavailable::Unavailable;

/// Normally 10 ms; the rest is for a machine that compiles at the same time.
const READY_MAX: Duration = Duration::from_secs(20);
/// Another process may win the race for a free port, but not this often.
const PORT_TRIES_MAX: usize = 10;
/// Databases of a standalone server, handed out by [`RedisServer::fresh_db`].
const DATABASES: usize = 512;
/// In both servers' logs, once they listen and have loaded their data.
const READY_LINE: &str = "Ready to accept connections";

/// A running server: killed, waited for and its folder removed on drop.
///
/// All methods take `&self`, so that a shared server and a server in an `Arc` can be disturbed too.
#[derive(Debug)]
pub struct RedisServer {
    // Before the folder: fields drop in this order, and the server writes into the folder.
    process: Mutex<Option<Guarded>>,
    folder: Scratch,
    options: RedisOptions,
    program: PathBuf,
    port: u16,
    databases_used: AtomicUsize,
}

impl RedisServer {
    /// A Redis in memory only, on a free port.
    pub fn start() -> Result<Self, Unavailable> {
        Self::options().start()
    }

    /// For everything else.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// A Redis that has loaded `aof` as its append-only file. The file itself is not touched.
    pub fn loading(aof: impl AsRef<Path>) -> Result<Self, Unavailable> {
        Self::options().load(aof).start()
    }

    pub(crate) fn start_with(options: RedisOptions) -> Result<Self, Unavailable> {
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
        let mut process = Guarded::spawn(&self.program, &args, &env, folder).map_err(failed)?;
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

    /// `127.0.0.1:port`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://[:password@]127.0.0.1:port`
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
        self.process().as_ref().map(Guarded::pid)
    }

    /// Its working folder.
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

    /// SIGCONT after [`RedisServer::pause`].
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
    /// while it runs: forwards or backwards, seen by the next command.
    ///
    /// # Panics
    /// When it was started without.
    pub fn set_clock_offset(&self, seconds: i64) {
        assert!(self.options.clock_offset_s.is_some(), "started without clock_offset");
        crate::options::write_clock(self.folder.path(), seconds).expect("the folder is ours");
    }

    fn process(&self) -> MutexGuard<'_, Option<Guarded>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_words(&self) -> String {
        let out = fs::read_to_string(self.folder.join("out")).unwrap_or_default();
        let text = format!("{out}{}", self.log());
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl RedisOptions {
    fn write_files(&self, folder: &Path) -> io::Result<()> {
        if !self.acl.is_empty() {
            fs::write(folder.join("users.acl"), self.acl.join("\n") + "\n")?;
        }
        if let Some(nodes) = &self.cluster_nodes {
            fs::write(folder.join("nodes.conf"), nodes)?;
        }
        if let Some(seconds) = self.clock_offset_s {
            crate::options::write_clock(folder, seconds)?;
        }
        self.write_journals(folder)
    }

    /// Lays the files out as Redis 7's multi-part append-only file: the first is the base, the
    /// others are increments, and the manifest names them. Works for any number of files, and
    /// Redis neither renames nor upgrades anything.
    fn write_journals(&self, folder: &Path) -> io::Result<()> {
        if self.journals.is_empty() {
            return Ok(());
        }
        let parts = folder.join("appendonlydir");
        fs::create_dir(&parts)?;
        let mut manifest = String::new();
        for (i, journal) in self.journals.iter().enumerate() {
            let (seq, kind) = if i == 0 { (1, "base") } else { (i, "incr") };
            let name = format!("appendonly.aof.{seq}.{kind}.aof");
            fs::copy(journal, parts.join(&name))?;
            manifest += &format!("file {name} seq {seq} type {}\n", &kind[..1]);
        }
        fs::write(parts.join("appendonly.aof.manifest"), manifest)
    }

    fn command_line(&self, folder: &Path, port: u16) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        let mut set = |name: &str, value: &str| args.extend([format!("--{name}"), value.to_owned()]);
        set("port", &port.to_string());
        set("bind", "127.0.0.1");
        set("save", "");
        set("appendonly", if self.appendonly { "yes" } else { "no" });
        set("dir", &folder.display().to_string());
        set("logfile", "log");
        // DEBUG SLEEP, DEBUG SET-ACTIVE-EXPIRE and the like are for tests.
        set("enable-debug-command", "yes");
        if self.cluster_nodes.is_none() {
            set("databases", &DATABASES.to_string());
        }
        if let Some(password) = &self.password {
            set("requirepass", password);
        }
        if !self.acl.is_empty() {
            set("aclfile", &folder.join("users.acl").display().to_string());
        }
        args.extend(self.args.iter().cloned());
        args
    }

    fn environment(&self, folder: &Path) -> Result<Vec<(String, String)>, Unavailable> {
        if self.clock_offset_s.is_none() {
            return Ok(Vec::new());
        }
        let pair = |name: &str, value: String| (name.to_owned(), value);
        Ok(vec![
            pair("LD_PRELOAD", faketime_preload()?),
            pair("FAKETIME_TIMESTAMP_FILE", folder.join("clock").display().to_string()),
            pair("FAKETIME_NO_CACHE", "1".into()),
            pair("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ])
    }
}

fn failed(e: io::Error) -> Unavailable {
    Unavailable::Failed(e.to_string())
}
