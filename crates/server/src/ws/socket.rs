//! A connection: its first message, its pace, its queue, its signs of life.

use super::command::{self, Command, JoinRoom};
use super::hub::Identity;
use super::message;
use super::seat::{Ending, Outgoing, Seat};
use crate::app::App;
use crate::brake::Refusal;
use crate::limits::*;
use crate::pace::Pace;
use crate::problem::{Body, Problem};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header::ORIGIN};
use axum::response::{IntoResponse, Response};
use emberkeep_games::party::{DeviceId, Error, Master, MasterKey, PlayerId, RoomCode, SetupPlayer};
use serde_json::json;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(ws))
}

/// Rooms over WebSocket. The messages are written down in the party protocol.
#[utoipa::path(get, path = "/ws", tag = "rooms",
    responses((status = 101, description = "The connection speaks WebSocket from here on"),
        (status = 403, description = "Pages of this origin may not open a socket", body = Body),
        (status = 426, description = "The request asks for no WebSocket", body = Body)))]
async fn ws(
    State(app): State<App>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if !app.ws_origins.allow(headers.get(ORIGIN)) {
        let message = "this page may not open a WebSocket here; the server's ws-origins names those that may";
        return Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message).into_response();
    }
    match upgrade {
        Ok(upgrade) => upgrade
            .read_buffer_size(SOCKET_READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(SOCKET_MESSAGE_BYTES_MAX)
            .max_frame_size(SOCKET_MESSAGE_BYTES_MAX)
            .on_upgrade(move |socket| serve(app, socket, address)),
        Err(rejection) => {
            let message = format!("expected a WebSocket handshake: {}", rejection.body_text());
            Problem::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message).into_response()
        }
    }
}

async fn serve(app: App, mut socket: WebSocket, address: SocketAddr) {
    app.metrics.sockets.fetch_add(1, Relaxed);
    let entered = tokio::select! {
        biased;
        () = app.ending() => Err(Some(Ending::ServerEnds)),
        entered = first_message(&app, &mut socket, address) => entered,
    };
    let ending = match entered {
        Ok((client, queue)) => {
            let ending = match app.is_ending() {
                // It may have entered after the rooms were told to end.
                true => Some(Ending::ServerEnds),
                false => client.converse(&mut socket, queue).await,
            };
            client.app.sockets.leave(client.code, client.id);
            ending
        }
        Err(ending) => ending,
    };
    if let Some(ending) = ending {
        let (code, reason) = ending.frame();
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        // A peer that does not even take a close frame is left to its fate.
        let _ = timeout(SOCKET_WRITE_WAIT, socket.send(Message::Close(Some(frame)))).await;
    }
    // What is left unread would make the system throw away what was said last. The answer to a client's own close frame
    // leaves with these reads, too.
    let rest = async { while let Some(Ok(_)) = socket.recv().await {} };
    let _ = timeout(SOCKET_DRAIN_WAIT, rest).await;
    app.metrics.sockets.fetch_sub(1, Relaxed);
}

/// A connection that is part of a room.
struct Client {
    app: App,
    id: super::seat::SeatId,
    code: RoomCode,
    device: DeviceId,
    /// Proof that the connection showed the room's key.
    master: Option<Master>,
}

type Queue = mpsc::Receiver<Outgoing>;

/// Waits for JOIN_ROOM. A refused one may be followed by another, while the time lasts.
async fn first_message(
    app: &App,
    socket: &mut WebSocket,
    address: SocketAddr,
) -> Result<(Client, Queue), Option<Ending>> {
    let deadline = tokio::time::Instant::now() + SOCKET_JOIN_WAIT;
    for _ in 0..SOCKET_JOIN_ATTEMPTS_MAX {
        let received = tokio::time::timeout_at(deadline, socket.recv()).await;
        let text = match received {
            Err(_) => return Err(Some(Ending::NoJoin)),
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(Message::Binary(_)))) => return Err(Some(Ending::Unreadable)),
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
            Ok(Some(Ok(Message::Close(_))) | None) => return Err(None),
            Ok(Some(Err(_))) => return Err(None),
        };
        let answer = match command::read(&text) {
            Ok(Command::JoinRoom(join)) => match enter(app, join, address).await {
                Ok(entered) => return Ok(entered),
                Err(refusal) => {
                    let (code, message) = refusal.told();
                    message::error(Some("JOIN_ROOM"), code, &message)
                }
            },
            Ok(command) => message::error(
                Some(command.kind()),
                "not_joined",
                "the first message of a connection is JOIN_ROOM",
            ),
            Err(unreadable) => unreadable_answer(&unreadable),
        };
        write(socket, Message::Text(answer)).await.map_err(|()| None)?;
    }
    Err(Some(Ending::NoJoin))
}

