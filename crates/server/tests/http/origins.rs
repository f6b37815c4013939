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

#[tokio::test]
async fn without_tokens_a_name_of_another_machine_is_refused() {
    let server = Server::open().await;
    let address = server.address();
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1:7777", "[::1]:7777"] {
        assert_eq!(
            raw(address, &format!("GET /healthz HTTP/1.1\r\nHost: {host}")).await.status,
            200,
            "{host}"
        );
    }
    for host in ["evil.example", "localhost.evil.example:7777", "10.0.0.1", ""] {
        let refused = raw(address, &format!("POST /room HTTP/1.1\r\nHost: {host}")).await;
        assert_eq!(refused.problem(403), "host_not_allowed", "{host}");
    }
    let two = raw(address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example").await;
    assert!(matches!(two.status, 400 | 403), "{}", two.text());
    let addressed = raw(address, "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost").await;
    assert_eq!(addressed.problem(403), "host_not_allowed");
    // A program that names no host at all is none that a page could make.
    assert_eq!(raw(address, "GET /healthz HTTP/1.0").await.status, 200);
    let socket = handshake(address, "evil.example", "http://evil.example").await;
    assert_eq!(socket.problem(403), "host_not_allowed");
}

#[tokio::test]
async fn without_tokens_an_external_page_is_refused() {
    let origins = vec!["https://play.example".to_owned()];
    let server = Server::with(Settings { origins, ..loopback() }).await;
    let address = server.address();
    let post = async |origin: &str| {
        raw(address, &format!("POST /room HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}")).await
    };
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"] {
        assert_eq!(post(origin).await.problem(403), "origin_not_allowed", "{origin}");
    }
    for origin in [format!("http://{address}"), "https://play.example".to_owned()] {
        assert_eq!(post(&origin).await.status, 201, "{origin}");
    }
    // Sockets have origins of their own, which are all pages unless said otherwise.
    assert_eq!(handshake(address, "localhost", "https://evil.example").await.status, 101);
}

#[tokio::test]
async fn with_tokens_a_server_has_any_name() {
    let tokens = Tokens::new();
    let server = Server::with(tokens.settings()).await;
    let token = tokens.of(Role::ReadOnly);
    let lines =
        format!("Host: play.example\r\nOrigin: https://evil.example\r\nAuthorization: Bearer {token}");
    let answer =
        raw(server.address(), &format!("GET /v1/tenants/{TENANT}/reactors HTTP/1.1\r\n{lines}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}
