//! The roles of all nodes of a new cluster, written before the first node starts.
//!
//! Every node gets a `nodes.conf` that names all nodes with its own line marked `myself`. So no
//! `CLUSTER MEET` is needed, and the cluster is up as soon as the nodes trust each other.

use crate::cluster::slot::SLOTS;
use crate::options::RedisOptions;
use crate::port::{free_port_with_bus, random};

/// The distance to the bus port is the server's default.
const BUS_OFFSET: u16 = 10_000;

/// The plan of a cluster.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) primaries: usize,
    /// Replicas of each primary.
    pub(super) replicas: usize,
    ports: Vec<u16>,
    ids: Vec<String>,
}

impl Layout {
    /// A new plan on ports that are free now.
    pub(super) fn new(primaries: usize, replicas: usize) -> Self {
        let count = primaries * (1 + replicas);
        let mut ports: Vec<u16> = Vec::new();
        while ports.len() < count {
            let port = free_port_with_bus();
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        let ids = (0..count).map(|_| format!("{:016x}{:016x}{:08x}", random(), random(), random() as u32));
        Self { primaries, replicas, ports, ids: ids.collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.ports.len()
    }

    /// First and last slot of a range.
    pub(super) fn slots(&self, range: usize) -> (u16, u16) {
        let edge = |i: usize| (usize::from(SLOTS) * i).div_ceil(self.primaries) as u16;
        (edge(range), edge(range + 1) - 1)
    }

    /// Which range a node starts with.
    fn range_of(&self, node: usize) -> usize {
        if node < self.primaries { node } else { (node - self.primaries) / self.replicas }
    }

    /// How to start a node.
    pub(super) fn options(&self, base: &RedisOptions, node: usize) -> RedisOptions {
        let mut options = base
            .clone()
            .port(self.ports[node])
            .set("cluster-enabled", "yes")
            .set("cluster-config-file", "nodes.conf")
            .set("cluster-node-timeout", "500")
            .set("repl-diskless-sync-delay", "0")
            .set("repl-ping-replica-period", "1");
        options.cluster_nodes = Some(self.nodes_conf(node));
        options
    }

    fn nodes_conf(&self, myself: usize) -> String {
        let lines: String = (0..self.len()).map(|node| self.line(node, node == myself)).collect();
        format!("{lines}vars currentEpoch {} lastVoteEpoch 0\n", self.primaries)
    }

    fn line(&self, node: usize, myself: bool) -> String {
        let (port, range) = (self.ports[node], self.range_of(node));
        let address = format!("{} 127.0.0.1:{port}@{}", self.ids[node], port + BUS_OFFSET);
        let own = if myself { "myself," } else { "" };
        let epoch = range + 1;
        if node < self.primaries {
            let (first, last) = self.slots(range);
            format!("{address} {own}master - 0 0 {epoch} connected {first}-{last}\n")
        } else {
            format!("{address} {own}slave {} 0 0 {epoch} connected\n", self.ids[range])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_slots_without_overlap() {
        for primaries in 1..=7 {
            let layout = Layout { primaries, replicas: 0, ports: vec![], ids: vec![] };
            assert_eq!(layout.slots(0).0, 0);
            assert_eq!(layout.slots(primaries - 1).1, SLOTS - 1);
            assert!((1..primaries).all(|r| layout.slots(r).0 == layout.slots(r - 1).1 + 1));
        }
    }
}
