//! Starts real servers for tests, on free loopback ports, and stops them.
//!
//! Responsible for: Redis and Valkey (standalone and cluster), Cassandra, PostgreSQL, a TCP proxy that loses and delays
//! traffic on purpose, certificates, a browser, scratch folders, small disks, free ports, a plain blocking
//! client, reported measurements ([`report!`]), and the policy for a server that is not installed
//! ([`require`]).
//!
//! Not responsible for: anything under test. This crate depends on no other crate of the workspace,
//! so a defect of the product cannot hide in its own test tools.
//!
//! Every server is a child in a guard that kills it *and* waits for it. A watchdog beside it kills it
//! when this process ends in any way, `kill -9` included.
//!
//! ```no_run
//! let Some(redis) = emberkeep_testkit::redis() else { return };
//! let mut external = redis.client();
//! external.call(&["SET", "greeting", "hello"]);
//! assert_eq!(external.call(&["GET", "greeting"]).text(), "hello");
//! ```

mod binaries;
mod browser;
mod cassandra;
mod certificates;
mod cluster;
mod launch;
mod on_every_engine;
mod options;
mod port;
mod postgres;
mod process;
mod proxy;
mod redis_server;
mod reply;
mod report;
mod require;
mod resp;
mod scratch;
mod shared_servers;
mod small_disk;
mod unavailable;
mod unlisted_cases;

pub use binaries::schemathesis;
pub use browser::{Page, open_page};
pub use cassandra::CassandraCluster;
pub use certificates::Certificates;
pub use cluster::{RedisCluster, SlotMigration, key_slot};
pub use on_every_engine::block_on;
pub use options::{Flavor, RedisOptions};
pub use port::{free_port, free_port_with_bus};
pub use postgres::PostgresServer;
pub use proxy::{FaultProxy, ProxyCounts, serve_proxy};
pub use redis_server::RedisServer;
pub use reply::Reply;
pub use report::keep_line;
pub use require::{cassandra_of_three, cluster, cluster_of, postgres, redis, require, server_of, valkey};
pub use resp::Resp;
pub use scratch::{Scratch, scratch};
pub use shared_servers::{shared_cassandra, shared_cluster, shared_postgres, shared_redis, shared_valkey};
pub use small_disk::SmallDisk;
pub use unavailable::Unavailable;
pub use unlisted_cases::unlisted_cases;

/// Used by the macros of this crate. Not a public interface.
#[doc(hidden)]
pub use tokio;
