//! Starts real servers for tests, on free loopback ports, and stops them again.
//!
//! Responsible for: Redis and Valkey (standalone and cluster), a TCP proxy that loses and delays
//! traffic on purpose, certificates, a browser, scratch folders, small disks, free ports, a plain blocking client, lines that outlive
//! a test ([`report!`]), and the one policy for a server that cannot be had ([`require`]).
//!
//! Not responsible for: anything under test. This crate depends on no other crate of the workspace,
//! so a fault in ours cannot hide itself in the instrument that looks for it.
//!
//! Every server is a child in a guard that kills *and* waits, and beside it runs a watchdog that
//! kills it when this process ends in any way, `kill -9` included.
//!
//! ```no_run
//! let Some(redis) = emberkeep_testkit::redis() else { return };
//! let mut external = redis.client();
//! external.call(&["SET", "greeting", "hello"]);
//! assert_eq!(external.call(&["GET", "greeting"]).text(), "hello");
//! ```

mod binaries;
mod browser;
mod certificates;
mod cluster;
mod launch;
mod on_every_engine;
mod options;
mod port;
mod process;
mod proxy;
mod redis_server;
mod reply;
mod report;
mod require;
mod resp;
mod scratch;
mod shared;
mod small_disk;
mod unavailable;
mod unlisted;

pub use binaries::schemathesis;
pub use browser::{Page, open_page};
pub use certificates::Certificates;
pub use cluster::{RedisCluster, SlotMigration, key_slot};
pub use options::{Flavor, RedisOptions};
pub use port::{free_port, free_port_with_bus};
pub use proxy::{FaultProxy, ProxyCounts, serve_proxy};
pub use redis_server::RedisServer;
pub use reply::Reply;
pub use report::keep_line;
pub use require::{cluster, cluster_of, redis, require, server_of, valkey};
pub use resp::Resp;
pub use scratch::{Scratch, scratch};
pub use shared::{shared_cluster, shared_redis, shared_valkey};
pub use small_disk::SmallDisk;
pub use unavailable::Unavailable;
pub use unlisted::unlisted;
