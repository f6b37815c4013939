//! From options to files, arguments and environment of a server's process.

use std::fs;
use std::io;
use std::path::Path;

use crate::binaries::faketime_preload;
use crate::options::RedisOptions;
use crate::unavailable::Unavailable;

/// Databases of a standalone server, handed out by `RedisServer::fresh_db`.
pub(crate) const DATABASES: usize = 512;

impl RedisOptions {
    pub(crate) fn write_files(&self, folder: &Path) -> io::Result<()> {
        if !self.acl.is_empty() {
            fs::write(folder.join("users.acl"), self.acl.join("\n") + "\n")?;
        }
        if let Some(nodes) = &self.cluster_nodes {
            fs::write(folder.join("nodes.conf"), nodes)?;
        }
        if let Some(seconds) = self.clock_offset_s {
            write_clock(folder, seconds)?;
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

    pub(crate) fn command_line(&self, folder: &Path, port: u16) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        let mut set = |name: &str, value: &str| args.extend([format!("--{name}"), value.to_owned()]);
        set("port", &port.to_string());
        set("bind", "127.0.0.1");
        set("save", "");
        set("appendonly", if self.appendonly { "yes" } else { "no" });
        // With everysec a busy Redis answers before it writes: a test that kills it would count that as a
        // loss of ours. What was written survives `kill -9`, synced or not.
        set("appendfsync", "no");
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

    pub(crate) fn environment(&self, folder: &Path) -> Result<Vec<(String, String)>, Unavailable> {
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

/// Tells libfaketime the offset. Replaced in one transaction, so that the server never reads half of it.
pub(crate) fn write_clock(folder: &Path, seconds: i64) -> io::Result<()> {
    let fresh = folder.join("clock.new");
    fs::write(&fresh, format!("{seconds:+}s\n"))?;
    fs::rename(fresh, folder.join("clock"))
}
