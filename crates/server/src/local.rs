//! A server without tokens is for this machine; but a browser on it runs the pages of strangers.
//!
//! Two ways lead from such a page to us. It can let its own name point here, and is of our origin then: so the name by which
//! we are called must be one of this machine. And a browser sends simple requests to everybody and only keeps the answer from the
//! page: so a page must be ours or of a configured origin.
//! A proxy on this machine would let everybody in, so what a proxy passes on is refused. Sockets have origins of their own. Programs name no origin.

use crate::auth::Caller;
use crate::guard::Guard;
use crate::origins::Origins;
use crate::problem::Problem;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// The route whose origins are others.
const SOCKETS: &str = "/ws";

/// Headers by which proxies tell that they pass on what others asked for: the machine is not the caller's then, whatever its address.
const PROXIED: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Lets requests through that come from this machine, and from no page but ours and those of the origins.
#[derive(Clone)]
pub(crate) struct Local(pub(crate) Origins);

impl Guard for Local {
    fn pass(&self, request: &Request) -> Result<Option<Caller>, Box<Response>> {
        refusal(&self.0, request).map_or(Ok(None), |problem| Err(Box::new(problem.into_response())))
    }
}

/// Why a request may not pass.
fn refusal(origins: &Origins, request: &Request) -> Option<Problem> {
    // HTTP/2 names the host in the address of the request, HTTP/1 in a header. Browsers always do.
    let addressed = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let named = || request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes);
    let hosts = || addressed.into_iter().chain(named());
    if !hosts().all(is_local) {
        let message = "without tokens this server is for its own machine: call it localhost or 127.0.0.1, or configure tokens";
        return Some(Problem::new(StatusCode::FORBIDDEN, "host_not_allowed", message));
    }
    if let Some(name) = PROXIED.iter().find(|name| request.headers().contains_key(**name)) {
        let message = format!(
            "{name} says that this request came through a proxy, and without tokens this server is for its own machine; configure tokens"
        );
        return Some(Problem::new(StatusCode::FORBIDDEN, "proxy_not_allowed", message));
    }
    let origin = request.headers().get(ORIGIN)?;
    let passes = request.uri().path() == SOCKETS
        || origins.allow(Some(origin))
        || hosts().next().is_some_and(|host| is_of(origin.as_bytes(), host));
    if passes {
        return None;
    }
    let message = "this page may not call here; the server's origins names those that may";
    Some(Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message))
}

/// Whether a host, with or without a port, is a name of this machine.
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

/// Whether a page is from this very host and port.
fn is_of(origin: &[u8], host: &[u8]) -> bool {
    let place = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    place.is_some_and(|place| place.eq_ignore_ascii_case(host))
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
        assert!(is_of(b"http://localhost:7777", host) && is_of(b"https://LOCALHOST:7777", host));
        for other in ["http://localhost:8080", "http://127.0.0.1:7777", "null", "ftp://localhost:7777", ""] {
            assert!(!is_of(other.as_bytes(), host), "{other}");
        }
    }
}
