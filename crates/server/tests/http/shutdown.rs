//! Beginning and ending: TLS, replaced certificates, requests in flight.

use crate::support::{Answer, FIELD, Server, loopback};
use emberkeep_server::limits::SOCKET_JOIN_TIMEOUT;
use emberkeep_server::{Settings, Tls};
use emberkeep_testkit::{Certificates, require};
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::protocol::Message;

/// A connection that trusts these certificates' authority only.
async fn connect(address: SocketAddr, certificates: &Certificates) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(certificates.path("ca.pem")).expect("a certificate");
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(address).await?).await
}

#[tokio::test]
async fn tls_is_served_and_a_replaced_certificate_is_in_force_without_a_restart() {
    let Some(first) = require(Certificates::make()) else { return };
    let second = Certificates::make().expect("openssl worked a moment ago");
    let (certificate, key) = (first.path("server.pem"), first.path("server.key"));
    let tls = Some(Tls { certificate: certificate.clone(), key: key.clone() });
    let server = Server::with(Settings { tls, ..loopback() }).await;
    let stream = connect(server.address(), &first).await.expect("a trusted server");
    let answer = server.request("GET", "/healthz").send_over(stream).await;
    assert_eq!(answer.status, 200);
    assert!(connect(server.address(), &second).await.is_err(), "another authority's word counts for nothing");

    std::fs::copy(second.path("server.pem"), certificate).expect("the folder is ours");
    std::fs::copy(second.path("server.key"), key).expect("the folder is ours");
    let deadline = Instant::now() + Duration::from_secs(20);
    while connect(server.address(), &second).await.is_err() {
        assert!(Instant::now() < deadline, "the new certificate is never in force");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(connect(server.address(), &first).await.is_err());
}

#[tokio::test]
async fn sockets_are_served_over_tls() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let (certificate, key) = (certificates.path("server.pem"), certificates.path("server.key"));
    let server = Server::with(Settings { tls: Some(Tls { certificate, key }), ..loopback() }).await;
    let stream = connect(server.address(), &certificates).await.expect("a trusted server");
    let room = server.request("POST", "/room").send_over(stream).await.json(201);
    let stream = connect(server.address(), &certificates).await.expect("a trusted server");
    let url = format!("wss://{}/ws", server.address());
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("a socket");
    let payload = json!({"room_code": room["room_code"], "device_id": "phone", "protocol_version": 1});
    let join = json!({"type": "JOIN_ROOM", "payload": payload}).to_string();
    socket.send(Message::text(join)).await.expect("an open socket");
    let answer = loop {
        match socket.next().await.expect("an open socket").expect("a message") {
            Message::Text(text) => break text,
            _ => continue,
        }
    };
    assert!(answer.contains("\"JOIN_OK\""), "{answer}");
}

#[tokio::test]
async fn a_socket_that_has_not_joined_delays_no_end_and_hears_of_it() {
    let server = Server::open().await;
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let url = format!("ws://{}/ws", server.address());
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("a socket");
    // An answer to something else than a join: the server surely waits for the next message.
    socket.send(Message::text("{}")).await.expect("an open socket");
    socket.next().await.expect("an open socket").expect("a message");
    let begun = Instant::now();
    let (ended, message) = tokio::join!(server.listening.end(), socket.next());
    ended.expect("the store closes");
    let Some(Ok(Message::Close(Some(frame)))) = message else { panic!("{message:?}") };
    assert_eq!(u16::from(frame.code), 1001);
    assert!(begun.elapsed() < SOCKET_JOIN_TIMEOUT, "it waited for a message until {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_request_in_flight_finishes_before_the_end() {
    let server = Server::open().await;
    let (address, body) = (server.address(), "{\"monsterId\":1,\"maxHp\":1}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {FIELD}/monsters HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (begun, rest) = body.split_at(5);
    stream.write_all(format!("{head}{begun}").as_bytes()).await.unwrap();
    // Another request on another connection is answered, so the first one has surely arrived.
    assert_eq!(server.get("/healthz").await.status, 200);
    let Server { listening, store, .. } = server;
    let ending = tokio::spawn(listening.end());
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).await.is_ok() {
        assert!(Instant::now() < deadline, "it still takes connections");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!ending.is_finished(), "the end waits for the request");
    stream.write_all(rest.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(Answer::parse(&bytes).status, 201);
    ending.await.unwrap().expect("the store closes");
    assert!(
        store
            .scope(emberkeep_games::world::Tenant(uuid::Uuid::nil()))
            .transact(|_| Ok::<_, emberkeep_hot::Error>(()))
            .await
            .is_err()
    );
}
