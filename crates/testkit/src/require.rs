//! The policy for a server that is not installed.
//!
//! On a developer's machine the test is skipped, with one line on stderr. With `CI=true` it
//! fails: a suite that skips in silence proves nothing. A server that is installed but does not
//! come up is a failure everywhere.

use std::io::Write;

use crate::cassandra::CassandraCluster;
use crate::cluster::RedisCluster;
use crate::options::Flavor;
use crate::postgres::PostgresServer;
use crate::redis_server::RedisServer;
use crate::unavailable::Unavailable;

/// The server, or `None` after one line on stderr that says what is missing.
///
/// # Panics
/// When it failed to start, or when it is missing and `CI=true`.
#[track_caller]
pub fn require<S>(server: Result<S, Unavailable>) -> Option<S> {
    match server {
        Ok(server) => Some(server),
        Err(Unavailable::NotFound(what)) => {
            assert!(!is_ci(), "a server is missing, and CI=true: {what}");
            skip(&what);
            None
        }
        Err(failed) => panic!("{failed}"),
    }
}

/// A Redis for this test alone: `let Some(redis) = redis() else { return };`
#[track_caller]
pub fn redis() -> Option<RedisServer> {
    require(RedisServer::start())
}

/// A Valkey for this test alone.
#[track_caller]
pub fn valkey() -> Option<RedisServer> {
    require(RedisServer::options().flavor(Flavor::Valkey).start())
}

/// A server of either flavor for this test alone.
#[track_caller]
pub fn server_of(flavor: Flavor) -> Option<RedisServer> {
    require(RedisServer::options().flavor(flavor).start())
}

/// A cluster of either flavor for this test alone; each primary has this many replicas.
#[track_caller]
pub fn cluster_of(flavor: Flavor, primaries: usize, replicas_per_primary: usize) -> Option<RedisCluster> {
    require(RedisCluster::start_flavor(flavor, primaries, replicas_per_primary))
}

/// A Redis cluster for this test alone; each primary has this many replicas.
#[track_caller]
pub fn cluster(primaries: usize, replicas_per_primary: usize) -> Option<RedisCluster> {
    require(RedisCluster::start(primaries, replicas_per_primary))
}

/// Three Cassandra nodes for this test alone.
#[track_caller]
pub fn cassandra_of_three() -> Option<CassandraCluster> {
    require(CassandraCluster::start_three())
}

/// A PostgreSQL for this test alone.
#[track_caller]
pub fn postgres() -> Option<PostgresServer> {
    require(PostgresServer::start())
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|v| v == "true" || v == "1")
}

/// Writes to the descriptor: the test harness captures what the print macros write.
pub(crate) fn skip(what: &str) {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or("test");
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what} ({test})");
}
