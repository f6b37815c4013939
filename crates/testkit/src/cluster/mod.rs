//! A real cluster of Redis or Valkey on loopback ports.
//!
//! Nodes are numbered from 0: first the primaries, range by range, then the replicas, again range by
//! range. A *range* is the i-th part of the slots, on any node; a *node* is a process. A failover
//! separates the two, so every method says which one it means.

mod layout;
mod migration;
mod slot;
mod view;

use std::time::{Duration, Instant};

pub use migration::SlotMigration;
pub use slot::key_slot;

use crate::options::{Flavor, RedisOptions};
use crate::redis_server::RedisServer;
use crate::resp::Resp;
use crate::unavailable::Unavailable;
use layout::Layout;
use view::View;

/// Normally 2 s: nodes wait that long before they trust each other.
const READY_MAX: Duration = Duration::from_secs(30);
/// Another process may take a port between the check and the start; every node is a chance for that.
const START_TRIES_MAX: usize = 5;

/// A running cluster; all its nodes are killed and waited for on drop.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    layout: Layout,
}

impl RedisCluster {
    /// A Redis cluster with this many primaries, each with this many replicas. Takes about 2 s.
    pub fn start(primaries: usize, replicas_per_primary: usize) -> Result<Self, Unavailable> {
        Self::start_flavor(Flavor::Redis, primaries, replicas_per_primary)
    }

    /// The same of either flavor.
    pub fn start_flavor(
        flavor: Flavor,
        primaries: usize,
        replicas_per_primary: usize,
    ) -> Result<Self, Unavailable> {
        let options = RedisServer::options().flavor(flavor);
        Self::start_with(&options, primaries, replicas_per_primary)
    }

    /// The same with settings that every node gets.
    pub fn start_with(
        options: &RedisOptions,
        primaries: usize,
        replicas_per_primary: usize,
    ) -> Result<Self, Unavailable> {
        let mut tries_left = START_TRIES_MAX;
        loop {
            tries_left -= 1;
            match Self::launch(options, Layout::new(primaries, replicas_per_primary)) {
                Err(Unavailable::Failed(why)) if tries_left > 0 && why.contains("in use") => {}
                Err(other) => return Err(other),
                Ok(cluster) => return cluster.wait_ready().map(|()| cluster),
            }
        }
    }

