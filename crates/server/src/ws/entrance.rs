//! The first message of a connection: it joins a room, or is refused.

use super::client::Client;
use super::command::{self, Command, JoinRoom};
use super::ending::Ending;
use super::message;
use super::registry::{ServerEnds, Which};
use super::seat::Seat;
use super::socket::{Connection, write};
use crate::app::App;
use crate::brake::Refusal;
use crate::limits::{ROOM_SOCKETS_MAX, SOCKET_JOIN_ATTEMPTS_MAX, SOCKET_JOIN_WAIT};
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::party::{Admission, DeviceId, Error, JoinRequest, RoomSnapshot, MasterKey, RoomCode};
use futures_util::StreamExt;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// Waits for JOIN_ROOM, unless the server ends. The error is why the connection ends, `None` = the client did it.
pub(super) async fn admit(
    app: &App,
    socket: &mut impl Connection,
    address: IpAddr,
) -> Result<Client, Option<Ending>> {
    tokio::select! {
        biased;
        () = app.sockets.ended() => Err(Some(Ending::ServerEnds)),
        admitted = first_message(app, socket, address) => admitted,
    }
}

/// A refused JOIN_ROOM may be followed by another, while the time lasts.
async fn first_message(
    app: &App,
    socket: &mut impl Connection,
    address: IpAddr,
) -> Result<Client, Option<Ending>> {
    let mut deadline = Instant::now() + SOCKET_JOIN_WAIT;
    for _ in 0..SOCKET_JOIN_ATTEMPTS_MAX {
        let received = timeout_at(deadline, socket.next()).await.map_err(|_| Some(Ending::NoJoin))?;
        let text = match received.ok_or(None)?.map_err(Ending::of_error)? {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(Some(Ending::Binary)),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return Err(None),
        };
        let answer = match command::read(&text) {
            Ok(Command::JoinRoom(join)) => match join_room(app, join, address, &mut deadline).await {
                Ok(entered) => return entered.map_err(|ServerEnds| Some(Ending::ServerEnds)),
                Err(refusal) => {
                    let (code, message) = refusal.told();
                    message::error(Some("JOIN_ROOM"), code, &message)
                }
            },
            Ok(command) => {
                let message = "the first message of a connection is JOIN_ROOM";
                message::error(Some(command.kind()), "not_joined", message)
            }
            Err(unreadable) => message::unreadable(&unreadable),
        };
        write(socket, Message::Text(answer), app.sockets.rhythm().write_wait).await?;
    }
    Err(Some(Ending::NoJoin))
}

/// Enters, and counts the message. The time that it takes is not the client's.
async fn join_room(
    app: &App,
    join: JoinRoom,
    address: IpAddr,
    deadline: &mut Instant,
) -> Result<Result<Client, ServerEnds>, Refusal> {
    let started = Instant::now();
    let code = RoomCode::new(&join.room_code).ok();
    let entered = match app.room_codes.check(address, code).await {
        Ok(guess) => {
            let entered = enter(app, join, address).await;
            match &entered {
                Err(Refusal::Room(Error::RoomNotFound(_))) => guess.missed(),
                Ok(_) => guess.found(),
                Err(_) => {}
            }
            entered
        }
        Err(_) => {
            app.metrics.bounds.room_codes_refused.fetch_add(1, Relaxed);
            Err(Refusal::TooManyMissing)
        }
    };
    *deadline += started.elapsed();
    let error = entered.as_ref().err().map(|refusal| refusal.told().0);
    app.metrics.count_message("JOIN_ROOM", started.elapsed(), error);
    entered
}

/// Makes a connection part of a room: its state first, then whatever happens after that.
///
/// 1. Key, device and room are looked at without a write, so that a refusal leaves nothing behind.
/// 2. The hub gives a seat, or the room is full. From here on the outbox gathers what happens, and holds it back.
/// 3. The device is written down, and JOIN_OK goes before whatever was gathered.
async fn enter(app: &App, join: JoinRoom, address: IpAddr) -> Result<Result<Client, ServerEnds>, Refusal> {
    let code = RoomCode::new(&join.room_code)?;
    let master = match &join.master_key {
        Some(text) => Some(app.brake.master(&app.rooms, code, &MasterKey::new(text)?, address).await?),
        None => None,
    };
    let JoinRoom { device_id: device, protocol_version, reconnect_token, .. } = join;
    let request = JoinRequest {
        reconnect_token,
        master: master.clone(),
        ..JoinRequest::new(device.clone(), protocol_version)
    };
    let gaps = app.sockets.gaps();
    let look = app.rooms.may_join(code, request.clone()).await?;
    let mut seat = Seat::new(app.sockets.seat_id(), device.clone(), master.is_some(), gaps, &look);
    let (id, outbox, which) = (seat.id, seat.outbox.clone(), Which { code, created_at: look.created_at() });
    outbox.hold();
    let (admitted, answer) = oneshot::channel();
    seat.admitted = Some(admitted);
    if let Err(ends) = app.sockets.enter(which, seat) {
        return Ok(Err(ends));
    }
    // From here on it leaves by itself, whatever happens.
    let client = Client { sockets: app.sockets.clone(), which, id, device, master, outbox };
    match answer.await {
        Ok(true) => {}
        Ok(false) => return Err(Error::RoomFull { what: "connections", max: ROOM_SOCKETS_MAX }.into()),
        // The hub has ended: the outbox has its last word, or the server ends.
        Err(_) if client.outbox.has_ended() => {}
        Err(_) => return Ok(Err(ServerEnds)),
    }
    let admitted = app.rooms.admit(code, request).await?;
    client.outbox.welcome(welcome(&look, &client.device, client.master.is_some(), &admitted));
    Ok(Ok(client))
}

/// The state that the seat was given with; and for a device without a player how it lost its last one, if it did nothing
/// about it since: it may have been away when it happened.
fn welcome(look: &RoomSnapshot, device: &DeviceId, is_master: bool, admitted: &Admission) -> Vec<Utf8Bytes> {
    let token = &admitted.reconnect_token;
    let mut welcome = vec![match is_master {
        true => message::join_ok(true, token, &look.master(Some(device))),
        false => message::join_ok(false, token, &look.player(Some(device))),
    }];
    // What is newer than the state comes from the room.
    let lost =
        admitted.lost.as_ref().filter(|lost| lost.at <= look.now() && look.player_of(device).is_none());
    welcome.extend(lost.map(message::lost));
    welcome
}
