//! Protects a server without tokens against DNS rebinding, CSRF and accidental exposure through a proxy.
//!
//! Such a server is for its own machine, but a browser there runs pages of other sites. A page can point its
//! own host name at this machine and is then same-origin (DNS rebinding): `Host` must name this machine. A
//! browser sends simple requests to any server and only hides the answer (CSRF): `Origin` must be our own or
//! configured. A proxy on this machine would open the server to all its clients: requests with a proxy's headers
//! are refused. Programs send no `Origin`.

use super::cors::AllowedOrigins;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{HOST, ORIGIN};
use std::net::IpAddr;

/// WebSockets have their own list of origins.
const WEBSOCKET_PATH: &str = "/ws";

/// Headers that proxies add.
const PROXY_HEADERS: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Host,
    /// The header that a proxy added.
    Proxy(&'static str),
    Origin,
}

pub(crate) fn check(origins: &AllowedOrigins, request: &Request) -> Result<(), Refusal> {
    // A client may name the host in the request's URI, too, as to a proxy. Each name must be local.
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let headers = || request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes);
    let hosts = || authority.into_iter().chain(headers());
    if !hosts().all(is_local) {
        return Err(Refusal::Host);
    }
    if let Some(name) = PROXY_HEADERS.into_iter().find(|name| request.headers().contains_key(*name)) {
        return Err(Refusal::Proxy(name));
    }
    let Some(origin) = request.headers().get(ORIGIN) else { return Ok(()) };
    let passes = request.uri().path() == WEBSOCKET_PATH
        || origins.allow(Some(origin))
        || hosts().next().is_some_and(|host| is_same_origin(origin.as_bytes(), host));
    passes.then_some(()).ok_or(Refusal::Origin)
}

/// Whether a host, with or without a port, names this machine.
fn is_local(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (name, rest) = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']').unwrap_or((bracketed, "?")),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let ends_well = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    ends_well && (name.eq_ignore_ascii_case("localhost") || is_loopback(name))
}

fn is_loopback(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn is_same_origin(origin: &[u8], host: &[u8]) -> bool {
    let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_known_and_others_are_not() {
        for host in ["localhost", "LocalHost:7777", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:7777"] {
            assert!(is_local(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7777",
            "localhost:7777@evil.example",
            "[::1]evil.example",
            "[::1",
            "::1",
            "0.0.0.0:7777",
            "10.0.0.1",
            "[fe80::1]:80",
            "\u{e4}",
        ] {
            assert!(!is_local(host.as_bytes()), "{host}");
        }
        assert!(!is_local(b"\xff"));
    }

    #[test]
    fn a_page_is_ours_by_host_and_port() {
        let host = b"localhost:7777";
        assert!(
            is_same_origin(b"http://localhost:7777", host) && is_same_origin(b"https://LOCALHOST:7777", host)
        );
        for other in ["http://localhost:8080", "http://127.0.0.1:7777", "null", "ftp://localhost:7777", ""] {
            assert!(!is_same_origin(other.as_bytes(), host), "{other}");
        }
    }
}
