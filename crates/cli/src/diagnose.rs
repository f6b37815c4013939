//! Why a store cannot be opened: looks at the server behind the URL, and names the usual mistake.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Time for each step of the look at a server.
const WAIT: Duration = Duration::from_secs(1);
const REDIS_PORT: u16 = 6379;

/// Advice for a URL that could not be opened; `problem` is the engine's error. `None` if no usual mistake is found.
pub(crate) fn advice(url: &str, problem: &str) -> Option<&'static str> {
    let (scheme, rest) = url.split_once("://")?;
    if scheme.ends_with("+cluster") && problem.contains("cluster support disabled") {
        return Some("this server is not part of a Cluster; write redis:// instead of redis+cluster://");
    }
    let place = rest.split('?').next()?.rsplit('@').next()?;
    let first = place.split('/').next()?.split(',').next()?;
    let answer = ask(first)?;
    let tls = scheme.starts_with("rediss") || scheme == "valkeys";
    if answer.starts_with(b"HTTP/") {
        Some("an HTTP server answers there, not Redis; check the port")
    } else if tls && (answer.starts_with(b"+PONG") || answer.starts_with(b"-")) {
        Some("the server does not speak TLS there; write redis:// instead of rediss://, or use its TLS port")
    } else if !tls && answer.starts_with(b"\x15\x03") {
        Some("the server speaks TLS there; write rediss:// instead of redis://")
    } else {
        None
    }
}

/// The first bytes that a server answers to a plain PING, which Redis, HTTP servers and TLS servers tell apart.
fn ask(place: &str) -> Option<Vec<u8>> {
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let place = if has_port { place.to_owned() } else { format!("{place}:{REDIS_PORT}") };
    let mut stream = TcpStream::connect_timeout(&place.to_socket_addrs().ok()?.next()?, WAIT).ok()?;
    stream.set_read_timeout(Some(WAIT)).ok()?;
    // An HTTP server answers a complete request line only.
    stream.write_all(b"PING / HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = vec![0; 16];
    let length = stream.read(&mut answer).ok()?;
    answer.truncate(length);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that answers everything with these bytes, once.
    fn server(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 64]);
            stream.write_all(answer).unwrap();
        });
        address
    }

    #[test]
    fn the_usual_mistakes_are_named() {
        for (scheme, answer, expected) in [
            ("redis", &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], Some("an HTTP server answers there")),
            ("redis+cluster", b"HTTP/1.1 400 Bad Request\r\n\r\n", Some("check the port")),
            ("rediss", b"-ERR wrong number of arguments\r\n", Some("does not speak TLS")),
            ("rediss", b"-NOAUTH Authentication required.\r\n", Some("write redis://")),
            ("redis", b"\x15\x03\x01\x00\x02\x02\x32", Some("write rediss://")),
            ("redis", b"-NOAUTH Authentication required.\r\n", None),
        ] {
            let url = format!("{scheme}://joe:s3cret@{}/0?wait=1", server(answer));
            let advised = advice(&url, "timed out");
            assert_eq!(advised.is_some(), expected.is_some(), "{url}: {advised:?}");
            assert!(advised.is_none_or(|advised| advised.contains(expected.unwrap())), "{url}: {advised:?}");
        }
        let advised = advice("redis+cluster://h:1", "ERR This instance has cluster support disabled");
        assert!(advised.unwrap().contains("write redis://"));
        assert_eq!(advice("redis://127.0.0.1:1", "refused"), None);
    }
}