    fn launch(options: &RedisOptions, layout: Layout) -> Result<Self, Unavailable> {
        let nodes = (0..layout.len())
            .map(|node| layout.options(options, node).start())
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { nodes, layout })
    }

    /// Waits until every running node says that all is well: state ok, all slots covered, and each
    /// running replica in transaction with its primary.
    pub fn wait_ready(&self) -> Result<(), Unavailable> {
        let deadline = Instant::now() + READY_MAX;
        while !self.running().all(|node| self.is_ready(node)) {
            if Instant::now() > deadline {
                let why = format!("the cluster is not ready after {READY_MAX:?}");
                return Err(Unavailable::Failed(why));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// All nodes, running or not.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The ports of all nodes, in the order of their numbers.
    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(RedisServer::port).collect()
    }

    /// The URL of the Cluster: `redis+cluster://127.0.0.1:port,…`
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(RedisServer::address).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// The nodes' URLs: seeds for a cluster client.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// How many ranges, which is how many primaries it was started with.
    pub fn ranges(&self) -> usize {
        self.layout.primaries
    }

    /// The node that serves a slot, as the running nodes see it; it may be dead, if they have not
    /// noticed yet.
    ///
    /// # Panics
    /// When no node runs, or the slot is served by none.
    #[track_caller]
    pub fn primary_of_slot(&self, slot: u16) -> usize {
        let view = self.running().find_map(|node| View::of(&self.nodes[node]));
        let port = view.and_then(|view| view.primary_port(slot)).expect("a node that serves the slot");
        self.node_on(port).expect("a node of ours")
    }

    /// The node that serves a key's slot.
    #[track_caller]
    pub fn primary_of_key(&self, key: impl AsRef<[u8]>) -> usize {
        self.primary_of_slot(key_slot(key.as_ref()))
    }

    /// A plain connection to the node that serves a key. It follows no redirection.
    #[track_caller]
    pub fn client_of_key(&self, key: impl AsRef<[u8]>) -> Resp {
        self.nodes[self.primary_of_key(key)].client()
    }

    /// The node that serves a range now.
    #[track_caller]
    pub fn primary_of_range(&self, range: usize) -> usize {
        self.primary_of_slot(self.layout.slots(range).0)
    }

    /// SIGKILL to the primary of a range; returns its node. Its replica, if there is one, takes over
    /// after about 1.3 s, or at once by [`RedisCluster::failover`].
    #[track_caller]
    pub fn kill9_primary(&self, range: usize) -> usize {
        let node = self.primary_of_range(range);
        self.nodes[node].kill9();
        node
    }

    /// Makes a replica the primary of a range, and returns its node once all running nodes agree.
    /// In good order if the primary lives, by takeover if it is dead.
    ///
    /// # Panics
    /// When the range has no running replica, or it does not come to an agreement.
    #[track_caller]
    pub fn failover(&self, range: usize) -> usize {
        let old = self.primary_of_range(range);
        let replica = self.replica_of(old).expect("a running replica of the range");
        let mut client = self.nodes[replica].client();
        let reply = match self.nodes[old].pid() {
            Some(_) => client.call(&["CLUSTER", "FAILOVER"]),
            None => client.call(&["CLUSTER", "FAILOVER", "TAKEOVER"]),
        };
        assert!(reply.is_ok(), "failover: {reply:?}");
        self.await_owner(self.layout.slots(range).0, replica);
        replica
    }

    /// Waits until every running node agrees that `node` serves `slot`.
    ///
    /// # Panics
    /// When they do not within 30 s.
    #[track_caller]
    pub fn await_owner(&self, slot: u16, node: usize) {
        let port = self.nodes[node].port();
        let deadline = Instant::now() + READY_MAX;
        let agrees = |n: usize| View::of(&self.nodes[n]).is_some_and(|v| v.primary_port(slot) == Some(port));
        while !self.running().all(agrees) {
            assert!(Instant::now() < deadline, "node {node} does not come to serve slot {slot}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Begins to move a slot to another primary. Until [`SlotMigration::finish`] the slot stays
    /// between the two: absent keys answer ASK, half-moved sets of keys answer TRYAGAIN.
    #[track_caller]
    pub fn begin_migration(&self, slot: u16, to: usize) -> SlotMigration<'_> {
        SlotMigration::begin(self, slot, to)
    }

    /// A running replica that follows `primary`.
    fn replica_of(&self, primary: usize) -> Option<usize> {
        let port = format!("master_port:{}\r", self.nodes[primary].port());
        self.running().find(|node| self.info(*node, "replication").contains(&port))
    }

    fn is_ready(&self, node: usize) -> bool {
        let state = self.nodes[node].client().call(&["CLUSTER", "INFO"]).text();
        let replication = self.info(node, "replication");
        let in_transaction =
            !replication.contains("role:slave") || replication.contains("master_link_status:up");
        let replicas = self.layout.replicas * self.layout.primaries;
        let complete = self.running().count() < self.nodes.len()
            || View::of(&self.nodes[node]).is_some_and(|view| view.replicas() == replicas);
        state.contains("cluster_state:ok")
            && state.contains("cluster_slots_ok:16384")
            && in_transaction
            && complete
    }

    fn info(&self, node: usize, section: &str) -> String {
        self.nodes[node].client().call(&["INFO", section]).text()
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].pid().is_some())
    }

    fn node_on(&self, port: u16) -> Option<usize> {
        self.nodes.iter().position(|node| node.port() == port)
    }
}
