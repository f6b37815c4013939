//! Which server a partition lives on: the one there is, or the Cluster's map of slots, followed by redirects.

use crate::cluster::server::{ALWAYS, Gate, Server};
use crate::cluster::url::RedisUrl;
use crate::failure::Failure;
use crate::limits::{MAP_WAIT, REDIRECTS_MAX, SLOTS};
use crate::script;
use parking_lot::Mutex;
use redis::{Cmd, Value};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

/// Finds servers and sends commands to them.
pub(crate) struct Router {
    address: RedisUrl,
    nodes: Mutex<HashMap<(String, u16), Arc<Server>>>,
    /// Primary of each slot; empty on a single server.
    slots: Mutex<Vec<Option<Arc<Server>>>>,
    seeds: Vec<Arc<Server>>,
    /// When the map was last read; held while it is.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
}

impl Router {
    pub(crate) fn new(address: RedisUrl) -> Result<Router, Failure> {
        let seeds =
            address.nodes.iter().map(|info| Server::new(info.clone(), address.tls.clone()).map(Arc::new));
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        let slots = Mutex::new(if address.cluster { vec![None; SLOTS] } else { vec![] });
        Ok(Router { address, nodes: Mutex::default(), slots, seeds, refreshed: Default::default() })
    }

    pub(crate) fn address(&self) -> &RedisUrl {
        &self.address
    }

    /// The slot of a partition, by the text in the braces. Without meaning on a single server.
    pub(crate) fn slot(&self, partition: &[u8]) -> u16 {
        if self.address.cluster { slot_of(partition) } else { 0 }
    }

    /// The slot of a rendered key, by the text in its first braces.
    pub(crate) fn slot_of_key(&self, key: &[u8]) -> u16 {
        let tag = key.iter().position(|b| *b == b'{').and_then(|open| {
            let close = key[open + 1..].iter().position(|b| *b == b'}')?;
            (close > 0).then(|| &key[open + 1..open + 1 + close])
        });
        self.slot(tag.unwrap_or(key))
    }

    /// Every primary, in a fixed order.
    pub(crate) fn primaries(&self) -> Vec<Arc<Server>> {
        if !self.address.cluster {
            return vec![self.seeds[0].clone()];
        }
        let mut nodes: Vec<Arc<Server>> = Vec::new();
        for node in self.slots.lock().iter().flatten() {
            if !nodes.iter().any(|known| Arc::ptr_eq(known, node)) {
                nodes.push(node.clone());
            }
        }
        nodes.sort_by(|a, b| a.name().cmp(b.name()));
        nodes
    }

    /// The `n`-th text whose slot lives on this server, as far as we know; any text on a single server.
    pub(crate) fn tag_on(&self, node: &Arc<Server>, n: usize) -> Option<String> {
        let slots = self.slots.lock();
        let is_there = |tag: &String| match slots.get(slot_of(tag.as_bytes()) as usize) {
            Some(Some(there)) => Arc::ptr_eq(there, node),
            Some(None) => false,
            None => true,
        };
        (0..SLOTS).map(|number| number.to_string()).filter(is_there).nth(n)
    }

    /// Sends a command to the slot's primary, following redirects; also tells who answered. Nothing is ever sent
    /// again after it may have been executed.
    pub(crate) async fn call(
        &self,
        slot: u16,
        cmd: &Cmd,
        gate: Gate<'_>,
    ) -> (Result<Value, Failure>, Arc<Server>) {
        if !self.address.cluster {
            let node = self.seeds[0].clone();
            return (node.call(cmd, gate).await, node);
        }
        let mut node = match self.primary(slot).await {
            Ok(node) => node,
            Err(failure) => return (Err(failure), self.seeds[0].clone()),
        };
        let mut result = node.call(cmd, gate).await;
        for _ in 0..REDIRECTS_MAX {
            result = match result {
                Err(Failure::Moved { to }) => match self.redirected(&node, to) {
                    Ok(other) => {
                        node = other;
                        self.slots.lock()[slot as usize] = Some(node.clone());
                        node.call(cmd, gate).await
                    }
                    Err(failure) => Err(failure),
                },
                Err(Failure::Ask { to }) => match self.redirected(&node, to) {
                    Ok(other) => {
                        node = other;
                        node.call_asking(cmd, gate).await
                    }
                    Err(failure) => Err(failure),
                },
                other => {
                    result = other;
                    break;
                }
            };
        }
        if matches!(result, Err(Failure::Unreachable { .. } | Failure::NotYet { .. } | Failure::Lost { .. }))
        {
            // The map may be old: ask somebody who answers. The outcome of this call stays what it is.
            let _ = self.refresh().await;
        }
        (result, node)
    }

    /// The node that `teller` redirects to. An empty host means the teller's own.
    fn redirected(&self, teller: &Server, (host, port): (String, u16)) -> Result<Arc<Server>, Failure> {
        let host = if host.is_empty() { host_of(teller) } else { host };
        self.node_at(&(host, port))
    }

