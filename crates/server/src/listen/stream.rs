//! The stream of a connection, with or without TLS. It ends unless the first request arrives in time, and holds
//! the connection's permit until it ends.
//!
//! Hyper's own timeout of heads is as long as a connection may be idle between two requests. Therefore the
//! stream itself enforces a shorter time for the first head. After that it only passes bytes on.

use super::connections::Permit;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;

/// One type for both, so that the code of HTTP is compiled once.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Calls a method on the stream within.
macro_rules! poll_inner {
    ($stream:expr, $method:ident $(, $argument:expr)*) => {
        match $stream {
            Stream::Plain(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Tls(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

/// A stream whose reads fail unless the first head arrives in time.
pub(super) struct TimedStream {
    stream: Stream,
    /// Set by the service when the head has arrived.
    has_request: Arc<AtomicBool>,
    /// `None` once the head has arrived or a response was written.
    deadline: Option<Pin<Box<Sleep>>>,
    _permit: Permit,
}

impl TimedStream {
    pub(super) fn new(
        stream: Stream,
        has_request: Arc<AtomicBool>,
        wait: Duration,
        permit: Permit,
    ) -> TimedStream {
        TimedStream { stream, has_request, deadline: Some(Box::pin(sleep(wait))), _permit: permit }
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = poll_inner!(&mut this.stream, poll_read, context, buffer);
        match &mut this.deadline {
            None => read,
            Some(_) if this.has_request.load(Relaxed) => {
                this.deadline = None;
                read
            }
            // Also if bytes arrived: a client may send its head byte by byte.
            Some(deadline) => match deadline.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                Poll::Pending => read,
            },
        }
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.deadline = None;
        poll_inner!(&mut this.stream, poll_write, context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.deadline = None;
        poll_inner!(&mut this.stream, poll_write_vectored, context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_inner!(&mut self.get_mut().stream, poll_flush, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_inner!(&mut self.get_mut().stream, poll_shutdown, context)
    }
}
