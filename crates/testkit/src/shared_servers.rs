//! One server per test binary.
//!
//! Statics are never dropped; the watchdog beside each server ends it when the test binary ends.

use std::sync::OnceLock;

use crate::cassandra::CassandraCluster;
use crate::cluster::RedisCluster;
use crate::options::Flavor;
use crate::postgres::PostgresServer;
use crate::redis_server::RedisServer;
use crate::require::require;
use crate::unavailable::Unavailable;

/// A server that all tests of a binary share, or why it did not start.
type Shared<S> = OnceLock<Result<S, Unavailable>>;

/// The Redis that all tests of this binary share. Take a database of your own with
/// [`RedisServer::fresh_db`], and do not disturb it: others are using it.
#[track_caller]
pub fn shared_redis() -> Option<&'static RedisServer> {
    static REDIS: Shared<RedisServer> = OnceLock::new();
    get(&REDIS, RedisServer::start)
}

/// The Valkey that all tests of this binary share.
#[track_caller]
pub fn shared_valkey() -> Option<&'static RedisServer> {
    static VALKEY: Shared<RedisServer> = OnceLock::new();
    get(&VALKEY, || RedisServer::options().flavor(Flavor::Valkey).start())
}

/// The cluster of three primaries, without replicas, that all tests of this binary share. It has
/// one database: use keys of your own. A test that disturbs it starts its own.
#[track_caller]
pub fn shared_cluster() -> Option<&'static RedisCluster> {
    static CLUSTER: Shared<RedisCluster> = OnceLock::new();
    get(&CLUSTER, || RedisCluster::start(3, 0))
}

/// The Cassandra of one node that all tests of this binary share. Use a keyspace of your own.
#[track_caller]
pub fn shared_cassandra() -> Option<&'static CassandraCluster> {
    static CASSANDRA: Shared<CassandraCluster> = OnceLock::new();
    get(&CASSANDRA, CassandraCluster::start_one)
}

/// The PostgreSQL that all tests of this binary share. Take a database of your own with
/// [`PostgresServer::fresh_database`].
#[track_caller]
pub fn shared_postgres() -> Option<&'static PostgresServer> {
    static POSTGRES: Shared<PostgresServer> = OnceLock::new();
    get(&POSTGRES, PostgresServer::start)
}

#[track_caller]
fn get<S>(cell: &'static Shared<S>, start: impl FnOnce() -> Result<S, Unavailable>) -> Option<&'static S> {
    require(cell.get_or_init(start).as_ref().map_err(Unavailable::clone))
}
