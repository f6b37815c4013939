//! A plain blocking client: the external client that writes the same keys by plain commands.
//!
//! It does not retry, reconnect or follow redirections. The test gets every reply as it is.

use std::io::{self, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::reply::Reply;

/// Long enough for a loaded machine, short enough that a hang becomes a failure with a line number.
const READ_MAX: Duration = Duration::from_secs(20);

/// A connection that speaks RESP.
#[derive(Debug)]
pub struct Resp {
    input: BufReader<TcpStream>,
}

impl Resp {
    /// Connects, and waits for replies for a bounded time.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_MAX))?;
        Ok(Self { input: BufReader::new(stream) })
    }

    /// Sends a command and reads its reply. An error reply is a reply: see [`Reply::is_error`].
    ///
    /// # Panics
    /// When the connection fails; use [`Resp::try_call`] where that is expected.
    #[track_caller]
    pub fn call<A: AsRef<[u8]>>(&mut self, command: &[A]) -> Reply {
        match self.try_call(command) {
            Ok(reply) => reply,
            Err(e) => panic!("{}: {e}", String::from_utf8_lossy(command[0].as_ref())),
        }
    }

    /// Sends a command and reads its reply; a connection that was cut is `UnexpectedEof` or
    /// `ConnectionReset`.
    pub fn try_call<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Reply> {
        self.send(command)?;
        self.read()
    }

    /// Sends a command and does not wait: for pipelines and subscriptions.
    pub fn send<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<()> {
        self.send_raw(&encode(command))
    }

    /// Sends bytes as they are, also when they are no valid command.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.get_mut().write_all(bytes)
    }

    /// Reads the next reply or pushed message.
    pub fn read(&mut self) -> io::Result<Reply> {
        Reply::read(&mut self.input)
    }

    /// How long [`Resp::read`] waits before it fails with `WouldBlock`.
    pub fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()> {
        self.input.get_ref().set_read_timeout(Some(limit))
    }
}

fn encode<A: AsRef<[u8]>>(command: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", command.len()).into_bytes();
    for word in command {
        let word = word.as_ref();
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}
