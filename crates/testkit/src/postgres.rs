//! One PostgreSQL server.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::binaries::{postgres_programs, setpriv};
use crate::certificates::Certificates;
use crate::port::free_port;
use crate::process::ChildGuard;
use crate::scratch::{Scratch, scratch};
use crate::unavailable::Unavailable;

/// Normally 50 ms; the rest is for a machine that compiles at the same time.
const READY_MAX: Duration = Duration::from_secs(30);
/// Another process may win the race for a free port, but not this often.
const PORT_TRIES_MAX: usize = 5;
/// In the log, once connections are accepted.
const READY_LINE: &str = "database system is ready to accept connections";
/// The account that runs the server when we are root, which it refuses.
const ACCOUNT: &str = "postgres";
/// The account without rights of every Linux, where that one does not exist.
const UID_WITHOUT_RIGHTS: &str = "65534";

/// A running PostgreSQL in a temporary folder: killed, waited for and removed on drop.
#[derive(Debug)]
pub struct PostgresServer {
    process: Mutex<Option<ChildGuard>>,
    folder: Scratch,
    programs: PathBuf,
    account: Option<Account>,
    port: u16,
    databases: AtomicUsize,
}

/// A user of the system.
#[derive(Debug, Clone)]
struct Account {
    uid: u32,
    gid: u32,
}

