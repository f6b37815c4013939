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
use crate::limits::{SOCKET_JOIN_ATTEMPTS_MAX, SOCKET_JOIN_WAIT};
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::party::{Error, Look, MasterKey, RoomCode};
use futures_util::StreamExt;
use std::net::IpAddr;
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
    let entered = enter(app, join, address).await;
    *deadline += started.elapsed();
    let error = entered.as_ref().err().map(|refusal| refusal.told().0);
    app.metrics.count_message("JOIN_ROOM", started.elapsed(), error);
    entered
}

/// Makes a connection part of a room: its state first, then whatever happens after that.
async fn enter(app: &App, join: JoinRoom, address: IpAddr) -> Result<Result<Client, ServerEnds>, Refusal> {
    let code = RoomCode::new(&join.room_code)?;
    let rooms = &app.rooms;
    rooms.join(code, &join.device_id, join.protocol_version).await?;
    let master = match &join.master_key {
        Some(text) => Some(app.brake.master(rooms, code, &MasterKey::new(text)?, address).await?),
        None => None,
    };
    let gaps = app.sockets.gaps();
    let look = rooms.look(code).await?;
    let seat = Seat::new(app.sockets.seat_id(), join.device_id, master.is_some(), gaps, &look);
    seat.outbox.welcome(welcome(app, &seat, &look).await?);
    let which = Which { code, created_at: look.created_at() };
    let (sockets, outbox) = (app.sockets.clone(), seat.outbox.clone());
    let client = Client { sockets, which, id: seat.id, device: seat.device.clone(), master, outbox };
    Ok(app.sockets.enter(which, seat).map(|()| client))
}

/// The state; and for a device without a player how it lost its last one, if that was not its own wish: it may have been
/// away when it happened.
async fn welcome(app: &App, seat: &Seat, look: &Look) -> Result<Vec<Utf8Bytes>, Error> {
    let state = look.player(Some(&seat.device));
    let has_player = state.my_player_id.is_some();
    let mut welcome = vec![match seat.is_master {
        true => message::join_ok(true, &look.master(Some(&seat.device))),
        false => message::join_ok(false, &state),
    }];
    if !has_player {
        let lost = app.rooms.last_loss(state.room_code, &seat.device).await?;
        // What is newer than the state comes from the room.
        let lost = lost.filter(|lost| lost.sequence <= look.sequence());
        welcome.extend(lost.and_then(|lost| message::lost(&lost.entry.event)));
    }
    Ok(welcome)
}
