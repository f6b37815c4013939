//! Connections are counted: in sum and by address. One too many is closed at once, before anything of it is read.
//!
//! A proxy on this machine speaks for all of its clients, so that loopback is bounded by the sum only. Connections that the system
//! cannot give us, such as for want of file descriptors, are counted and logged, at most once in a while.

use crate::extract::household;
use crate::limits::ACCEPT_LOGGED_EVERY;
use crate::metrics::Metrics;
use axum::extract::connect_info::Connected;
use axum_server::{AddrListener, Address};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) sum: usize,
    pub(super) per_address: usize,
}

/// The open connections.
pub(super) struct Connections {
    bound: Bound,
    metrics: Arc<Metrics>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    logged: Mutex<Option<Instant>>,
}

/// An open connection, counted until this is dropped.
pub(super) struct Permit {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    pub(super) fn new(bound: Bound, metrics: Arc<Metrics>) -> Arc<Connections> {
        Arc::new(Connections { bound, metrics, by_address: Mutex::default(), logged: Mutex::default() })
    }

    fn admit(self: &Arc<Connections>, peer: SocketAddr) -> Option<Permit> {
        let (address, bounds) = (household(peer.ip()), &self.metrics.bounds);
        let mut by_address = self.by_address.lock();
        let open = by_address.get(&address).copied().unwrap_or(0);
        let is_over = !address.is_loopback() && open >= self.bound.per_address;
        if is_over || bounds.connections.load(Relaxed) >= self.bound.sum as i64 {
            drop(by_address);
            bounds.connections_refused.fetch_add(1, Relaxed);
            self.log(|| tracing::warn!(%address, bound = ?self.bound, "too many connections: some are closed at once"));
            return None;
        }
        by_address.insert(address, open + 1);
        bounds.connections.fetch_add(1, Relaxed);
        Some(Permit { connections: self.clone(), address })
    }

    fn failed(&self, error: &io::Error) {
        self.metrics.bounds.accept_errors.fetch_add(1, Relaxed);
        self.log(|| {
            tracing::error!(
                "cannot accept connections: {error}; raise the limit of open files, or lower connections-max"
            );
        });
    }

    /// Logs, unless it did so a moment ago.
    fn log(&self, line: impl FnOnce()) {
        let (mut logged, now) = (self.logged.lock(), Instant::now());
        if logged.is_none_or(|last| now.duration_since(last) >= ACCEPT_LOGGED_EVERY) {
            *logged = Some(now);
            line();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connections.metrics.bounds.connections.fetch_sub(1, Relaxed);
        let mut by_address = self.connections.by_address.lock();
        match by_address.get_mut(&self.address) {
            Some(open) if *open > 1 => *open -= 1,
            _ => drop(by_address.remove(&self.address)),
        }
    }
}

/// A listener that counts.
pub(super) struct Counting {
    pub(super) listener: TcpListener,
    pub(super) connections: Arc<Connections>,
}

/// The address of a client, and of a listener that counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(SocketAddr);

impl Address for Peer {
    type Stream = (TcpStream, Permit);
    type Listener = Counting;
}

impl Connected<Peer> for SocketAddr {
    fn connect_info(peer: Peer) -> SocketAddr {
        peer.0
    }
}

impl AddrListener<(TcpStream, Permit), Peer> for Counting {
    async fn bind_to(_: Peer) -> io::Result<Counting> {
        // It would not know its bounds. The server is only ever given a listener.
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn accept_stream(&self) -> io::Result<((TcpStream, Permit), Peer)> {
        loop {
            let (stream, peer) =
                self.listener.accept().await.inspect_err(|error| self.connections.failed(error))?;
            if let Some(permit) = self.connections.admit(peer) {
                return Ok(((stream, permit), Peer(peer)));
            }
        }
    }

    fn get_local_addr(&self) -> io::Result<Peer> {
        self.listener.local_addr().map(Peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_loopback_is_bounded_by_the_sum() {
        let metrics = Arc::new(Metrics::default());
        let connections = Connections::new(Bound { sum: 10, per_address: 4 }, metrics.clone());
        let admit = |ip: [u8; 4]| {
            let found: Vec<Permit> =
                (0..20).map_while(|_| connections.admit(SocketAddr::from((ip, 1)))).collect();
            found
        };
        let (far, here) = (admit([10, 0, 0, 1]), admit([127, 0, 0, 1]));
        assert_eq!((far.len(), here.len()), (4, 6));
        assert!(admit([10, 0, 0, 2]).is_empty(), "the sum is used up");
        drop(here);
        assert_eq!(admit([10, 0, 0, 2]).len(), 4, "loopback has left");
        drop(far);
        assert_eq!(metrics.bounds.connections.load(Relaxed), 0);
        assert_eq!(metrics.bounds.connections_refused.load(Relaxed), 4);
        assert!(connections.by_address.lock().is_empty(), "addresses without a connection are forgotten");
    }
}
