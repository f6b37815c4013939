//! A client of the Galaxy protocol, and a tick engine that a test holds.

use emberkeep_games::galaxy::{GalaxyState, StartRequest, TickRun, World};
use emberkeep_hot::Store;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

/// How long a message may take. Nothing waits for it to pass.
const WAIT: Duration = Duration::from_secs(20);
const RECEIVE_BUFFER_BYTES: u32 = 32 * 1024;

/// A request over a connection of its own: status and body.
pub(crate) async fn request(
    server: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {server}\r\ncontent-type: application/json\r\n{token}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    (head[9..12].parse().expect("a status"), serde_json::from_str(body).unwrap_or(Value::Null))
}

pub(crate) struct Pilot {
    name: String,
    socket: WebSocketStream<TcpStream>,
}

impl Pilot {
    pub(crate) async fn connect(server: SocketAddr, name: &str) -> Pilot {
        let socket = TcpSocket::new_v4().unwrap();
        // What the system holds for a client that does not read is what a server cannot see.
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
        let stream = socket.connect(server).await.unwrap();
        let (socket, _) =
            tokio_tungstenite::client_async(format!("ws://{server}/ws/galaxy"), stream).await.unwrap();
        Pilot { name: name.to_owned(), socket }
    }

    /// Connects, authenticates, and returns the welcome.
    pub(crate) async fn join(server: SocketAddr, name: &str, payload: Value) -> Pilot {
        let mut pilot = Pilot::connect(server, name).await;
        pilot.send("AUTHENTICATE", payload).await;
        pilot.expect("WELCOME").await;
        pilot
    }

    /// Connects, authenticates without a player, and watches a system: its first state.
    pub(crate) async fn watch(server: SocketAddr, name: &str, system: &str) -> (Pilot, Value) {
        let mut pilot = Pilot::join(server, name, json!({})).await;
        pilot.send("SUBSCRIBE", json!({ "system_id": system })).await;
        let state = pilot.expect("STATE").await;
        (pilot, state)
    }

    pub(crate) async fn send(&mut self, kind: &str, payload: Value) {
        self.send_text(json!({ "type": kind, "payload": payload }).to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: String) {
        self.socket.send(Message::text(text)).await.expect("the socket is open");
    }

    pub(crate) async fn send_binary(&mut self) {
        self.socket.send(Message::binary(vec![1, 2])).await.expect("the socket is open");
    }

    /// The next message; `Err` is how the connection ended.
    pub(crate) async fn next(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            let received = timeout(WAIT, self.socket.next()).await;
            match received.unwrap_or_else(|_| panic!("{} waits for a message", self.name)) {
                Some(Ok(Message::Text(text))) => {
                    return Ok(serde_json::from_str(&text).expect("a message is JSON"));
                }
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// The payload of the next message, which has this type.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        let message = self.next().await.unwrap_or_else(|end| panic!("{} ended: {end:?}", self.name));
        assert_eq!(message["type"], kind, "{}: {message}", self.name);
        message["payload"].clone()
    }

    /// Waits for the end of the connection, and gives its code.
    pub(crate) async fn ended(&mut self) -> Option<u16> {
        loop {
            if let Err(frame) = self.next().await {
                return frame.map(|frame| u16::from(frame.code));
            }
        }
    }

    pub(crate) async fn leave(mut self) {
        let _ = self.socket.close(None).await;
        while self.next().await.is_ok() {}
    }
}

/// A tick engine in which ships move by their velocity, one second a tick.
pub(crate) struct Engine {
    run: TickRun,
    world: World,
}

impl Engine {
    pub(crate) async fn start(store: &Store) -> Engine {
        let galaxy = GalaxyState::new(store.clone());
        let run = galaxy.tick_engine().start(StartRequest::new("test")).await.unwrap();
        let world = run.load().await.unwrap();
        Engine { run, world }
    }

    pub(crate) async fn tick(&mut self) -> i64 {
        let mut step = self.run.begin(Duration::from_secs(1)).await.unwrap();
        step.apply(&mut self.world);
        for ship in self.world.ships.values_mut() {
            let velocity = ship.motion.velocity;
            ship.motion.position.x += velocity.x;
            ship.motion.position.y += velocity.y;
            ship.motion.position.z += velocity.z;
        }
        self.run.commit(&mut step, &mut self.world).await.unwrap().tick
    }

    pub(crate) async fn reset(&mut self) {
        self.run.reset(None).await.unwrap();
        self.world = self.run.load().await.unwrap();
    }
}