/// Makes a connection part of a room: its state first, then whatever happens after that.
async fn enter(app: &App, join: JoinRoom, address: SocketAddr) -> Result<(Client, Queue), Refusal> {
    let code = RoomCode::new(&join.room_code)?;
    let rooms = &app.rooms;
    rooms.join(code, &join.device_id, join.protocol_version).await?;
    let master = match &join.master_key {
        Some(text) => Some(app.brake.master(rooms, code, &MasterKey::new(text)?, address.ip()).await?),
        None => None,
    };
    let look = rooms.look(code).await?;
    let (queue, receiver) = mpsc::channel(SOCKET_QUEUE_MESSAGES_MAX);
    let id = app.sockets.seat_id();
    let is_master = master.is_some();
    let seat = Seat { id, device: join.device_id.clone(), is_master, seen: look.sequence(), queue };
    let welcome = match is_master {
        true => message::join_ok(true, &look.master(Some(&seat.device))),
        false => message::join_ok(false, &look.player(Some(&seat.device))),
    };
    let _ = seat.send(welcome);
    let due_in_ms = look.next_deadline().map(|at| at - look.now());
    app.sockets.enter(code, seat, Identity { created_at: look.created_at(), due_in_ms });
    Ok((Client { app: app.clone(), id, code, device: join.device_id, master }, receiver))
}

