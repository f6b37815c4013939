//! Connections whose peer says nothing are ended.
//!
//! Hyper's own time-out of heads begins when it knows the version of HTTP, and for the bytes that tell it waits without
//! an end. So the stream itself sees to it that they come. From then on it only passes bytes on: what a socket may take, and
//! how long it may be silent, is decided elsewhere.

use axum_server::accept::Accept;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Bytes after which the version of HTTP is known: those with which every connection of HTTP/2 begins.
const TELLING_BYTES: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// Accepts connections, after TLS where it is spoken, whose first bytes must come in time.
#[derive(Debug, Clone)]
pub(super) struct Prompt<A> {
    pub(super) inner: A,
    pub(super) wait: Duration,
}

type Accepting<T, S> = Pin<Box<dyn Future<Output = io::Result<(Prompted<T>, S)>> + Send>>;

impl<I, S, A> Accept<I, S> for Prompt<A>
where
    A: Accept<I, S>,
    A::Future: Send + 'static,
{
    type Stream = Prompted<A::Stream>;
    type Service = A::Service;
    type Future = Accepting<A::Stream, A::Service>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let (accepting, wait) = (self.inner.accept(stream, service), self.wait);
        Box::pin(async move {
            let (stream, service) = accepting.await?;
            Ok((Prompted::new(stream, wait), service))
        })
    }
}

/// A stream whose first bytes must come in time.
pub(super) struct Prompted<T> {
    stream: T,
    /// How many of them are missing.
    missing: usize,
    /// Until when; `None` = they came, or were enough for an answer.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<T> Prompted<T> {
    fn new(stream: T, wait: Duration) -> Prompted<T> {
        Prompted { stream, missing: TELLING_BYTES, deadline: Some(Box::pin(sleep(wait))) }
    }

    fn came(&mut self, bytes: usize) {
        self.missing = self.missing.saturating_sub(bytes);
        if self.missing == 0 {
            self.deadline = None;
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Prompted<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        match &mut this.deadline {
            None => read,
            Some(_) if read.is_ready() => {
                this.came(buffer.filled().len() - before);
                read
            }
            Some(deadline) => deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Prompted<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.deadline = None;
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.deadline = None;
        Pin::new(&mut this.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
