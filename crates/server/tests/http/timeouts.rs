//! Requests that never arrive: their connections end, and those of sockets go on.

use crate::support::{Answer, FIELD, Server, loopback};
use emberkeep_server::{Settings, Timeouts};
use futures_util::StreamExt as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What these servers wait for.
const SHORT: Duration = Duration::from_millis(300);
/// A connection that is still there by then is there for ever.
const FOREVER: Duration = Duration::from_secs(20);

async fn impatient() -> Server {
    Server::with(Settings { timeouts: Timeouts { head: SHORT, body: SHORT }, ..loopback() }).await
}

/// Says something, and gives what came until the server ended the connection.
async fn say_and_wait(server: SocketAddr, text: &str) -> Vec<u8> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(server).await.expect("the server listens");
    stream.write_all(text.as_bytes()).await.expect("the server reads");
    let mut bytes = Vec::new();
    let ended = timeout(FOREVER, stream.read_to_end(&mut bytes)).await;
    assert!(ended.is_ok(), "after {text:?} the connection is never ended");
    assert!(begun.elapsed() >= SHORT, "{text:?} was not waited for");
    bytes
}

#[tokio::test]
async fn a_connection_without_a_whole_head_is_ended() {
    let server = impatient().await;
    // Nothing; a beginning; a head without its end; and a connection that rests after an answer.
    for begun in ["", "P", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        say_and_wait(server.address(), begun).await;
    }
    let answered = say_and_wait(server.address(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(Answer::parse(&answered).status, 200);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_refused() {
    let server = impatient().await;
    let head = "HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n";
    for begun in ["", "{\"monsterId\":"] {
        let answer = say_and_wait(server.address(), &format!("POST {FIELD}/monsters {head}{begun}")).await;
        assert_eq!(Answer::parse(&answer).problem(408), "body_too_late");
    }
    let document = server.get("/openapi.json").await.json(200);
    for example in crate::support::examples(&document).iter().filter(|example| example.body.is_some()) {
        assert!(example.operation["responses"]["408"].is_object(), "{example}");
    }
}

#[tokio::test]
async fn a_socket_may_be_silent_for_longer() {
    let server = impatient().await;
    let stream = TcpStream::connect(server.address()).await.expect("the server listens");
    let url = format!("ws://{}/ws", server.address());
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("a socket");
    assert!(timeout(SHORT * 4, socket.next()).await.is_err(), "a time-out of requests ended a socket");
}
