//! A connection to the stream: its message loop.

use super::authenticate::{authenticate, leave};
use super::feeds::{Feeds, Newest};
use super::frame::{Place, Sent};
use super::gateway::{GalaxyGateway, Pilot};
use super::messages::{self, PilotMessage, Subscribe};
use crate::auth::Tokens;
use crate::error::public_text;
use crate::limit::connections::ConnectionPermit;
use crate::limit::flood::{FloodControl, Verdict};
use crate::limits::{SOCKET_CLOSE_TIMEOUT, SYSTEMS_WATCHED_MAX};
use crate::ws::close::CloseReason;
use crate::ws::connection::{Connection, OpenSocket, close, write};
use crate::ws::server_message;
use crate::ws::timing::Timing;
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::galaxy::Error;
use emberkeep_hot as hot;
use futures_util::{FutureExt, StreamExt};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// What a connection needs.
pub(crate) struct GalaxyClient {
    pub(crate) feeds: Feeds,
    pub(crate) gateway: GalaxyGateway,
    pub(crate) tokens: Tokens,
    /// The token of the handshake.
    pub(crate) token: Option<String>,
    pub(crate) timing: Timing,
}

/// Runs a connection until it is closed.
pub(crate) async fn serve(client: GalaxyClient, mut socket: impl Connection, _permit: ConnectionPermit) {
    let metrics = client.feeds.metrics();
    let _open = OpenSocket::new(metrics);
    metrics.galaxy.sockets.fetch_add(1, Relaxed);
    let admitted = tokio::select! {
        biased;
        () = client.feeds.wait_shutdown() => Err(Some(CloseReason::Shutdown)),
        admitted = authenticate(&client, &mut socket) => admitted,
    };
    let reason = match admitted {
        Ok(pilot) => {
            let mut session = Session { client: &client, pilot, stream: None, last: None };
            let reason = session.exchange(&mut socket).await.err().flatten();
            leave(session.pilot.take()).await;
            reason
        }
        Err(reason) => reason,
    };
    if let Some(text) = reason.and_then(CloseReason::final_message) {
        let _ = write(&mut socket, Message::Text(text), SOCKET_CLOSE_TIMEOUT).await;
    }
    let _ = timeout(SOCKET_CLOSE_TIMEOUT, close(&mut socket, reason)).await;
    metrics.galaxy.sockets.fetch_sub(1, Relaxed);
}

/// A connection that is authenticated.
struct Session<'a> {
    client: &'a GalaxyClient,
    /// The player's connection, if it has one.
    pilot: Option<Pilot>,
    /// The system that is watched.
    stream: Option<Newest>,
    /// The last tick of it that was sent.
    last: Option<Place>,
}

