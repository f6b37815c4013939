//! The cluster as one node sees it.

use crate::redis_server::RedisServer;
use crate::reply::Reply;
use crate::resp::Resp;

/// A node's answer to CLUSTER SLOTS.
#[derive(Debug)]
pub(super) struct View {
    ranges: Vec<Range>,
}

#[derive(Debug)]
struct Range {
    first: i64,
    last: i64,
    primary_port: u16,
    replica_ports: Vec<u16>,
}

impl View {
    /// What `node` sees, or `None` when it does not answer.
    pub(super) fn of(node: &RedisServer) -> Option<Self> {
        let mut client = Resp::connect(node.address()).ok()?;
        match client.try_call(&["CLUSTER", "SLOTS"]).ok()? {
            Reply::Array(ranges) => Some(Self { ranges: ranges.iter().map(Range::new).collect() }),
            _ => None,
        }
    }

    /// The port of the node that serves a slot.
    pub(super) fn primary_port(&self, slot: u16) -> Option<u16> {
        let slot = i64::from(slot);
        self.ranges.iter().find(|r| r.first <= slot && slot <= r.last).map(|r| r.primary_port)
    }

    /// How many different replicas it knows.
    pub(super) fn replicas(&self) -> usize {
        let mut ports: Vec<u16> = self.ranges.iter().flat_map(|r| r.replica_ports.clone()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.len()
    }
}

impl Range {
    /// From `[first, last, [ip, port, …], [ip, port, …]…]`, the primary first.
    fn new(reply: &Reply) -> Self {
        let items = reply.items();
        let mut ports = items[2..].iter().map(|node| node.items()[1].int() as u16);
        Self {
            first: items[0].int(),
            last: items[1].int(),
            primary_port: ports.next().expect("a range has a primary"),
            replica_ports: ports.collect(),
        }
    }
}