impl Client {
    /// Until one side ends it. `None` = the client did.
    async fn converse(&self, socket: &mut WebSocket, mut queue: Queue) -> Option<Ending> {
        let mut pace = Pace::new(SOCKET_MESSAGES_PER_SECOND, SOCKET_MESSAGES_BURST, Instant::now());
        let mut over_pace = 0;
        let mut heard = Instant::now();
        let mut ping = interval(SOCKET_PING_EVERY);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                outgoing = queue.recv() => match outgoing {
                    Some(Outgoing::Text(text)) => self.write(socket, Message::Text(text)).await.ok()?,
                    Some(Outgoing::Close(ending)) => return Some(ending),
                    // Its hub let go of it with a queue too full for a last word.
                    None => return Some(Ending::TooSlow),
                },
                received = socket.recv() => {
                    heard = Instant::now();
                    let text = match received?.ok()? {
                        Message::Text(text) => text,
                        Message::Binary(_) => return Some(Ending::Unreadable),
                        Message::Close(_) => return None,
                        Message::Ping(_) | Message::Pong(_) => continue,
                    };
                    if !pace.allows(heard) {
                        over_pace += 1;
                        if over_pace > SOCKET_OVER_PACE_MAX {
                            return Some(Ending::TooMuch);
                        }
                        let slower = message::error(None, "rate_limited", "too many messages; this one was dropped");
                        self.write(socket, Message::Text(slower)).await.ok()?;
                        continue;
                    }
                    if let ControlFlow::Break(ending) = self.hear(socket, &text).await {
                        return ending;
                    }
                }
                _ = ping.tick() => {
                    if heard.elapsed() > SOCKET_IDLE_MAX {
                        return Some(Ending::Idle);
                    }
                    self.write(socket, Message::Ping(Default::default())).await.ok()?;
                }
            }
        }
    }

    async fn write(&self, socket: &mut WebSocket, message: Message) -> Result<(), ()> {
        self.app.metrics.messages_sent.fetch_add(1, Relaxed);
        write(socket, message).await
    }

    /// Does what a message asks for, and answers it.
    async fn hear(&self, socket: &mut WebSocket, text: &str) -> ControlFlow<Option<Ending>> {
        let answer = match command::read(text) {
            Ok(command) => self.act(command).await,
            Err(unreadable) => Some(unreadable_answer(&unreadable)),
        };
        let Some(answer) = answer else { return ControlFlow::Continue(()) };
        match self.write(socket, Message::Text(answer)).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(()) => ControlFlow::Break(None),
        }
    }

    /// `None` = what came of it is heard from the room.
    async fn act(&self, command: Command) -> Option<Utf8Bytes> {
        let (kind, started) = (command.kind(), Instant::now());
        let wanted = match &command {
            Command::TakePlayer(take) => Some(take.player_id.clone()),
            _ => None,
        };
        let asked = self.ask(command).await;
        self.app.metrics.count_message(kind, started.elapsed(), asked.as_ref().err().map(Error::code));
        match (asked, wanted) {
            (Ok(answer), _) => answer,
            (Err(error), Some(player)) => Some(not_taken(&player, &error)),
            (Err(error), None) => Some(refused(kind, &error)),
        }
    }

    async fn ask(&self, command: Command) -> Result<Option<Utf8Bytes>, Error> {
        let (rooms, code, device) = (&self.app.rooms, self.code, &self.device);
        match command {
            Command::JoinRoom(_) => {
                let message = "the connection is part of a room already; open another one";
                return Ok(Some(message::error(Some("JOIN_ROOM"), "conflict", message)));
            }
            Command::RequestSync => return self.state().await.map(Some),
            Command::TakePlayer(take) => {
                rooms.take_player(code, device, &take.player_id).await?;
                return Ok(Some(message::answer("TAKE_PLAYER_OK", json!({ "player_id": take.player_id }))));
            }
            Command::ReleasePlayer => drop(rooms.release_player(code, device).await?),
            Command::RenamePlayer(rename) => match &self.master {
                Some(master) => rooms.rename_player(master, &rename.player_id, &rename.name).await?,
                None => {
                    rooms.rename_own_player(code, device, Some(&rename.player_id), &rename.name).await?;
                }
            },
            Command::AddPlayer(add) => {
                let player = SetupPlayer::new(add.player_id, add.name);
                let player = SetupPlayer { sender_id: add.sender_id, avatar_url: add.avatar_url, ..player };
                rooms.add_player(self.master()?, player).await?;
            }
            Command::DeletePlayer(of) => rooms.delete_player(self.master()?, &of.player_id).await?,
            Command::TogglePlayer(toggle) => {
                rooms.toggle_player(self.master()?, &toggle.player_id, toggle.active).await?;
            }
            Command::ResetClaims => drop(rooms.reset_claims(self.master()?).await?),
            Command::StartGame => rooms.start_game(self.master()?).await?,
            Command::OpenItem(open) => rooms.open_item(self.master()?, &open.round_id, &open.item_id).await?,
            Command::SubmitVote(vote) => {
                rooms.submit_vote(code, device, &vote.round_id, &vote.item_id, vote.selections).await?;
                let payload = json!({ "round_id": vote.round_id, "item_id": vote.item_id });
                return Ok(Some(message::answer("VOTE_ACK", payload)));
            }
            Command::ForceCloseVote => drop(rooms.force_close_vote(self.master()?).await?),
            Command::RevealItem => rooms.reveal(self.master()?).await?,
            Command::StartNextRound => rooms.start_next_round(self.master()?).await?,
            Command::RoomClosed => rooms.close(self.master()?).await?,
        }
        Ok(None)
    }

    fn master(&self) -> Result<&Master, Error> {
        self.master.as_ref().ok_or(Error::NotMaster(self.code))
    }

    async fn state(&self) -> Result<Utf8Bytes, Error> {
        let device = Some(&self.device);
        Ok(match &self.master {
            Some(master) => message::sync(&self.app.rooms.sync_master(master, device).await?),
            None => message::sync(&self.app.rooms.sync(self.code, device).await?),
        })
    }
}

async fn write(socket: &mut WebSocket, message: Message) -> Result<(), ()> {
    match timeout(SOCKET_WRITE_WAIT, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(()),
    }
}

fn refused(of: &str, error: &Error) -> Utf8Bytes {
    message::error(Some(of), error.code(), &error.to_string())
}

/// The claim has an answer of its own.
fn not_taken(player: &PlayerId, error: &Error) -> Utf8Bytes {
    let payload = json!({ "player_id": player, "code": error.code(), "message": error.to_string() });
    message::answer("TAKE_PLAYER_FAIL", payload)
}

fn unreadable_answer(unreadable: &command::Unreadable) -> Utf8Bytes {
    message::error(unreadable.kind.as_deref(), "invalid_payload", &unreadable.problem)
}
