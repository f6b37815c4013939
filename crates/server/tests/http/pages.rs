//! Whose web pages may call, and by which names.

use crate::auth::Tokens;
use crate::support::{Answer, FIELD, Server, TENANT, loopback};
use emberkeep_server::Settings;
use emberkeep_server::auth::Role;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request with exactly these lines, and no body.
async fn raw(server: SocketAddr, lines: &str) -> Answer {
    let mut stream = TcpStream::connect(server).await.expect("the server listens");
    let head = format!("{lines}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("the server reads");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("an answer");
    Answer::parse(&bytes)
}

/// A handshake of a socket, with these lines besides.
async fn handshake(server: SocketAddr, host: &str, origin: &str) -> Answer {
    let mut stream = TcpStream::connect(server).await.expect("the server listens");
    let head = format!(
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("the server reads");
    let mut bytes = vec![0; 4096];
    let read = stream.read(&mut bytes).await.expect("an answer");
    Answer::parse(&bytes[..read])
}

#[tokio::test]
async fn pages_of_named_origins_may_call() {
    // As a person writes it; browsers spell it in small letters.
    let origins = vec!["https://Play.Example".to_owned()];
    let server = Server::with(Settings { origins, ..loopback() }).await;
    let ask = async |origin: &str| {
        let request = server.request("OPTIONS", &format!("{FIELD}/monsters")).header("Origin", origin);
        let request = request.header("Access-Control-Request-Method", "POST");
        request.header("Access-Control-Request-Headers", "authorization,content-type").send().await
    };
    let friend = ask("https://play.example").await;
    assert_eq!(friend.header("access-control-allow-origin"), Some("https://play.example"));
    assert!(
        friend.header("access-control-allow-headers").is_some_and(|names| names.contains("authorization"))
    );
    assert_eq!(ask("https://other.example").await.header("access-control-allow-origin"), None);
    let answer = server.request("GET", "/healthz").header("Origin", "https://play.example").send().await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://play.example"));
    let closed = Server::open().await;
    let answer = closed.request("GET", "/healthz").header("Origin", "https://play.example").send().await;
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_socket_of_a_page_that_is_not_named_is_refused() {
    let ws_origins = vec!["https://Play.Example".to_owned()];
    let server = Server::with(Settings { ws_origins, ..loopback() }).await;
    let address = server.address();
    assert_eq!(handshake(address, "localhost", "https://play.example").await.status, 101);
    let refused = handshake(address, "localhost", "https://evil.example").await;
    assert_eq!(refused.problem(403), "origin_not_allowed");
}
