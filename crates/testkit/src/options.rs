//! Options of a server.

use std::path::{Path, PathBuf};

/// Which server speaks the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// redis-server 7, from the distribution.
    #[default]
    Redis,
    /// valkey-server 9. Built with plain malloc: good for conformance, not for benchmarks.
    Valkey,
}

/// How a server is to be started: a free port, memory only, no password unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    pub(crate) flavor: Flavor,
    pub(crate) port: Option<u16>,
    pub(crate) args: Vec<String>,
    pub(crate) password: Option<String>,
    pub(crate) acl: Vec<String>,
    pub(crate) clock_offset_s: Option<i64>,
    pub(crate) journals: Vec<PathBuf>,
    pub(crate) appendonly: bool,
    pub(crate) cluster_nodes: Option<String>,
}

impl RedisOptions {
    /// Whether it is Redis or Valkey.
    pub fn flavor(mut self, flavor: Flavor) -> Self {
        self.flavor = flavor;
        self
    }

    /// This port and no other: a taken one is a failure.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// One more setting, as in redis.conf: `set("maxmemory-policy", "allkeys-lru")`.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.args.extend([format!("--{name}"), value.to_owned()]);
        self
    }

    /// `maxmemory` in bytes, with `noeviction`: writes above it fail with OOM.
    pub fn maxmemory(self, bytes: u64) -> Self {
        self.set("maxmemory", &bytes.to_string())
    }

    /// `requirepass`. The URL and the client of the server carry it.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds a line to the ACL file, such as `user game on >secret ~game:* +@all`.
    /// The default user stays as it is unless a line changes it.
    pub fn acl(mut self, line: &str) -> Self {
        self.acl.push(line.to_owned());
        self
    }

    /// Shifts the server's wall clock; `RedisServer::set_clock_offset` can move it later.
    /// Its monotonic clock stays true, so timers run as usual.
    pub fn clock_offset(mut self, seconds: i64) -> Self {
        self.clock_offset_s = Some(seconds);
        self
    }

    /// Writes an append-only file, so that data survives a restart.
    pub fn appendonly(mut self) -> Self {
        self.appendonly = true;
        self
    }

    /// Loads this append-only file at the start; the original is copied and not touched.
    /// Call it again for further increments, in order.
    pub fn load(mut self, aof: impl AsRef<Path>) -> Self {
        self.journals.push(aof.as_ref().to_owned());
        self.appendonly()
    }
}
