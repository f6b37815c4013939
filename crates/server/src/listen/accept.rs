//! Accepts connections, with TLS where it is configured, and serves HTTP/1.1 on each in a task of its own.
//!
//! There is no HTTP/2: browsers open WebSockets by HTTP/1.1, and a reverse proxy that speaks HTTP/2 to its clients
//! speaks HTTP/1.1 to this server.

use super::connections::{LimitedListener, Permit};
use super::stream::{Stream, TimedStream};
use super::tls::TlsConfig;
use crate::limits::*;
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::routing::future::RouteFuture;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

/// What all connections of a listener have in common.
#[derive(Clone)]
pub(super) struct Acceptor {
    pub(super) router: Router,
    pub(super) tls: Option<TlsConfig>,
    /// For the head of a request, and for how long a connection may be idle.
    pub(super) head_timeout: Duration,
    /// Changes once, when the server shuts down.
    pub(super) stop: watch::Receiver<()>,
}

impl Acceptor {
    /// Serves until the shutdown. Then connections in use have [`SHUTDOWN_GRACE`] to finish.
    pub(super) async fn serve(mut self, listener: LimitedListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                // Also when the sender is gone: nothing could end this server in order any more.
                _ = self.stop.changed() => break,
                Some(_) = connections.join_next() => {}
                (stream, permit, peer) = listener.accept() => {
                    connections.spawn(self.clone().serve_connection(stream, permit, peer));
                }
            }
        }
        // New connections are refused at once instead of waiting in the listener's queue.
        drop(listener);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(SHUTDOWN_GRACE, all_ended).await;
        // What has not ended is ended here.
        connections.shutdown().await;
    }

    async fn serve_connection(mut self, stream: TcpStream, permit: Permit, peer: SocketAddr) {
        // Small messages go out at once instead of waiting for the acknowledgement of those before. A socket that
        // refuses it works, too.
        let _ = stream.set_nodelay(true);
        // A failed handshake is the client's affair, as is a connection that breaks.
        let Ok(stream) = self.handshake(stream).await else { return };
        let has_request = Arc::new(AtomicBool::new(false));
        let wait = self.head_timeout.min(FIRST_HEAD_TIMEOUT);
        let stream = TimedStream::new(stream, has_request.clone(), wait, permit);
        let service = ConnectionService { router: self.router.clone(), peer, has_request };
        let mut builder = Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.head_timeout).max_buf_size(HEAD_BYTES_MAX);
        let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            biased;
            _ = self.stop.changed() => connection.as_mut().graceful_shutdown(),
            _ = connection.as_mut() => return,
        }
        let _ = connection.await;
    }

    async fn handshake(&self, stream: TcpStream) -> io::Result<Stream> {
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let handshake = TlsAcceptor::from(tls.current()).accept(stream);
        let stream = timeout(TLS_HANDSHAKE_TIMEOUT, handshake).await.map_err(io::Error::from)??;
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// The router, with the address of the client in each request.
struct ConnectionService {
    router: Router,
    peer: SocketAddr,
    /// Set with the first request.
    has_request: Arc<AtomicBool>,
}

impl hyper::service::Service<Request<Incoming>> for ConnectionService {
    type Response = axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn call(&self, mut request: Request<Incoming>) -> RouteFuture<Infallible> {
        self.has_request.store(true, Relaxed);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        self.router.clone().call(request)
    }
}
