//! A client's socket.

use super::rooms::Room;
use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};

/// How long a message may take before the benchmark gives up.
const WAIT: Duration = Duration::from_secs(60);

pub(super) struct WsClient(WebSocketStream<TcpStream>);

impl WsClient {
    /// Connects a device and joins a room.
    pub(super) async fn join(
        server: SocketAddr,
        device: &str,
        room: &Room,
        is_master: bool,
    ) -> Result<WsClient> {
        let mut client = WsClient::connect(server, "/ws").await?;
        let mut payload = json!({ "room_code": room.code, "device_id": device, "protocol_version": 1 });
        if is_master {
            payload["master_key"] = room.key.as_str().into();
        }
        client.send(&json!({ "type": "JOIN_ROOM", "payload": payload })).await?;
        client.expect("JOIN_OK").await?;
        Ok(client)
    }

    /// Connects and watches a system of Galaxy.
    pub(super) async fn watch(server: SocketAddr, system: &str) -> Result<WsClient> {
        let mut client = WsClient::connect(server, "/ws/galaxy").await?;
        client.send(&json!({ "type": "AUTHENTICATE" })).await?;
        client.expect("WELCOME").await?;
        client.send(&json!({ "type": "SUBSCRIBE", "payload": { "system_id": system } })).await?;
        Ok(client)
    }

    async fn connect(server: SocketAddr, path: &str) -> Result<WsClient> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().read_buffer_size(4096).write_buffer_size(0);
        let url = format!("ws://{server}{path}");
        let (socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
        Ok(WsClient(socket))
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<()> {
        self.send_text(message.to_string().into()).await
    }

    pub(super) async fn send_text(&mut self, text: Utf8Bytes) -> Result<()> {
        Ok(self.0.send(Message::Text(text)).await?)
    }

    /// The text of the next message.
    pub(super) async fn next(&mut self) -> Result<Utf8Bytes> {
        loop {
            match timeout(WAIT, self.0.next()).await.context("a message did not come")? {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Close(frame))) => bail!("the server ended a connection: {frame:?}"),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => bail!("a connection ended"),
            }
        }
    }

    /// The next message of a type; others are passed over.
    pub(super) async fn expect(&mut self, kind: &str) -> Result<Utf8Bytes> {
        self.expect_one_of(&[kind]).await
    }

    pub(super) async fn expect_one_of(&mut self, kinds: &[&str]) -> Result<Utf8Bytes> {
        loop {
            let text = self.next().await?;
            if kinds.iter().any(|kind| is(&text, kind)) {
                return Ok(text);
            }
            if is(&text, "ERROR") {
                bail!("expected {kinds:?}, received {text}");
            }
        }
    }
}

/// Whether a message is of a type. A server writes the type first, so nothing else needs to be read.
pub(super) fn is(text: &str, kind: &str) -> bool {
    text.strip_prefix("{\"type\":\"")
        .is_some_and(|rest| rest.strip_prefix(kind).is_some_and(|rest| rest.starts_with('"')))
}