impl PostgresServer {
    /// Starts it on a free port and waits until it accepts connections. Every client of this machine is let in as the user
    /// `tester`.
    pub fn start() -> Result<PostgresServer, Unavailable> {
        let programs = postgres_programs()?;
        let account = is_root().then(account).transpose()?;
        let mut last = String::new();
        for _ in 0..PORT_TRIES_MAX {
            let server = PostgresServer {
                process: Mutex::new(None),
                folder: scratch(),
                programs: programs.clone(),
                account: account.clone(),
                port: free_port(),
                databases: AtomicUsize::new(0),
            };
            server.initialize()?;
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(Unavailable::Failed(why)) if why.contains("Address already in use") => last = why,
                Err(other) => return Err(other),
            }
        }
        Err(Unavailable::Failed(last))
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn initialize(&self) -> Result<(), Unavailable> {
        if let Some(account) = &self.account {
            chown(self.folder.path(), Some(account.uid), Some(account.gid)).map_err(failed)?;
        }
        let data = self.data().display().to_string();
        let arguments = ["-D", &data, "-U", "tester", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"];
        let (program, arguments) = self.command("initdb", &arguments.map(str::to_owned))?;
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        Err(Unavailable::Failed(String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// A program of the server, as the account that runs it.
    fn command(&self, program: &str, arguments: &[String]) -> Result<(PathBuf, Vec<String>), Unavailable> {
        let program = self.programs.join(program);
        let Some(account) = &self.account else { return Ok((program, arguments.to_vec())) };
        let mut all = vec![
            format!("--reuid={}", account.uid),
            format!("--regid={}", account.gid),
            "--clear-groups".to_owned(),
            "--".to_owned(),
            program.display().to_string(),
        ];
        all.extend_from_slice(arguments);
        Ok((setpriv()?, all))
    }

    fn launch(&self) -> Result<(), Unavailable> {
        let (data, folder) = (self.data().display().to_string(), self.folder.path().display().to_string());
        let mut arguments = vec!["-D".to_owned(), data, "-p".to_owned(), self.port.to_string()];
        for setting in [
            "fsync=off",
            "full_page_writes=off",
            "listen_addresses=127.0.0.1",
            "max_connections=50",
            &format!("unix_socket_directories={folder}"),
        ] {
            arguments.extend(["-c".to_owned(), setting.to_owned()]);
        }
        let (program, arguments) = self.command("postgres", &arguments)?;
        let _ = fs::remove_file(self.folder.join("out"));
        let mut process = ChildGuard::spawn(&program, &arguments, &[], self.folder.path()).map_err(failed)?;
        let deadline = Instant::now() + READY_MAX;
        while !self.log().contains(READY_LINE) {
            if process.ended().is_some() || Instant::now() > deadline {
                return Err(Unavailable::Failed(self.log()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        *self.process() = Some(process);
        Ok(())
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of an empty database that no other test of this process uses.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn fresh_database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgres://tester@127.0.0.1:{}/{name}", self.port)
    }

    /// The URL of an empty database whose tables are in this folder, such as that of a [`SmallDisk`](crate::SmallDisk).
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn database_in(&self, folder: &Path) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let place = folder.join(&name);
        fs::create_dir(&place).expect("the folder of the test");
        if let Some(account) = &self.account {
            chown(&place, Some(account.uid), Some(account.gid)).expect("we are root");
        }
        self.sql("postgres", &format!("CREATE TABLESPACE {name} LOCATION '{}'", place.display()));
        self.sql("postgres", &format!("CREATE DATABASE {name} TABLESPACE {name}"));
        format!("postgres://tester@127.0.0.1:{}/{name}", self.port)
    }

    /// Lets clients encrypt, with the server's certificate. Plain connections are refused from then on.
    ///
    /// # Panics
    /// When the server does not take it.
    pub fn require_tls(&self, certificates: &Certificates) {
        for (from, name, mode) in [("server.pem", "server.crt", 0o644), ("server.key", "server.key", 0o600)] {
            let to = self.data().join(name);
            fs::copy(certificates.path(from), &to).expect("a file of the test");
            fs::set_permissions(&to, fs::Permissions::from_mode(mode)).expect("our file");
            if let Some(account) = &self.account {
                chown(&to, Some(account.uid), Some(account.gid)).expect("we are root");
            }
        }
        let rules = "hostssl all all 127.0.0.1/32 trust\n";
        fs::write(self.data().join("pg_hba.conf"), rules).expect("a file of the test");
        fs::write(self.data().join("postgresql.auto.conf"), "ssl = on\n").expect("a file of the test");
        self.restart().expect("it starts again");
    }

    /// Runs statements by `psql`, in a database by its name or URL; returns what it prints.
    ///
    /// # Panics
    /// When the server refuses them.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let database = match database.contains("://") {
            true => database.to_owned(),
            false => format!("postgres://tester@127.0.0.1:{}/{database}", self.port),
        };
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statements, &database])
            .stdin(Stdio::null())
            .output()
            .expect("psql is beside the server");
        assert!(output.status.success(), "{statements}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// What it has logged since its last start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("out")).unwrap_or_default()
    }

    /// SIGKILL; returns when it is gone.
    pub fn kill9(&self) {
        if let Some(mut process) = self.process().take() {
            process.kill9();
        }
    }

    /// Kills it if it runs, and starts it again on the same port with its data.
    pub fn restart(&self) -> Result<(), Unavailable> {
        self.kill9();
        let deadline = Instant::now() + READY_MAX;
        loop {
            match self.launch() {
                // Processes of the one that was killed end a moment later.
                Err(Unavailable::Failed(why))
                    if Instant::now() < deadline
                        && (why.contains("shared memory") || why.contains("lock file")) =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                started => return started,
            }
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<ChildGuard>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// The account that runs the server.
fn account() -> Result<Account, Unavailable> {
    let users = fs::read_to_string(Path::new("/etc/passwd")).map_err(failed)?;
    let users: Vec<Vec<&str>> = users.lines().map(|line| line.split(':').collect()).collect();
    let by = |place: usize, text: &str| users.iter().find(|words| words.get(place) == Some(&text));
    let words = by(0, ACCOUNT).or_else(|| by(2, UID_WITHOUT_RIGHTS));
    let number = |place: usize| words?.get(place)?.parse().ok();
    match (number(2), number(3)) {
        (Some(uid), Some(gid)) => Ok(Account { uid, gid }),
        _ => Err(Unavailable::NotFound("no account but root, which PostgreSQL refuses".into())),
    }
}

fn failed(error: io::Error) -> Unavailable {
    Unavailable::Failed(error.to_string())
}
