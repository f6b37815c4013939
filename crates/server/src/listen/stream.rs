//! Closes connections whose first request does not arrive in time, and holds each connection's permit until
//! it ends.
//!
//! Hyper's own timeout of heads begins once it knows the HTTP version, and is as long as a connection may be
//! idle between two requests. Therefore the stream itself enforces a shorter time for the first head. After
//! that it only passes bytes on.

use super::connections::Permit;
use axum_server::accept::Accept;
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
use tower::Service;

/// An acceptor, after TLS where it is used.
#[derive(Debug, Clone)]
pub(super) struct FirstByteTimeout<A> {
    pub(super) inner: A,
    pub(super) wait: Duration,
}

type Accepting<T, S> = Pin<Box<dyn Future<Output = io::Result<(TimedStream<T>, MarkArrival<S>)>> + Send>>;

impl<S, A> Accept<(TcpStream, Permit), S> for FirstByteTimeout<A>
where
    A: Accept<TcpStream, S>,
    A::Future: Send + 'static,
{
    type Stream = TimedStream<A::Stream>;
    type Service = MarkArrival<A::Service>;
    type Future = Accepting<A::Stream, A::Service>;

    fn accept(&self, (stream, permit): (TcpStream, Permit), service: S) -> Self::Future {
        let (accepting, wait) = (self.inner.accept(stream, service), self.wait);
        Box::pin(async move {
            let (stream, inner) = accepting.await?;
            let arrived = Arc::new(AtomicBool::new(false));
            let deadline = Some(Box::pin(sleep(wait)));
            let stream = TimedStream { stream, arrived: arrived.clone(), deadline, _permit: permit };
            Ok((stream, MarkArrival { inner, arrived }))
        })
    }
}

/// A service that sets a flag when a request arrives.
#[derive(Clone)]
pub(super) struct MarkArrival<S> {
    inner: S,
    arrived: Arc<AtomicBool>,
}

impl<R, S: Service<R>> Service<R> for MarkArrival<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.arrived.store(true, Relaxed);
        self.inner.call(request)
    }
}

/// A stream whose reads fail unless the first head arrives in time.
pub(super) struct TimedStream<T> {
    stream: T,
    /// Set by the service when the head has arrived.
    arrived: Arc<AtomicBool>,
    /// `None` once the head has arrived or a response was written.
    deadline: Option<Pin<Box<Sleep>>>,
    _permit: Permit,
}

impl<T: AsyncRead + Unpin> AsyncRead for TimedStream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        match &mut this.deadline {
            None => read,
            Some(_) if this.arrived.load(Relaxed) => {
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

impl<T: AsyncWrite + Unpin> AsyncWrite for TimedStream<T> {
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
