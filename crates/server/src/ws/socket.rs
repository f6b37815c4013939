//! A socket from its handshake to its close frame.

use super::crowd::Counted;
use super::ending::Ending;
use super::entrance::admit;
use crate::app::App;
use crate::extract::household;
use crate::limits::*;
use crate::metrics::Metrics;
use crate::problem::{Body, Problem};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header::ORIGIN};
use axum::response::{IntoResponse, Response};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::timeout;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(ws))
}

/// Rooms over WebSocket. The messages are written down in the party protocol.
#[utoipa::path(get, path = "/ws", tag = "rooms",
    responses((status = 101, description = "The connection speaks WebSocket from here on"),
        (status = 403, description = "Pages of this origin may not open a socket", body = Body),
        (status = 426, description = "The request asks for no WebSocket", body = Body),
        (status = 429, description = "The address has as many sockets as it may have", body = Body)))]
async fn ws(
    State(app): State<App>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if !app.doors.ws_origins.allow(headers.get(ORIGIN)) {
        let message = "this page may not open a WebSocket here; the server's ws-origins names those that may";
        return Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message).into_response();
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let message = format!("expected a WebSocket handshake: {}", rejection.body_text());
            return Problem::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message).into_response();
        }
    };
    let address = household(address.ip());
    let Some(counted) = app.sockets.crowd().admit(address) else {
        let message = format!("this address has {SOCKETS_PER_ADDRESS_MAX} sockets already; close some");
        return Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sockets", message).into_response();
    };
    upgrade
        .read_buffer_size(SOCKET_READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(SOCKET_MESSAGE_BYTES_MAX)
        .max_frame_size(SOCKET_MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| serve(app, socket, address, counted))
}

/// Messages both ways: a socket, or what a test makes of two channels.
pub(super) trait Connection:
    Stream<Item = Result<Message, axum::Error>> + Sink<Message, Error = axum::Error> + Unpin + Send
{
}

impl<C> Connection for C where
    C: Stream<Item = Result<Message, axum::Error>> + Sink<Message, Error = axum::Error> + Unpin + Send
{
}

async fn serve(app: App, mut socket: impl Connection, address: IpAddr, _counted: Counted) {
    let _open = Open::new(&app.metrics);
    let ending = match admit(&app, &mut socket, address).await {
        Ok(client) => client.converse(&mut socket).await,
        Err(ending) => ending,
    };
    let _ = timeout(SOCKET_DRAIN_WAIT, say_goodbye(&mut socket, ending)).await;
}

/// An open socket, counted also if its task panics: the end of the server waits for the count.
struct Open<'a>(&'a Metrics);

impl Open<'_> {
    fn new(metrics: &Metrics) -> Open<'_> {
        metrics.sockets.fetch_add(1, Relaxed);
        Open(metrics)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.sockets.fetch_sub(1, Relaxed);
    }
}

/// Says why, and waits until the client has heard it.
async fn say_goodbye(socket: &mut impl Connection, ending: Option<Ending>) {
    if let Some(ending) = ending {
        let _ = socket.send(Message::Close(Some(ending.frame()))).await;
    }
    // What is left unread would make the system throw away what was said last. The answer to a client's own close frame
    // leaves with these reads, too.
    while let Some(Ok(_)) = socket.next().await {}
    if ending.is_some_and(Ending::is_of_a_bad_frame) {
        // The rest of the frame cannot be read: the client gets the time in which others are read from.
        std::future::pending::<()>().await;
    }
}

/// Sends a message. The error is why the connection ends, `None` = it is gone.
pub(super) async fn write(
    socket: &mut impl Connection,
    message: Message,
    wait: Duration,
) -> Result<(), Option<Ending>> {
    match timeout(wait, socket.send(message)).await {
        Ok(sent) => sent.map_err(|_| None),
        Err(_) => Err(Some(Ending::TooSlow)),
    }
}