    /// Whether replies of the slot's server are arriving.
    pub(crate) fn is_receiving(&self, slot: u16) -> bool {
        match self.address.cluster {
            true => self.slots.lock()[slot as usize].as_ref().is_some_and(|node| node.is_receiving()),
            false => self.seeds[0].is_receiving(),
        }
    }

    /// The server that serves a slot, as far as we know.
    pub(crate) async fn primary(&self, slot: u16) -> Result<Arc<Server>, Failure> {
        if !self.address.cluster {
            return Ok(self.seeds[0].clone());
        }
        if let Some(node) = self.slots.lock()[slot as usize].clone() {
            return Ok(node);
        }
        self.refresh().await?;
        let node = self.slots.lock()[slot as usize].clone();
        node.ok_or_else(|| Failure::NotYet { reason: format!("nobody serves slot {slot}") })
    }

    /// The same without asking: `None` = not known.
    pub(crate) fn known_primary(&self, slot: u16) -> Option<Arc<Server>> {
        if !self.address.cluster {
            return Some(self.seeds[0].clone());
        }
        self.slots.lock()[slot as usize].clone()
    }

    fn node_at(&self, (host, port): &(String, u16)) -> Result<Arc<Server>, Failure> {
        let mut nodes = self.nodes.lock();
        if let Some(node) = nodes.get(&(host.clone(), *port)) {
            return Ok(node.clone());
        }
        let node = Arc::new(Server::new(self.address.at(host, *port), self.address.tls.clone())?);
        nodes.insert((host.clone(), *port), node.clone());
        Ok(node)
    }

    /// Reads the map of slots from the first server that knows it. Many who want it at once share one reading.
    pub(crate) async fn refresh(&self) -> Result<(), Failure> {
        if !self.address.cluster {
            return Ok(());
        }
        let asked = Instant::now();
        let mut refreshed = self.refreshed.lock().await;
        if refreshed.is_some_and(|at| at > asked) {
            return Ok(());
        }
        let known: Vec<Arc<Server>> = self.nodes.lock().values().cloned().collect();
        let mut last = Failure::Unreachable { reason: "no server of the cluster is known".into() };
        // Those we are connected to first: they are likely to answer.
        let all = || self.seeds.iter().chain(&known);
        for node in all().filter(|node| node.is_open()).chain(all().filter(|node| !node.is_open())) {
            let mut slots = redis::cmd("CLUSTER");
            slots.arg("SLOTS");
            match tokio::time::timeout(MAP_WAIT, node.call(&slots, ALWAYS)).await {
                Ok(Ok(map)) => match self.adopt(node, map) {
                    Ok(()) => {
                        *refreshed = Some(Instant::now());
                        return Ok(());
                    }
                    Err(failure) => last = failure,
                },
                Ok(Err(failure)) => last = failure,
                Err(_) => last = Failure::Unreachable { reason: format!("{} does not answer", node.name()) },
            }
        }
        Err(last)
    }

    fn adopt(&self, teller: &Server, map: Value) -> Result<(), Failure> {
        let mut slots: Vec<Option<Arc<Server>>> = vec![None; SLOTS];
        let ranges = ranges_of(&map);
        let ranges = ranges.ok_or_else(|| Failure::NotYet {
            reason: "the answer to CLUSTER SLOTS was not understood".into(),
        })?;
        for (range, host, port) in ranges {
            let node = self.redirected(teller, (host, port))?;
            slots[range].fill(Some(node));
        }
        *self.slots.lock() = slots;
        Ok(())
    }
}

fn host_of(node: &Server) -> String {
    node.name().rsplit_once(':').map_or("127.0.0.1", |(host, _)| host).to_owned()
}

/// Slots, and host and port of their primary. `None` when the answer is not one of CLUSTER SLOTS: half a map would send
/// commands to the wrong servers for as long as it is kept.
pub(crate) fn ranges_of(map: &Value) -> Option<Vec<(RangeInclusive<usize>, String, u16)>> {
    let Value::Array(ranges) = map else { return None };
    ranges.iter().map(range_of).collect()
}

fn range_of(range: &Value) -> Option<(RangeInclusive<usize>, String, u16)> {
    let Value::Array(parts) = range else { return None };
    let [Value::Int(from), Value::Int(to), Value::Array(primary), ..] = &parts[..] else { return None };
    let [host, Value::Int(port), ..] = &primary[..] else { return None };
    let host = if *host == Value::Nil { String::new() } else { script::text(host) };
    let (from, to) = (usize::try_from(*from).ok()?, usize::try_from(*to).ok()?);
    (from <= to && to < SLOTS).then_some((from..=to, host, u16::try_from(*port).ok()?))
}

/// Redis Cluster's slot of a tag: CRC16 (XMODEM) modulo 16384.
fn slot_of(tag: &[u8]) -> u16 {
    let mut crc: u16 = 0;
    for byte in tag {
        crc ^= (*byte as u16) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
        }
    }
    crc % SLOTS as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(slot_of(b"123456789"), 12_739, "the example of the Cluster specification");
        assert_eq!(slot_of(b"foo"), 12_182);
    }
}