impl Session<'_> {
    /// Returns only errors: the close reason, or `None` if the client closed the connection.
    async fn exchange(&mut self, socket: &mut impl Connection) -> Result<(), Option<CloseReason>> {
        let (timing, mut flood) = (self.client.timing, FloodControl::new(Instant::now()));
        let mut ping = interval(timing.ping_every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.client.feeds.wait_shutdown() => return Err(Some(CloseReason::Shutdown)),
                reason = removal(&mut self.pilot) => return Err(Some(reason)),
                _ = ping.tick() => {
                    if flood.idle_for(Instant::now()) > timing.idle_max {
                        return Err(Some(CloseReason::Idle));
                    }
                    self.write(socket, Message::Ping(Default::default())).await?;
                }
                () = newer(&mut self.stream) => {
                    self.send_newest(socket).await?;
                    // One read per write, so that a client that is sent much is heard, too.
                    if let Some(received) = socket.next().now_or_never() {
                        self.receive(received, &mut flood, socket).await?;
                    }
                }
                received = socket.next() => self.receive(received, &mut flood, socket).await?,
            }
        }
    }

    /// Sends the newest frame of the watched system, unless it was sent.
    async fn send_newest(&mut self, socket: &mut impl Connection) -> Result<(), Option<CloseReason>> {
        let newest = self.stream.as_mut().and_then(|stream| stream.borrow_and_update().clone());
        let Some(frame) = newest else { return Ok(()) };
        let counters = &self.client.feeds.metrics().galaxy;
        let text = match frame.message(self.last) {
            None => return Ok(()),
            Some(Sent::Delta(text)) => {
                counters.deltas.fetch_add(1, Relaxed);
                text
            }
            Some(Sent::State(text)) => {
                counters.states.fetch_add(1, Relaxed);
                text
            }
        };
        self.last = Some(frame.place);
        self.write(socket, Message::Text(text)).await
    }

    /// Sends, unless the connection is to be closed meanwhile.
    async fn write(
        &mut self,
        socket: &mut impl Connection,
        message: Message,
    ) -> Result<(), Option<CloseReason>> {
        let metrics = self.client.feeds.metrics();
        metrics.messages_sent.fetch_add(1, Relaxed);
        tokio::select! {
            sent = write(socket, message, self.client.timing.write_timeout) => {
                if sent == Err(Some(CloseReason::TooSlow)) {
                    metrics.sockets_too_slow.fetch_add(1, Relaxed);
                }
                sent
            }
            reason = removal(&mut self.pilot) => Err(Some(reason)),
            () = self.client.feeds.wait_shutdown() => Err(Some(CloseReason::Shutdown)),
        }
    }

    /// Handles a received frame; `received` is `None` if the connection is gone.
    async fn receive(
        &mut self,
        received: Option<Result<Message, axum::Error>>,
        flood: &mut FloodControl,
        socket: &mut impl Connection,
    ) -> Result<(), Option<CloseReason>> {
        let message = received.ok_or(None)?.map_err(CloseReason::from_error)?;
        let verdict = flood.record_frame(Instant::now());
        let answer = match (message, verdict) {
            (Message::Close(_), _) => return Err(None),
            (Message::Binary(_), _) => return Err(Some(CloseReason::Binary)),
            (_, Verdict::Disconnect) => return Err(Some(CloseReason::Flood)),
            (Message::Ping(_) | Message::Pong(_), _) => None,
            (Message::Text(_), Verdict::Drop) => {
                let text = "too many messages; this one was dropped";
                Some(server_message::error(None, "rate_limited", text))
            }
            (Message::Text(text), Verdict::Accept) => match messages::parse(&text) {
                Ok(message) => self.execute(message).await,
                Err(answer) => Some(answer),
            },
        };
        match answer {
            Some(answer) => self.write(socket, Message::Text(answer)).await,
            None => Ok(()),
        }
    }

    /// Executes a message and counts it. `None` = there is no answer, or the next state is.
    async fn execute(&mut self, message: PilotMessage) -> Option<Utf8Bytes> {
        let (kind, started) = (message.kind(), Instant::now());
        let result = match message {
            PilotMessage::Authenticate(_) => {
                Err(("conflict", "the connection is authenticated already".into()))
            }
            PilotMessage::Subscribe(subscribe) => self.subscribe(&subscribe),
            PilotMessage::Unsubscribe(_) => {
                (self.stream, self.last) = (None, None);
                Ok(None)
            }
            PilotMessage::Clock(_) => match self.client.feeds.galaxy().clock().await {
                Ok(clock) => Ok(Some(messages::clock(&clock))),
                Err(error) => Err((error_code(&error), error_text(&error))),
            },
            PilotMessage::Ping(_) => Ok(Some(messages::pong())),
        };
        let code = result.as_ref().err().map(|(code, _)| *code);
        self.client.feeds.metrics().count_message(kind, started.elapsed(), code);
        result.unwrap_or_else(|(code, text)| Some(server_message::error(Some(kind), code, &text)))
    }

    fn subscribe(&mut self, subscribe: &Subscribe) -> Result<Option<Utf8Bytes>, (&'static str, String)> {
        let stream = self.client.feeds.subscribe(&subscribe.system_id).map_err(|_| {
            let text = format!("this server follows {SYSTEMS_WATCHED_MAX} systems already; try again later");
            ("too_many", text)
        })?;
        (self.stream, self.last) = (Some(stream), None);
        Ok(None)
    }
}

/// Waits until a player's connection is to be closed; for ever if there is none.
async fn removal(pilot: &mut Option<Pilot>) -> CloseReason {
    match pilot {
        Some(pilot) => pilot.closed().await,
        None => std::future::pending().await,
    }
}

/// Waits for a newer frame; for ever if no system is watched.
async fn newer(stream: &mut Option<Newest>) {
    let is_over = match stream {
        Some(stream) => stream.changed().await.is_err(),
        None => true,
    };
    if is_over {
        std::future::pending::<()>().await;
    }
}

/// The code of an error, as over HTTP.
pub(super) fn error_code(error: &Error) -> &'static str {
    match error {
        Error::PlayerDeleted { .. } => "player_deleted",
        Error::TooMany { .. } => "too_many",
        Error::Invalid { .. } => "invalid",
        Error::Store(hot::Error::Forbidden { .. }) => "forbidden",
        _ => "unavailable",
    }
}

/// The text of an error for clients, without the address of the store.
pub(super) fn error_text(error: &Error) -> String {
    match error {
        Error::Store(error) => public_text(error),
        error => error.to_string(),
    }
}
