//! DarkAges over HTTP: the stream of a zone's channel.

use crate::support::Server;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No event takes longer on a busy machine.
const WITHIN: Duration = Duration::from_secs(20);

/// A client of a stream.
struct Client {
    stream: TcpStream,
    text: String,
}

impl Client {
    async fn connect(server: &Server, zone: i32) -> Client {
        let mut stream = TcpStream::connect(server.address()).await.expect("it listens");
        let head =
            format!("GET /v1/darkages/zones/{zone}/stream HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut client = Client { stream, text: String::new() };
        client.until("\r\n\r\n").await;
        assert!(
            client.text.contains("200 OK") && client.text.contains("text/event-stream"),
            "{}",
            client.text
        );
        client
    }

    /// Reads until a text has come. `false` at the end of the connection.
    async fn until(&mut self, expected: &str) -> bool {
        let read = async {
            while !self.text.contains(expected) {
                let mut bytes = vec![0; 4_096];
                match self.stream.read(&mut bytes).await {
                    Ok(0) | Err(_) => return false,
                    Ok(count) => self.text.push_str(&String::from_utf8_lossy(&bytes[..count])),
                }
            }
            true
        };
        timeout(WITHIN, read).await.expect("in time")
    }
}

async fn publish(server: &Server, zone: i32, payload: Value) -> Value {
    let body = json!({"message_type": "broadcast", "source_zone": 7, "payload": payload});
    server.post(&format!("/v1/darkages/zones/{zone}/messages"), body).await.json(200)
}

#[tokio::test]
async fn messages_of_a_zone_arrive_and_those_of_others_do_not() {
    let server = Server::open().await;
    let (mut one, mut two) = (Client::connect(&server, 42).await, Client::connect(&server, 42).await);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("\nemberkeep_darkages_streams 2\n"), "{metrics}");
    publish(&server, 43, json!("elsewhere")).await;
    let sent = publish(&server, 42, json!({"text": "The gates are open"})).await;
    assert_eq!((&sent["target_zone"], &sent["source_zone"]), (&json!(42), &json!(7)));
    for client in [&mut one, &mut two] {
        assert!(client.until("The gates are open").await, "{}", client.text);
        assert!(client.text.contains("event: broadcast\ndata: {") && !client.text.contains("elsewhere"));
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_reason_when_the_server_ends() {
    let server = Server::open().await;
    let mut client = Client::connect(&server, 42).await;
    let ended = tokio::spawn(server.listening.end());
    assert!(client.until("event: closing\ndata: {\"reason\":\"the server ends").await, "{}", client.text);
    assert!(!client.until("nothing follows").await);
    timeout(WITHIN, ended).await.expect("in time").expect("no panic").expect("in order");
}
