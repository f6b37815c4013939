//! Finds the programs of the servers.

use std::env;
use std::path::{Path, PathBuf};

use crate::options::Flavor;
use crate::unavailable::Unavailable;

/// Test binaries often run with a bare PATH; Debian keeps servers here.
const ALSO: [&str; 4] = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

impl Flavor {
    /// Finds the server's program: the environment variable, then PATH, then `.servers` in the
    /// workspace, which `./test` fills.
    pub(crate) fn program(self) -> Result<PathBuf, Unavailable> {
        let (name, variable) = match self {
            Self::Redis => ("redis-server", "EMBERKEEP_REDIS"),
            Self::Valkey => ("valkey-server", "EMBERKEEP_VALKEY"),
        };
        if let Some(path) = env::var_os(variable).filter(|v| !v.is_empty()) {
            return existing(PathBuf::from(path)).ok_or_else(|| not_found(name, variable));
        }
        let installed = workspace().join(".servers").join(self.folder()).join(name);
        on_path(name).or_else(|| existing(installed)).ok_or_else(|| not_found(name, variable))
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
        }
    }
}

/// Finds Chromium, or a browser that takes the same arguments.
pub(crate) fn chromium() -> Result<PathBuf, Unavailable> {
    const VARIABLE: &str = "EMBERKEEP_CHROMIUM";
    if let Some(path) = env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return existing(PathBuf::from(path)).ok_or_else(|| not_found("chromium", VARIABLE));
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find_map(on_path).ok_or_else(|| not_found("chromium", VARIABLE))
}

/// Finds schemathesis, which `./test` installs beside the servers.
pub fn schemathesis() -> Result<PathBuf, Unavailable> {
    const VARIABLE: &str = "EMBERKEEP_SCHEMATHESIS";
    if let Some(path) = env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return existing(PathBuf::from(path)).ok_or_else(|| not_found("schemathesis", VARIABLE));
    }
    let installed = workspace().join(".servers/schemathesis/bin/schemathesis");
    existing(installed).or_else(|| on_path("schemathesis")).ok_or_else(|| not_found("schemathesis", VARIABLE))
}

/// Finds Java, which runs Cassandra.
pub(crate) fn java() -> Result<PathBuf, Unavailable> {
    const VARIABLE: &str = "EMBERKEEP_JAVA";
    if let Some(path) = env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return existing(PathBuf::from(path)).ok_or_else(|| not_found("java", VARIABLE));
    }
    on_path("java").ok_or_else(|| not_found("java", VARIABLE))
}

/// The folder with Cassandra's jars, which `./test` fills.
pub(crate) fn cassandra_jars() -> Result<PathBuf, Unavailable> {
    const VARIABLE: &str = "EMBERKEEP_CASSANDRA";
    let folder = match env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => workspace().join(".servers/cassandra/lib"),
    };
    // Absolute: the server has a working folder of its own.
    folder.canonicalize().map_err(|_| not_found("the jars of Cassandra", VARIABLE))
}

/// The folder with the programs of PostgreSQL: the newest that is installed.
pub(crate) fn postgres_programs() -> Result<PathBuf, Unavailable> {
    const VARIABLE: &str = "EMBERKEEP_POSTGRES";
    if let Some(path) = env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        let found = existing(Path::new(&path).join("initdb")).map(|_| path.into());
        return found.ok_or_else(|| not_found("PostgreSQL", VARIABLE));
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.retain(|folder| folder.join("postgres").is_file() && folder.join("initdb").is_file());
    folders.sort();
    folders.pop().ok_or_else(|| not_found("PostgreSQL", VARIABLE))
}

/// Finds the program that starts another one as another user.
pub(crate) fn setpriv() -> Result<PathBuf, Unavailable> {
    on_path("setpriv").ok_or_else(|| Unavailable::NotFound("setpriv not found: looked at PATH".into()))
}

fn not_found(name: &str, variable: &str) -> Unavailable {
    Unavailable::NotFound(format!(
        "{name} not found: looked at ${variable}, PATH and .servers (run ./test once)"
    ))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(ALSO.iter().map(PathBuf::from))
        .find_map(|folder| existing(folder.join(name)))
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The library that shifts a program's clock, and the C library to load with it.
///
/// The second one is the trick: Debian's redis-server links jemalloc, whose start-up asks for the
/// time before libfaketime is ready, which then allocates, and so on for ever. With the C library
/// named ahead of jemalloc, `malloc` is the C library's and the circle is open.
pub(crate) fn faketime_preload() -> Result<String, Unavailable> {
    let missing = || Unavailable::NotFound("libfaketime not found: looked in /usr/lib/*/faketime".into());
    let folders = std::fs::read_dir("/usr/lib").map_err(|_| missing())?;
    folders
        .flatten()
        .map(|entry| entry.path())
        .find_map(|folder| {
            let faketime = existing(folder.join("faketime/libfaketimeMT.so.1"))?;
            let libc = existing(folder.join("libc.so.6"))?;
            Some(format!("{} {}", faketime.display(), libc.display()))
        })
        .ok_or_else(missing)
}
