//! Limits open connections, in total and per address. A connection over the limit is closed before anything
//! is read.
//!
//! Loopback and trusted proxies are limited by the total only, because a proxy connects for all of its
//! clients. Failed accepts, for example without a free file descriptor, are counted, and logged at most once
//! in a while.

use crate::limits::{ACCEPT_LOGGED_EVERY, ACCEPT_RETRY};
use crate::metrics::Metrics;
use crate::security::client_ip::{TrustedProxies, rate_limit_key};
use crate::seldom::Seldom;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    pub(super) total: usize,
    pub(super) per_address: usize,
}

pub(super) struct Connections {
    limits: ConnectionLimits,
    trusted_proxies: TrustedProxies,
    metrics: Arc<Metrics>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    logged: Seldom,
}

/// An open connection, counted until this is dropped.
pub(super) struct Permit {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    pub(super) fn new(
        limits: ConnectionLimits,
        trusted_proxies: TrustedProxies,
        metrics: Arc<Metrics>,
    ) -> Arc<Connections> {
        Arc::new(Connections {
            limits,
            trusted_proxies,
            metrics,
            by_address: Mutex::default(),
            logged: Seldom::new(ACCEPT_LOGGED_EVERY),
        })
    }

    fn acquire(self: &Arc<Connections>, peer: SocketAddr) -> Option<Permit> {
        let (address, counters) = (rate_limit_key(peer.ip()), &self.metrics.limits);
        let mut by_address = self.by_address.lock();
        let open = by_address.get(&address).copied().unwrap_or(0);
        let is_exempt = address.is_loopback() || self.trusted_proxies.contains(peer.ip());
        let is_over = !is_exempt && open >= self.limits.per_address;
        if is_over || counters.connections.load(Relaxed) >= self.limits.total as i64 {
            drop(by_address);
            counters.connections_refused.fetch_add(1, Relaxed);
            self.logged.log(|| tracing::warn!(%address, limits = ?self.limits, "too many connections: new ones are closed at once"));
            return None;
        }
        by_address.insert(address, open + 1);
        counters.connections.fetch_add(1, Relaxed);
        Some(Permit { connections: self.clone(), address })
    }

    fn record_accept_error(&self, error: &io::Error) {
        self.metrics.limits.accept_errors.fetch_add(1, Relaxed);
        self.logged.log(|| {
            tracing::error!(
                "cannot accept connections: {error}; raise the limit of open files, or lower connections-max"
            );
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connections.metrics.limits.connections.fetch_sub(1, Relaxed);
        let mut by_address = self.connections.by_address.lock();
        match by_address.get_mut(&self.address) {
            Some(open) if *open > 1 => *open -= 1,
            _ => drop(by_address.remove(&self.address)),
        }
    }
}

/// A listener that limits its connections.
pub(super) struct LimitedListener {
    pub(super) listener: TcpListener,
    pub(super) connections: Arc<Connections>,
}

impl LimitedListener {
    /// The next connection within the limits. Accepts go on after an error: a free file descriptor comes back.
    pub(super) async fn accept(&self) -> (TcpStream, Permit, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    if let Some(permit) = self.connections.acquire(peer) {
                        return (stream, permit, peer);
                    }
                }
                Err(error) => {
                    self.connections.record_accept_error(&error);
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_loopback_is_limited_by_the_total() {
        let metrics = Arc::new(Metrics::default());
        let (limits, proxies) = (
            ConnectionLimits { total: 10, per_address: 4 },
            TrustedProxies::parse(&["10.0.0.9".into()]).unwrap(),
        );
        let connections = Connections::new(limits, proxies, metrics.clone());
        let acquire = |ip: [u8; 4]| {
            let found: Vec<Permit> =
                (0..20).map_while(|_| connections.acquire(SocketAddr::from((ip, 1)))).collect();
            found
        };
        let (far, here) = (acquire([10, 0, 0, 1]), acquire([127, 0, 0, 1]));
        assert_eq!((far.len(), here.len()), (4, 6));
        assert!(acquire([10, 0, 0, 2]).is_empty(), "the total is used up");
        drop(here);
        assert_eq!(acquire([10, 0, 0, 2]).len(), 4, "loopback has left");
        let proxied = acquire([10, 0, 0, 9]);
        assert_eq!(proxied.len(), 6, "a trusted proxy connects for many");
        drop((far, proxied));
        assert_eq!(metrics.limits.connections.load(Relaxed), 0);
        assert_eq!(metrics.limits.connections_refused.load(Relaxed), 5);
        assert!(connections.by_address.lock().is_empty(), "addresses without a connection are forgotten");
    }
}
