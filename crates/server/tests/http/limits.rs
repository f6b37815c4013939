//! What one caller may take from the others: connections, heads, bodies; and connections that go on after an early answer.

use crate::support::{Answer, FIELD, Server, TENANT, loopback};
use emberkeep_server::Settings;
use emberkeep_server::limits::*;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No answer of these tests takes longer.
const SOON: Duration = Duration::from_secs(20);
const BODY: &str = "{\"characterId\":1,\"amount\":1}";

/// Reads one answer of a connection that goes on.
async fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    loop {
        let read = timeout(SOON, stream.read_buf(&mut bytes)).await.expect("an answer in time");
        assert!(read.expect("an open connection") > 0, "closed after {}", String::from_utf8_lossy(&bytes));
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let found = Answer::parse(&bytes);
        let length: usize = found.header("content-length").map_or(0, |text| text.parse().expect("a number"));
        if bytes.len() >= end + 4 + length {
            return found;
        }
    }
}

/// A request whose head and body are two packets.
async fn post(stream: &mut TcpStream, path: &str, headers: &str) -> Answer {
    let length = BODY.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("an open connection");
    // The server gets the time to answer before it has the body.
    tokio::time::sleep(Duration::from_millis(1)).await;
    stream.write_all(BODY.as_bytes()).await.expect("an open connection");
    answer(stream).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_goes_on_after_an_answer_that_precedes_the_body() {
    let server = Server::open().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let json = "Content-Type: application/json\r\n";
    let damage = |id: &str| format!("/v1/tenants/{TENANT}/monsters/{id}/damage");
    let early = [
        (damage("abc"), json.to_owned(), 422),
        (damage("1"), "Content-Type: text/plain\r\n".to_owned(), 415),
        ("/nothing".to_owned(), json.to_owned(), 404),
        (damage("1"), format!("{json}Origin: https://evil.example\r\n"), 403),
        ("/room".to_owned(), json.to_owned(), 201),
    ];
    for _ in 0..40 {
        for (path, headers, status) in &early {
            let answered = post(&mut stream, path, headers).await;
            assert_eq!(answered.status, *status, "{path}");
            assert_eq!(answered.header("connection"), None, "{path}");
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            assert_eq!(answer(&mut stream).await.status, 200, "after {path}");
        }
    }
}

#[tokio::test]
async fn an_answer_before_a_large_body_says_that_the_connection_ends() {
    let server = Server::open().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answered = answer(&mut stream).await;
    assert_eq!((answered.status, answered.header("connection")), (404, Some("close")));
    // A client that waits for leave to send its body is not asked for it.
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head =
        "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answered = answer(&mut stream).await;
    assert_eq!((answered.status, answered.header("connection")), (404, Some("close")));
}

#[tokio::test]
async fn a_head_is_bounded() {
    let server = Server::open().await;
    let head =
        |bytes: usize| format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}", "x".repeat(bytes));
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(format!("{}\r\n\r\n", head(HEAD_BYTES_MAX / 2)).as_bytes()).await.unwrap();
    assert_eq!(answer(&mut stream).await.status, 200);
    // It has no end, and is refused all the same: no more is kept of it.
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let _ = stream.write_all(head(2 * HEAD_BYTES_MAX).as_bytes()).await;
    assert_eq!(answer(&mut stream).await.status, 431);
}

/// What `/metrics` says of a name, over a connection that is there.
async fn metric(stream: &mut TcpStream, name: &str) -> f64 {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let page = answer(stream).await.text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)).expect("the metric is there");
    line.trim().parse().expect("a number")
}

#[tokio::test]
async fn one_connection_too_many_is_closed_at_once() {
    let server = Server::with(Settings { connections_max: 5, ..loopback() }).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(TcpStream::connect(server.address()).await.unwrap());
    }
    assert_eq!(metric(&mut open[0], "emberkeep_connections ").await, 5.0);
    let mut refused = TcpStream::connect(server.address()).await.unwrap();
    let read = timeout(SOON, refused.read(&mut [0; 1])).await.expect("it is closed at once");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert_eq!(metric(&mut open[0], "emberkeep_connections_refused_total ").await, 1.0);
    open.truncate(3);
    let until = tokio::time::Instant::now() + SOON;
    while metric(&mut open[0], "emberkeep_connections ").await > 3.0 {
        assert!(tokio::time::Instant::now() < until, "those that left are still counted");
    }
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_bodies_are_bounded_in_sum() {
    let server = Server::open().await;
    let begin = async |address: SocketAddr| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {FIELD}/monsters HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {BODY_BYTES_MAX}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&vec![b' '; BODY_BYTES_MAX - 1]).await;
        stream
    };
    let (fit, more) = (BODIES_BYTES_MAX / BODY_BYTES_MAX, 20);
    let mut open = Vec::new();
    for _ in 0..fit + more {
        open.push(begin(server.address()).await);
    }
    let mut probe = TcpStream::connect(server.address()).await.unwrap();
    let until = tokio::time::Instant::now() + SOON;
    while metric(&mut probe, "emberkeep_bodies_refused_total ").await < (more - 1) as f64 {
        assert!(tokio::time::Instant::now() < until, "{more} bodies beyond the bound are kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(metric(&mut probe, "emberkeep_body_bytes ").await <= BODIES_BYTES_MAX as f64);
    // Requests that arrive at once are answered meanwhile.
    let body = serde_json::json!({"monsterId": 1, "maxHp": 1});
    server.post(&format!("{FIELD}/monsters"), body).await.json(201);
    drop(open);
    let until = tokio::time::Instant::now() + SOON;
    while metric(&mut probe, "emberkeep_body_bytes ").await > 0.0 {
        assert!(tokio::time::Instant::now() < until, "bodies that were given up are still counted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_connection_of_http_2_is_closed_at_once() {
    let server = Server::open().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    // The preface, and settings without any.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    // The client learns it from the closed connection; a reset is one, too.
    let _ = timeout(SOON, stream.read_to_end(&mut answer)).await.expect("the connection is closed");
    assert!(!answer.starts_with(b"\0"), "a frame of HTTP/2: {answer:?}");
    assert_eq!(server.get("/healthz").await.status, 200);
}
