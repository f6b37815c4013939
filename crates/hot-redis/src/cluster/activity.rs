//! Activity of a connection: a reply counts as lost when nothing arrives, not when a long one takes its time.

use futures_util::future::select_ok;
use redis::{RedisError, RedisResult};
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// When something last moved on a connection.
pub(crate) struct LastActivity {
    opened: Instant,
    last_ms: AtomicU64,
}

impl LastActivity {
    fn note(&self) {
        self.last_ms.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.opened + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }
}

/// Finds out whether a connection has been silent for too long.
#[derive(Clone)]
pub(crate) struct ActivityMonitor {
    activity: Arc<LastActivity>,
    silence_max: Option<Duration>,
}

impl ActivityMonitor {
    pub(crate) fn new(activity: Arc<LastActivity>, silence_max: Option<Duration>) -> ActivityMonitor {
        ActivityMonitor { activity, silence_max }
    }

    /// Awaits a reply. Replies come in the order of the requests, so any arrival brings this one nearer: it
    /// is lost only when nothing arrived for `silence_max`.
    pub(crate) async fn reply<T>(&self, reply: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let Some(silence_max) = self.silence_max else { return reply.await };
        let mut reply = pin!(reply);
        let mut since = Instant::now();
        loop {
            if let Ok(reply) = tokio::time::timeout_at((since + silence_max).into(), &mut reply).await {
                return reply;
            }
            let last = self.activity.last();
            if last <= since {
                return Err(RedisError::from(io::Error::from(io::ErrorKind::TimedOut)));
            }
            since = last;
        }
    }

    /// Whether something arrived lately.
    pub(crate) fn is_receiving(&self) -> bool {
        self.activity.last().elapsed() < self.silence_max.unwrap_or_default()
    }
}

/// A stream that records its activity.
pub(crate) struct MonitoredStream {
    stream: TcpStream,
    activity: Arc<LastActivity>,
    /// The last write had to wait: when it continues, the peer has received something.
    is_blocked: bool,
}

impl MonitoredStream {
    pub(crate) async fn connect(host: &str, port: u16) -> io::Result<(MonitoredStream, Arc<LastActivity>)> {
        let stream = first_of(tokio::net::lookup_host((host, port)).await?).await?;
        stream.set_nodelay(true)?;
        let activity = Arc::new(LastActivity { opened: Instant::now(), last_ms: AtomicU64::new(0) });
        Ok((MonitoredStream { stream, activity: activity.clone(), is_blocked: false }, activity))
    }

    /// Records a write that had waited. One that need not wait proves nothing: the kernel also buffers for a
    /// peer that is gone.
    fn wrote(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if self.is_blocked && matches!(polled, Poll::Ready(Ok(1..))) {
            self.activity.note();
        }
        self.is_blocked = polled.is_pending();
        polled
    }
}

/// A connection to the first address that answers; a silent one does not delay the others.
async fn first_of(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let attempts: Vec<_> = addresses.map(|address| Box::pin(TcpStream::connect(address))).collect();
    if attempts.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
    }
    let (stream, _others) = select_ok(attempts).await?;
    Ok(stream)
}

impl AsyncRead for MonitoredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before {
            self.activity.note();
        }
        polled
    }
}

impl AsyncWrite for MonitoredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(polled)
    }

    // TLS hands over many small blocks at a time.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.wrote(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_address_does_not_delay_the_next_one() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(any).expect("a port is free");
        // A full queue of connections that are not accepted: the next one is not answered.
        let full = socket.listen(1).expect("it listens");
        let silent = full.local_addr().expect("an address");
        let wait = Duration::from_millis(300);
        let connect = || tokio::time::timeout(wait, TcpStream::connect(silent));
        let mut queued = Vec::new();
        while let Ok(stream) = connect().await {
            queued.push(stream.expect("it is queued"));
            assert!(queued.len() < 100, "the queue has an end");
        }
        let well = tokio::net::TcpListener::bind(any).await.expect("a port is free");
        let address = well.local_addr().expect("an address");
        let found = tokio::time::timeout(wait, first_of([silent, address].into_iter())).await;
        let stream = found.expect("it does not wait for the silent one").expect("a connection");
        assert_eq!(stream.peer_addr().expect("an address"), address);
        assert!(first_of(std::iter::empty()).await.is_err());
    }
}
