//! Routes commands to the server of a partition: the only one, or by the Cluster's map of slots and by
//! redirects.

use super::server::{ALWAYS, Gate, Server};
use super::slots::{ranges_of, slot_of};
use super::url::RedisUrl;
use crate::failure::Failure;
use crate::limits::{MAP_WAIT, REDIRECTS_MAX, SLOTS};
use parking_lot::Mutex;
use redis::{Cmd, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Finds servers and sends commands to them.
pub(crate) struct Router {
    url: RedisUrl,
    servers: Mutex<HashMap<(String, u16), Arc<Server>>>,
    /// Primary of each slot; empty on a single server.
    slots: Mutex<Vec<Option<Arc<Server>>>>,
    seeds: Vec<Arc<Server>>,
    /// When the map was last read; locked while it is being read.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
}

impl Router {
    pub(crate) fn new(url: RedisUrl) -> Result<Router, Failure> {
        let seeds = url.servers.iter().map(|info| Server::new(info.clone(), url.tls.clone()).map(Arc::new));
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        let slots = Mutex::new(if url.cluster { vec![None; SLOTS] } else { vec![] });
        Ok(Router { url, servers: Mutex::default(), slots, seeds, refreshed: Default::default() })
    }

    pub(crate) fn url(&self) -> &RedisUrl {
        &self.url
    }

    /// The slot of a partition, by the text in the braces; 0 on a single server.
    pub(crate) fn slot(&self, partition: &[u8]) -> u16 {
        if self.url.cluster { slot_of(partition) } else { 0 }
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
        if !self.url.cluster {
            return vec![self.seeds[0].clone()];
        }
        let mut servers: Vec<Arc<Server>> = Vec::new();
        for server in self.slots.lock().iter().flatten() {
            if !servers.iter().any(|other| Arc::ptr_eq(other, server)) {
                servers.push(server.clone());
            }
        }
        servers.sort_by(|a, b| a.name().cmp(b.name()));
        servers
    }

    /// The `n`-th text whose slot this server has, by the current map; any text on a single server.
    pub(crate) fn tag_on(&self, server: &Arc<Server>, n: usize) -> Option<String> {
        let slots = self.slots.lock();
        let is_on_server = |tag: &String| match slots.get(slot_of(tag.as_bytes()) as usize) {
            Some(Some(primary)) => Arc::ptr_eq(primary, server),
            Some(None) => false,
            None => true,
        };
        (0..SLOTS).map(|number| number.to_string()).filter(is_on_server).nth(n)
    }

    /// Sends a command to the slot's primary and follows redirects. Also returns the server that answered.
    /// Nothing is ever sent again after it may have been executed.
    pub(crate) async fn call(
        &self,
        slot: u16,
        cmd: &Cmd,
        gate: Gate<'_>,
    ) -> (Result<Value, Failure>, Arc<Server>) {
        if !self.url.cluster {
            let server = self.seeds[0].clone();
            return (server.call(cmd, gate).await, server);
        }
        let mut server = match self.primary(slot).await {
            Ok(server) => server,
            Err(failure) => return (Err(failure), self.seeds[0].clone()),
        };
        let mut result = server.call(cmd, gate).await;
        for _ in 0..REDIRECTS_MAX {
            let (to, has_moved) = match &result {
                Err(Failure::Moved { to }) => (to.clone(), true),
                Err(Failure::Ask { to }) => (to.clone(), false),
                _ => break,
            };
            server = match self.redirected(&server, to) {
                Ok(target) => target,
                Err(failure) => {
                    result = Err(failure);
                    break;
                }
            };
            result = if has_moved {
                self.slots.lock()[slot as usize] = Some(server.clone());
                server.call(cmd, gate).await
            } else {
                server.call_asking(cmd, gate).await
            };
        }
        if matches!(result, Err(Failure::Unreachable { .. } | Failure::NotYet { .. } | Failure::Lost { .. }))
        {
            // The map may be old. The outcome of this call stays what it is.
            let _ = self.refresh().await;
        }
        (result, server)
    }

    /// The server that `source` redirects to. An empty host means the source's own.
    fn redirected(&self, source: &Server, (host, port): (String, u16)) -> Result<Arc<Server>, Failure> {
        let host = if host.is_empty() { host_of(source) } else { host };
        self.server_at(&(host, port))
    }

    /// Whether replies of the slot's server are arriving.
    pub(crate) fn is_receiving(&self, slot: u16) -> bool {
        match self.url.cluster {
            true => self.slots.lock()[slot as usize].as_ref().is_some_and(|server| server.is_receiving()),
            false => self.seeds[0].is_receiving(),
        }
    }

    /// The server of a slot. Reads the map if the slot has none in it.
    pub(crate) async fn primary(&self, slot: u16) -> Result<Arc<Server>, Failure> {
        if !self.url.cluster {
            return Ok(self.seeds[0].clone());
        }
        if let Some(server) = self.slots.lock()[slot as usize].clone() {
            return Ok(server);
        }
        self.refresh().await?;
        let server = self.slots.lock()[slot as usize].clone();
        server.ok_or_else(|| Failure::NotYet { reason: format!("no server has slot {slot}") })
    }

    /// The same by the current map alone.
    pub(crate) fn cached_primary(&self, slot: u16) -> Option<Arc<Server>> {
        if !self.url.cluster {
            return Some(self.seeds[0].clone());
        }
        self.slots.lock()[slot as usize].clone()
    }

    fn server_at(&self, (host, port): &(String, u16)) -> Result<Arc<Server>, Failure> {
        let mut servers = self.servers.lock();
        if let Some(server) = servers.get(&(host.clone(), *port)) {
            return Ok(server.clone());
        }
        let server = Arc::new(Server::new(self.url.at(host, *port), self.url.tls.clone())?);
        servers.insert((host.clone(), *port), server.clone());
        Ok(server)
    }

    /// Reads the map of slots from the first server that answers. Concurrent callers share one reading.
    pub(crate) async fn refresh(&self) -> Result<(), Failure> {
        if !self.url.cluster {
            return Ok(());
        }
        let asked = Instant::now();
        let mut refreshed = self.refreshed.lock().await;
        if refreshed.is_some_and(|at| at > asked) {
            return Ok(());
        }
        let discovered: Vec<Arc<Server>> = self.servers.lock().values().cloned().collect();
        let mut last = Failure::Unreachable { reason: "no server of the cluster is known".into() };
        // Connected servers first: they are likely to answer.
        let all = || self.seeds.iter().chain(&discovered);
        for server in all().filter(|server| server.is_open()).chain(all().filter(|server| !server.is_open()))
        {
            let mut slots = redis::cmd("CLUSTER");
            slots.arg("SLOTS");
            match tokio::time::timeout(MAP_WAIT, server.call(&slots, ALWAYS)).await {
                Ok(Ok(map)) => match self.adopt(server, map) {
                    Ok(()) => {
                        *refreshed = Some(Instant::now());
                        return Ok(());
                    }
                    Err(failure) => last = failure,
                },
                Ok(Err(failure)) => last = failure,
                Err(_) => {
                    last = Failure::Unreachable { reason: format!("{} does not answer", server.name()) }
                }
            }
        }
        Err(last)
    }

    fn adopt(&self, source: &Server, map: Value) -> Result<(), Failure> {
        let mut slots: Vec<Option<Arc<Server>>> = vec![None; SLOTS];
        let ranges = ranges_of(&map);
        let ranges = ranges.ok_or_else(|| Failure::NotYet {
            reason: "the answer to CLUSTER SLOTS was not understood".into(),
        })?;
        for (range, host, port) in ranges {
            let server = self.redirected(source, (host, port))?;
            slots[range].fill(Some(server));
        }
        *self.slots.lock() = slots;
        Ok(())
    }
}

fn host_of(server: &Server) -> String {
    server.name().rsplit_once(':').map_or("127.0.0.1", |(host, _)| host).to_owned()
}
