//! A client of the party protocol: one socket, and what came through it.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, frame::coding::CloseCode};

/// How long a message may take. Nothing waits for it to pass.
const WAIT: Duration = Duration::from_secs(20);

const RECEIVE_BUFFER_BYTES: u32 = 32 * 1024;

/// What a server answers over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// A POST over a connection of its own.
pub(crate) async fn post(server: SocketAddr, path: &str, key: Option<&str>, body: &Value) -> Answer {
    request("POST", server, path, key, body).await
}

/// A request over a connection of its own.
pub(crate) async fn request(
    method: &str,
    server: SocketAddr,
    path: &str,
    key: Option<&str>,
    body: &Value,
) -> Answer {
    let body = body.to_string();
    let key = key.map(|key| format!("x-master-key: {key}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {server}\r\ncontent-type: application/json\r\n{key}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    let status = head[9..12].parse().expect("a status");
    Answer { status, body: serde_json::from_str(body).unwrap_or(Value::Null) }
}

/// A room, and what is played in it.
pub(crate) async fn room(server: SocketAddr, players: usize, items: usize) -> (String, String) {
    let created = post(server, "/room", None, &json!({})).await;
    assert_eq!(created.status, 201, "{created:?}");
    let text = |name: &str| created.body[name].as_str().expect("a text").to_owned();
    let (code, key) = (text("room_code"), text("master_key"));
    let players: Vec<Value> = (1..=players)
        .map(|n| json!({ "player_id": format!("p{n}"), "name": format!("Player {n}") }))
        .collect();
    let items: Vec<Value> = (1..=items)
        .map(|n| json!({ "item_id": format!("i{n}"), "reel_url": "https://reels.example/1", "k": 1, "true_sender_ids": ["s1"] }))
        .collect();
    let setup = json!({
        "senders": [{ "sender_id": "s1", "name": "Sam" }, { "sender_id": "s2", "name": "Sue" }],
        "players": players,
        "rounds": [{ "round_id": "r1", "items": items }],
    });
    let answer = post(server, &format!("/room/{code}/setup"), Some(&key), &setup).await;
    assert!(answer.status < 300, "{answer:?}");
    (code, key)
}

pub(crate) struct Phone {
    pub(crate) device: String,
    pub(crate) socket: WebSocketStream<TcpStream>,
    /// The last state that came.
    pub(crate) state: Value,
}

impl Phone {
    pub(crate) async fn connect(server: SocketAddr, device: &str) -> Phone {
        let socket = TcpSocket::new_v4().unwrap();
        // What the system holds for a client that does not read is what a server cannot see.
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
        let stream = socket.connect(server).await.unwrap();
        let url = format!("ws://{server}/ws");
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        Phone { device: device.to_owned(), socket, state: Value::Null }
    }

    /// Connects and joins.
    pub(crate) async fn join(server: SocketAddr, device: &str, code: &str, key: Option<&str>) -> Phone {
        let mut phone = Phone::connect(server, device).await;
        let mut payload = json!({ "room_code": code, "device_id": device, "protocol_version": 1 });
        if let Some(key) = key {
            payload["master_key"] = key.into();
        }
        phone.send("JOIN_ROOM", payload).await;
        phone.expect("JOIN_OK").await;
        phone
    }

    pub(crate) async fn send(&mut self, kind: &str, payload: Value) {
        self.send_text(json!({ "type": kind, "payload": payload }).to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: String) {
        self.socket.send(Message::text(text)).await.expect("the socket is open");
    }

    /// The next message; `Err` is how the connection ended.
    pub(crate) async fn next(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            let received = timeout(WAIT, self.socket.next()).await;
            match received.unwrap_or_else(|_| panic!("{} waits for a message", self.device)) {
                Some(Ok(Message::Text(text))) => return Ok(self.heard(&text)),
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    fn heard(&mut self, text: &str) -> Value {
        let message: Value = serde_json::from_str(text).expect("a message is JSON");
        match message["type"].as_str() {
            Some("JOIN_OK") => self.state = message["payload"]["state"].clone(),
            Some("STATE_SYNC_RESPONSE") => self.state = message["payload"].clone(),
            _ => {}
        }
        message
    }

    /// The next message of a type; others are passed over.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        self.expect_one_of(&[kind]).await
    }

    pub(crate) async fn expect_one_of(&mut self, kinds: &[&str]) -> Value {
        let deadline = Instant::now() + WAIT;
        let mut passed = Vec::new();
        while Instant::now() < deadline {
            match self.next().await {
                Ok(message) if kinds.iter().any(|kind| message["type"] == *kind) => return message,
                Ok(message) => passed.push(message),
                Err(frame) => panic!("{} waits for {kinds:?}, its connection ended: {frame:?}", self.device),
            }
        }
        panic!("{} waits for {kinds:?}, and heard {passed:?}", self.device)
    }

    /// Waits until the state is as asked for.
    pub(crate) async fn until(&mut self, what: &str, holds: impl Fn(&Value) -> bool) {
        while !holds(&self.state) {
            if let Err(frame) = self.next().await {
                panic!("{} waits for {what}, its connection ended: {frame:?}", self.device);
            }
        }
    }

    /// Sends, and waits for an answer of one of these types.
    pub(crate) async fn ask(&mut self, kind: &str, payload: Value, answers: &[&str]) -> Value {
        self.send(kind, payload).await;
        self.expect_one_of(answers).await
    }

    /// Waits for the end of the connection, and gives its code.
    pub(crate) async fn ended(&mut self) -> Option<u16> {
        let deadline = Instant::now() + WAIT;
        loop {
            match timeout_at(deadline, self.next()).await.expect("the connection ends") {
                Ok(_) => {}
                Err(frame) => return frame.map(|frame| u16::from(frame.code)),
            }
        }
    }

    pub(crate) async fn leave(mut self) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        let _ = self.socket.close(Some(frame)).await;
    }
}
