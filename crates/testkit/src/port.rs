//! Free loopback ports.
//!
//! Ports are drawn at random from below the kernel's range for outgoing connections: otherwise the
//! port of a server that a test has just killed could become some client's source port, and the
//! restart on the same port would fail now and then.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const PORT_FIRST: u64 = 12_000;
/// Below 22,768, so that the bus port is also below the outgoing range (32,768 and up).
const PORT_COUNT: u64 = 10_700;
/// Distance from a cluster node's port to its bus port.
const BUS_OFFSET: u16 = 10_000;
const TRIES_MAX: usize = 1_000;

/// A loopback port on which no process listens right now.
///
/// Another process may take it first: bind at once, and try another when that fails.
pub fn free_port() -> u16 {
    draw(is_free)
}

/// A free port whose cluster bus port (10,000 higher) is free as well.
pub fn free_port_with_bus() -> u16 {
    draw(|port| is_free(port) && is_free(port + BUS_OFFSET))
}

/// A port that is free at all of these addresses.
pub(crate) fn free_port_on(addresses: &[String]) -> u16 {
    draw(|port| addresses.iter().all(|address| TcpListener::bind((address.as_str(), port)).is_ok()))
}

fn draw(fits: impl Fn(u16) -> bool) -> u16 {
    (0..TRIES_MAX)
        .map(|_| (PORT_FIRST + random() % PORT_COUNT) as u16)
        .find(|port| fits(*port))
        .expect("one of a thousand random ports is free")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Differs between processes and calls; nothing more is asked of it.
pub(crate) fn random() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    mix(nanos ^ (u64::from(std::process::id()) << 32) ^ (call << 52))
}

/// The finisher of SplitMix64: spreads nearby inputs over all 64 bits.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
