//! The first message of a connection, JOIN_ROOM.

use super::client_message::{self, ClientMessage, JoinRoom};
use super::close::CloseReason;
use super::connection::{Connection, Gateway, write};
use super::hubs::{RoomKey, ShutdownError};
use super::server_message;
use super::session::{Session, public_error_text};
use super::subscriber::Subscriber;
use crate::limit::login_backoff;
use crate::limit::room_codes;
use crate::limits::{ROOM_SOCKETS_MAX, SOCKET_JOIN_ATTEMPTS_MAX, SOCKET_JOIN_TIMEOUT};
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::party::{Admission, DeviceId, Error, JoinRequest, MasterKey, RoomCode, RoomSnapshot};
use futures_util::StreamExt;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// Why JOIN_ROOM is refused.
enum Refusal {
    Room(Error),
    LoginBackoff,
    RoomCodes,
}

impl Refusal {
    fn code(&self) -> &'static str {
        match self {
            Refusal::Room(error) => error.code(),
            Refusal::LoginBackoff | Refusal::RoomCodes => "rate_limited",
        }
    }

    fn text(&self) -> String {
        match self {
            Refusal::Room(error) => public_error_text(error),
            Refusal::LoginBackoff => "too many wrong master keys; wait, then try again".into(),
            Refusal::RoomCodes => room_codes::REFUSED.into(),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Room(error)
    }
}

impl From<login_backoff::Refusal> for Refusal {
    fn from(refusal: login_backoff::Refusal) -> Refusal {
        match refusal {
            login_backoff::Refusal::Room(error) => Refusal::Room(error),
            login_backoff::Refusal::Backoff { .. } => Refusal::LoginBackoff,
        }
    }
}

/// Waits for JOIN_ROOM. The error is the close reason, `None` if the client closed the connection.
pub(super) async fn join(
    gateway: &Gateway,
    socket: &mut impl Connection,
) -> Result<Session, Option<CloseReason>> {
    tokio::select! {
        biased;
        () = gateway.hubs.wait_shutdown() => Err(Some(CloseReason::Shutdown)),
        joined = first_message(gateway, socket) => joined,
    }
}

/// A refused JOIN_ROOM may be followed by another one until the timeout.
async fn first_message(
    gateway: &Gateway,
    socket: &mut impl Connection,
) -> Result<Session, Option<CloseReason>> {
    let mut deadline = Instant::now() + SOCKET_JOIN_TIMEOUT;
    for _ in 0..SOCKET_JOIN_ATTEMPTS_MAX {
        let received = timeout_at(deadline, socket.next()).await.map_err(|_| Some(CloseReason::NoJoin))?;
        let text = match received.ok_or(None)?.map_err(CloseReason::from_error)? {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(Some(CloseReason::Binary)),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return Err(None),
        };
        let answer = match client_message::parse(&text) {
            Ok(ClientMessage::JoinRoom(join)) => match join_room(gateway, join, &mut deadline).await {
                Ok(session) => return session.map_err(|ShutdownError| Some(CloseReason::Shutdown)),
                Err(refusal) => server_message::error(Some("JOIN_ROOM"), refusal.code(), &refusal.text()),
            },
            Ok(message) => {
                let text = "the first message of a connection is JOIN_ROOM";
                server_message::error(Some(message.kind()), "not_joined", text)
            }
            Err(error) => server_message::parse_error(&error),
        };
        write(socket, Message::Text(answer), gateway.hubs.timing().write_timeout).await?;
    }
    Err(Some(CloseReason::NoJoin))
}

