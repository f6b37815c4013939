//! A WebSocket from the upgrade to the closing handshake.

use super::close::CloseReason;
use super::hubs::Hubs;
use super::join::join;
use crate::limit::connections::ConnectionPermit;
use crate::limit::login_backoff::LoginBackoff;
use crate::limit::room_codes::RoomCodeLimiter;
use crate::limits::SOCKET_CLOSE_TIMEOUT;
use crate::metrics::Metrics;
use axum::extract::ws::Message;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::timeout;

/// What a connection needs to join a room.
pub(crate) struct Gateway {
    pub(crate) hubs: Hubs,
    pub(crate) room_codes: Arc<RoomCodeLimiter>,
    pub(crate) login_backoff: Arc<LoginBackoff>,
    /// The client, as the key of rate limits.
    pub(crate) address: IpAddr,
}

/// Messages in both directions: a WebSocket, or two channels in a test.
pub(crate) trait Connection:
    Stream<Item = Result<Message, axum::Error>> + Sink<Message, Error = axum::Error> + Unpin + Send
{
}

impl<C> Connection for C where
    C: Stream<Item = Result<Message, axum::Error>> + Sink<Message, Error = axum::Error> + Unpin + Send
{
}

/// Runs a connection until it is closed.
pub(crate) async fn serve(gateway: Gateway, mut socket: impl Connection, _permit: ConnectionPermit) {
    let _open = OpenSocket::new(gateway.hubs.metrics());
    let reason = match join(&gateway, &mut socket).await {
        Ok(session) => session.run(&mut socket).await,
        Err(reason) => reason,
    };
    let _ = timeout(SOCKET_CLOSE_TIMEOUT, close(&mut socket, reason)).await;
}

/// Counts an open WebSocket, also if its task panics: a shutdown waits until the count is 0.
pub(super) struct OpenSocket<'a>(&'a Metrics);

impl OpenSocket<'_> {
    pub(super) fn new(metrics: &Metrics) -> OpenSocket<'_> {
        metrics.sockets.fetch_add(1, Relaxed);
        OpenSocket(metrics)
    }
}

impl Drop for OpenSocket<'_> {
    fn drop(&mut self) {
        self.0.sockets.fetch_sub(1, Relaxed);
    }
}

/// Sends the close frame, and waits until the client has received it.
pub(super) async fn close(socket: &mut impl Connection, reason: Option<CloseReason>) {
    if let Some(reason) = reason {
        let _ = socket.send(Message::Close(Some(reason.frame()))).await;
    }
    // Closing a TCP connection with unread bytes resets it, and the client would lose the last messages.
    // These reads also send the answer to a close frame of the client.
    while let Some(Ok(_)) = socket.next().await {}
    if reason.is_some_and(CloseReason::is_bad_frame) {
        // The rest of a bad frame cannot be read. Wait for the timeout, so that the client can read the close
        // frame.
        std::future::pending::<()>().await;
    }
}

/// Sends a message. The error is the close reason, `None` if the connection is gone.
pub(super) async fn write(
    socket: &mut impl Connection,
    message: Message,
    wait: Duration,
) -> Result<(), Option<CloseReason>> {
    match timeout(wait, socket.send(message)).await {
        Ok(sent) => sent.map_err(|_| None),
        Err(_) => Err(Some(CloseReason::TooSlow)),
    }
}
