//! Requests over connections that stay open, with as little work on the client's side as can be: both sides share the cores.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A connection that stays open.
pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A request as it is sent.
pub(super) fn request(path: &str, key: Option<&str>, body: &str) -> Vec<u8> {
    let key = key.map(|key| format!("x-master-key: {key}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{key}content-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

impl Connection {
    pub(super) async fn open(server: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, read: Vec::with_capacity(4096) })
    }

    /// Sends, and waits for the whole answer: its status, and its body in the buffer.
    pub(super) async fn ask(&mut self, request: &[u8]) -> Result<(u16, &[u8])> {
        self.stream.write_all(request).await?;
        self.read.clear();
        loop {
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server closed the connection");
            if let Some((status, from, to)) = whole(&self.read)? {
                return Ok((status, &self.read[from..to]));
            }
        }
    }
}

/// Status, begin and end of the body, when all of it is there.
fn whole(read: &[u8]) -> Result<Option<(u16, usize, usize)>> {
    let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&read[..end])?;
    let status = head.get(9..12).and_then(|status| status.parse().ok()).context("no status")?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let to = end + 4 + length.unwrap_or(0);
    Ok((read.len() >= to).then_some((status, end + 4, to)))
}

/// One request over a connection of its own.
pub(super) async fn post(server: SocketAddr, path: &str, key: Option<&str>, body: &Value) -> Result<Value> {
    let mut connection = Connection::open(server).await?;
    let (status, answer) = connection.ask(&request(path, key, &body.to_string())).await?;
    if !(200..300).contains(&status) {
        bail!("{path} answered {status}: {}", String::from_utf8_lossy(answer));
    }
    Ok(if answer.is_empty() { Value::Null } else { serde_json::from_slice(answer)? })
}

/// Requests per second of so many callers, each with its own connection and requests, which it makes in turn.
pub(super) async fn rate(server: SocketAddr, requests: Vec<Vec<Vec<u8>>>, time: Duration) -> Result<f64> {
    let (mut callers, started) = (JoinSet::new(), Instant::now());
    for own in requests {
        callers.spawn(async move {
            let (mut connection, mut done) = (Connection::open(server).await?, 0_u64);
            for request in own.iter().cycle() {
                if started.elapsed() >= time {
                    break;
                }
                let (status, _) = connection.ask(request).await?;
                ensure!(status == 200, "status {status}");
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(caller) = callers.join_next().await {
        done += caller??;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}
