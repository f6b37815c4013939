//! One request on one connection.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// No answer of these tests takes longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// A request that was not sent yet.
pub(crate) struct Request {
    address: SocketAddr,
    head: String,
    body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(address: SocketAddr, method: &str, path: &str) -> Request {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        Request { address, head, body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Request {
        self.head += &format!("{name}: {value}\r\n");
        self
    }

    pub(crate) fn token(self, token: &str) -> Request {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, body: &Value) -> Request {
        self.header("Content-Type", "application/json").body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    pub(crate) async fn send(self) -> Answer {
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        self.send_over(stream).await
    }

    /// Sends it over a connection that is there.
    pub(crate) async fn send_over(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Answer {
        let head = format!("{}Content-Length: {}\r\n\r\n", self.head, self.body.len());
        let exchange = async {
            stream.write_all(head.as_bytes()).await.expect("the server reads the head");
            // A server that has seen enough may answer and close before it has read everything.
            let _ = stream.write_all(&self.body).await;
            let _ = stream.flush().await;
            let mut bytes = Vec::new();
            loop {
                match stream.read_buf(&mut bytes).await {
                    // A stream of events has no end: its head is the answer.
                    Ok(1..) if !is_stream(&bytes) => {}
                    Err(error) if bytes.is_empty() => panic!("no answer: {error}"),
                    _ => break bytes,
                }
            }
        };
        let bytes = tokio::time::timeout(ANSWER_WITHIN, exchange).await.expect("an answer in time");
        Answer::parse(&bytes)
    }
}

fn is_stream(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(bytes);
    head.split_once("\r\n\r\n").is_some_and(|(head, _)| head.contains("content-type: text/event-stream"))
}

impl Answer {
    /// Reads an answer whose connection ended.
    pub(crate) fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
        let head = std::str::from_utf8(&bytes[..end]).expect("a head of text");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let status = status.parse().expect("a status");
        Answer { status, headers, body: bytes[end + 4..].to_vec() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, after a look at the status.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() {
            return Value::Null;
        }
        let media_type = if status < 400 { "application/json" } else { "application/problem+json" };
        assert_eq!(self.header("content-type"), Some(media_type));
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The code of an error, after a check of status and members.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> String {
        let body = self.json(status);
        let members: Vec<&String> = body.as_object().expect("a problem is an object").keys().collect();
        assert_eq!(members, ["detail", "details", "error", "status", "title", "type"], "{body}");
        let is_text = |name: &str| body[name].as_str().is_some_and(|text| !text.is_empty());
        assert!(body["details"].is_object() && is_text("detail") && is_text("title"), "{body}");
        assert_ne!(body["title"], "Error", "the code has no title: {body}");
        let code = body["error"].as_str().expect("a code");
        assert_eq!((&body["status"], &body["type"]), (&status.into(), &format!("/docs#error-{code}").into()));
        code.to_owned()
    }
}
