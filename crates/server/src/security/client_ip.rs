//! The address of a client, through trusted reverse proxies.
//!
//! `X-Forwarded-For` is a list that every proxy appends to, so only its right end can be believed: entries
//! are read from the right while they are addresses of trusted proxies, and the first other one is the
//! client. From a peer that is not a trusted proxy the header is ignored, because any client can send it.

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

/// Networks of the trusted reverse proxies. Cheap to clone; empty by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedProxies(Arc<[Network]>);

/// An address range in CIDR notation. IPv4 is stored as its IPv6-mapped form, so that one comparison serves
/// both.
#[derive(Debug, Clone, Copy)]
struct Network {
    bits: u128,
    mask: u128,
}

/// A trusted proxy that is not an address or network.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not an address or a network; expected for example 10.0.0.7, 10.0.0.0/8 or fd00::/8")]
pub struct ProxyError {
    text: String,
}

/// Refuses what the setting `trusted_proxies` must not hold, as [`listen`](crate::listen) does.
pub fn check_proxies(texts: &[String]) -> Result<(), ProxyError> {
    TrustedProxies::parse(texts).map(drop)
}

impl TrustedProxies {
    pub(crate) fn parse(texts: &[String]) -> Result<TrustedProxies, ProxyError> {
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(TrustedProxies)
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let bits = mapped(address);
        self.0.iter().any(|network| bits & network.mask == network.bits)
    }

    /// The client of a request, as the key of rate limits.
    pub(crate) fn client(&self, extensions: &Extensions, headers: &HeaderMap) -> IpAddr {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
        rate_limit_key(self.forwarded(peer, headers))
    }

    fn forwarded(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        // Hop by hop: what the client wrote must not invalidate what a proxy appended to the same line.
        let values = headers.get_all("x-forwarded-for").iter().map(|value| value.as_bytes());
        let mut hops: Vec<&[u8]> = values.flat_map(|value| value.split(|byte| *byte == b',')).collect();
        while self.contains(client) {
            match hops.pop().and_then(hop_address) {
                Some(address) => client = address,
                None => break,
            }
        }
        client
    }
}

/// The address of a hop: `203.0.113.9`, `203.0.113.9:80`, `2001:db8::1` or `[2001:db8::1]:80`.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?.trim();
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

impl FromStr for Network {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Network, ProxyError> {
        let wrong = || ProxyError { text: text.to_owned() };
        let (address, prefix) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(width), |bits| bits.trim().parse::<u32>()).map_err(|_| wrong())?;
        if prefix > width {
            return Err(wrong());
        }
        let mask = u128::MAX.checked_shl(width - prefix).unwrap_or(0);
        Ok(Network { bits: mapped(address) & mask, mask })
    }
}

fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// IPv6 clients are rate-limited per /64 prefix, the block that a household usually owns.
pub(crate) fn rate_limit_key(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => IpAddr::V6((ip.to_bits() >> 64 << 64).into()),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_household_is_one_client() {
        let of = |ip: &str| rate_limit_key(ip.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(
            (of("::ffff:10.0.0.1"), of("10.0.0.1"), of("::1")),
            ("10.0.0.1".into(), "10.0.0.1".into(), "::1".into())
        );
    }

    fn client(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let forwarded: Vec<&[u8]> = forwarded.iter().map(|value| value.as_bytes()).collect();
        client_of_bytes(trusted, peer, &forwarded)
    }

    fn client_of_bytes(trusted: &[&str], peer: &str, forwarded: &[&[u8]]) -> String {
        let trusted: Vec<String> = trusted.iter().map(|text| (*text).to_owned()).collect();
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(value).unwrap());
        }
        let proxies = TrustedProxies::parse(&trusted).unwrap();
        proxies.forwarded(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_header_counts_from_trusted_proxies_only() {
        let chain = ["198.51.100.1, 203.0.113.9", "10.0.0.8"];
        assert_eq!(client(&[], "10.0.0.7", &chain), "10.0.0.7", "no proxy is trusted by default");
        assert_eq!(
            client(&["10.0.0.0/8"], "192.0.2.1", &chain),
            "192.0.2.1",
            "a client that sends the header"
        );
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.7", &chain), "203.0.113.9", "not what the client claims");
        assert_eq!(client(&["10.0.0.7"], "10.0.0.7", &chain), "10.0.0.8");
        assert_eq!(client(&["::1", "fd00::/8"], "::1", &["2001:db8::5, fd00::2"]), "2001:db8::5");
        assert_eq!(client(&["10.0.0.0/8"], "::ffff:10.0.0.7", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client(&["0.0.0.0/0"], "10.0.0.7", &chain), "198.51.100.1", "the last hop that is known");
        let trusted = ["10.0.0.0/8"];
        for (hop, address) in [
            ("203.0.113.9:80", "203.0.113.9"),
            ("[2001:db8::5]:80", "2001:db8::5"),
            ("[2001:db8::5]", "2001:db8::5"),
        ] {
            assert_eq!(client(&trusted, "10.0.0.7", &[hop]), address);
        }
        assert_eq!(client_of_bytes(&trusted, "10.0.0.7", &[b"\xff, 203.0.113.9"]), "203.0.113.9");
        for unreadable in ["unknown", "", "203.0.113.9:x"] {
            assert_eq!(client(&["10.0.0.0/8"], "10.0.0.7", &[unreadable]), "10.0.0.7", "{unreadable}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_network_is_refused() {
        for wrong in ["", "proxy.example", "10.0.0.0/33", "fd00::/129", "10.0.0.0/x", "10.0.0/8"] {
            assert!(TrustedProxies::parse(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