/// Joins within the limit of wrong room codes, and counts the message. Its duration is added to the client's
/// deadline.
async fn join_room(
    gateway: &Gateway,
    join: JoinRoom,
    deadline: &mut Instant,
) -> Result<Result<Session, ShutdownError>, Refusal> {
    let started = Instant::now();
    let (code, metrics) = (RoomCode::new(&join.room_code).ok(), gateway.hubs.metrics());
    let joined = match gateway.room_codes.check(gateway.address, code).await {
        Ok(guess) => {
            let joined = subscribe(gateway, join).await;
            match &joined {
                Err(Refusal::Room(Error::RoomNotFound(_))) => guess.confirm_missing(),
                Ok(_) => guess.confirm_found(),
                Err(_) => {}
            }
            joined
        }
        Err(_) => {
            metrics.limits.room_codes_refused.fetch_add(1, Relaxed);
            Err(Refusal::RoomCodes)
        }
    };
    *deadline += started.elapsed();
    metrics.count_message("JOIN_ROOM", started.elapsed(), joined.as_ref().err().map(Refusal::code));
    joined
}

/// Subscribes a connection to a room: first its state, then everything that happens after it.
///
/// 1. Key, device and room are checked without a write, so that a refusal leaves nothing behind.
/// 2. The hub accepts the subscriber, or the room is full. From here on the send queue collects events and
///    holds them back.
/// 3. The device is written, and JOIN_OK is sent before the collected events.
async fn subscribe(gateway: &Gateway, join: JoinRoom) -> Result<Result<Session, ShutdownError>, Refusal> {
    let (hubs, code) = (&gateway.hubs, RoomCode::new(&join.room_code)?);
    let master = match &join.master_key {
        Some(text) => {
            let (key, backoff) = (MasterKey::new(text)?, &gateway.login_backoff);
            Some(backoff.verify_master(hubs.rooms(), code, &key, gateway.address).await?)
        }
        None => None,
    };
    let JoinRoom { device_id: device, protocol_version, reconnect_token, .. } = join;
    let request = JoinRequest {
        reconnect_token,
        master: master.clone(),
        ..JoinRequest::new(device.clone(), protocol_version)
    };
    let gaps = hubs.gaps();
    let look = hubs.rooms().may_join(code, request.clone()).await?;
    let mut subscriber =
        Subscriber::new(hubs.next_subscriber_id(), device.clone(), master.is_some(), gaps, &look);
    let (id, queue) = (subscriber.id, subscriber.queue.clone());
    let room = RoomKey { code, created_at: look.created_at() };
    queue.hold();
    let (accepted, answer) = oneshot::channel();
    subscriber.accepted = Some(accepted);
    if let Err(shutting_down) = hubs.subscribe(room, subscriber) {
        return Ok(Err(shutting_down));
    }
    // From here on, dropping the session leaves the room.
    let session = Session { hubs: hubs.clone(), room, id, device, master, queue };
    match answer.await {
        Ok(true) => {}
        Ok(false) => return Err(Error::RoomFull { what: "connections", max: ROOM_SOCKETS_MAX }.into()),
        // The hub has ended: either the queue holds its close reason, or the server shuts down.
        Err(_) if session.queue.is_closed() => {}
        Err(_) => return Ok(Err(ShutdownError)),
    }
    let admitted = hubs.rooms().admit(code, request).await?;
    session.queue.release_with(welcome(&look, &session.device, session.master.is_some(), &admitted));
    Ok(Ok(session))
}

/// JOIN_OK with the state. A device that lost its player while it was away also receives SLOT_INVALIDATED.
fn welcome(look: &RoomSnapshot, device: &DeviceId, is_master: bool, admitted: &Admission) -> Vec<Utf8Bytes> {
    let token = &admitted.reconnect_token;
    let mut welcome = vec![match is_master {
        true => server_message::join_ok(true, token, &look.master(Some(device))),
        false => server_message::join_ok(false, token, &look.player(Some(device))),
    }];
    // A loss that is newer than the state comes as an event.
    let lost =
        admitted.lost.as_ref().filter(|lost| lost.at <= look.now() && look.player_of(device).is_none());
    welcome.extend(lost.map(server_message::slot_invalidated));
    welcome
}
