//! A connection that has joined a room: its message loop, flood control, pings and client messages.

use super::client_message::{self, ClientMessage};
use super::close::CloseReason;
use super::connection::{Connection, write};
use super::hubs::{Hubs, RoomKey};
use super::send_queue::{Outgoing, SendQueue};
use super::server_message;
use super::subscriber::SubscriberId;
use crate::error::public_text;
use crate::limit::flood::{FloodControl, Verdict};
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::party::{DeviceId, Error, Master, SetupPlayer, Wakeup};
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::time::{MissedTickBehavior, interval};

/// A connection that has joined a room. Dropping it leaves the room.
pub(super) struct Session {
    pub(super) hubs: Hubs,
    pub(super) room: RoomKey,
    pub(super) id: SubscriberId,
    pub(super) device: DeviceId,
    /// Proof of the master key, if the connection sent it.
    pub(super) master: Option<Master>,
    pub(super) queue: SendQueue,
}

impl Session {
    /// Runs until one side closes the connection. `None` = the client did.
    pub(super) async fn run(self, socket: &mut impl Connection) -> Option<CloseReason> {
        self.exchange(socket).await.err().flatten()
    }

    /// Returns only errors: the close reason, or `None` if the client closed the connection.
    async fn exchange(&self, socket: &mut impl Connection) -> Result<(), Option<CloseReason>> {
        let mut flood = FloodControl::new(Instant::now());
        let timing = self.hubs.timing();
        let mut ping = interval(timing.ping_every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // In this order, so that answers are sent before the next message is read.
                biased;
                () = self.hubs.wait_shutdown() => return Err(Some(CloseReason::Shutdown)),
                _ = ping.tick() => {
                    if flood.idle_for(Instant::now()) > timing.idle_max {
                        return Err(Some(CloseReason::Idle));
                    }
                    self.write(socket, Message::Ping(Default::default())).await?;
                }
                outgoing = self.queue.next() => match outgoing {
                    Outgoing::Text(text) => {
                        self.write(socket, Message::Text(text)).await?;
                        // One read per write, so that a client with a full queue is not starved.
                        if let Some(received) = socket.next().now_or_never() {
                            self.receive(received, &mut flood).await?;
                        }
                    }
                    Outgoing::Close(reason) => return Err(Some(reason)),
                },
                received = socket.next() => self.receive(received, &mut flood).await?,
            }
        }
    }

    /// Sends, unless the server shuts down meanwhile.
    async fn write(&self, socket: &mut impl Connection, message: Message) -> Result<(), Option<CloseReason>> {
        self.hubs.metrics().messages_sent.fetch_add(1, Relaxed);
        tokio::select! {
            sent = write(socket, message, self.hubs.timing().write_timeout) => {
                if sent == Err(Some(CloseReason::TooSlow)) {
                    self.hubs.metrics().sockets_too_slow.fetch_add(1, Relaxed);
                }
                sent
            }
            () = self.hubs.wait_shutdown() => Err(Some(CloseReason::Shutdown)),
        }
    }

    /// Handles a received frame; `received` is `None` if the connection is gone.
    async fn receive(
        &self,
        received: Option<Result<Message, axum::Error>>,
        flood: &mut FloodControl,
    ) -> Result<(), Option<CloseReason>> {
        let message = received.ok_or(None)?.map_err(CloseReason::from_error)?;
        self.handle(message, flood).await
    }

    /// Executes a message and queues its answer.
    async fn handle(&self, message: Message, flood: &mut FloodControl) -> Result<(), Option<CloseReason>> {
        let verdict = flood.record_frame(Instant::now());
        let answer = match (message, verdict) {
            (Message::Close(_), _) => return Err(None),
            (Message::Binary(_), _) => return Err(Some(CloseReason::Binary)),
            (_, Verdict::Disconnect) => return Err(Some(CloseReason::Flood)),
            (Message::Ping(_) | Message::Pong(_), _) => None,
            (Message::Text(_), Verdict::Drop) => {
                Some(server_message::error(None, "rate_limited", "too many messages; this one was dropped"))
            }
            (Message::Text(text), Verdict::Accept) => match client_message::parse(&text) {
                Ok(message) => self.execute(message).await,
                Err(error) => Some(server_message::parse_error(&error)),
            },
        };
        let queued = answer.map_or(Ok(()), |answer| self.queue.push_required(answer));
        queued.map_err(|_| Some(CloseReason::TooSlow))
    }

    /// Executes a message and counts it. `None` = the effect comes back as an event of the room.
    async fn execute(&self, message: ClientMessage) -> Option<Utf8Bytes> {
        let (kind, started) = (message.kind(), Instant::now());
        let claimed = match &message {
            ClientMessage::TakePlayer(take) => Some(take.player_id.clone()),
            _ => None,
        };
        let result = self.dispatch(message).await;
        self.hubs.metrics().count_message(kind, started.elapsed(), result.as_ref().err().map(Error::code));
        if let Err(Error::RoomExpired(_) | Error::RoomNotFound(_)) = &result {
            // The hub then finds the same and closes every connection of the room, after this answer.
            self.hubs.wake(Some(self.room.code), Wakeup::Closed);
        }
        match (result, claimed) {
            (Ok(answer), _) => answer,
            (Err(error), Some(player)) => Some(server_message::take_player_fail(&player, &error)),
            (Err(error), None) => {
                Some(server_message::error(Some(kind), error.code(), &public_error_text(&error)))
            }
        }
    }

    async fn dispatch(&self, message: ClientMessage) -> Result<Option<Utf8Bytes>, Error> {
        let (rooms, code, device) = (self.hubs.rooms(), self.room.code, &self.device);
        match message {
            ClientMessage::JoinRoom(_) => {
                let text = "the connection has already joined a room; open another one";
                return Ok(Some(server_message::error(Some("JOIN_ROOM"), "conflict", text)));
            }
            ClientMessage::RequestSync => {
                rooms.touch(code).await?;
                self.hubs.send_state(self.room, self.id);
            }
            ClientMessage::TakePlayer(take) => {
                rooms.take_player(code, device, &take.player_id).await?;
                return Ok(Some(server_message::frame(
                    "TAKE_PLAYER_OK",
                    json!({ "player_id": take.player_id }),
                )));
            }
            ClientMessage::ReleasePlayer => drop(rooms.release_player(code, device).await?),
            ClientMessage::RenamePlayer(rename) => match &self.master {
                Some(master) => rooms.rename_player(master, &rename.player_id, &rename.name).await?,
                None => {
                    rooms.rename_own_player(code, device, Some(&rename.player_id), &rename.name).await?;
                }
            },
            ClientMessage::AddPlayer(add) => {
                let player = SetupPlayer::new(add.player_id, add.name);
                let player = SetupPlayer { sender_id: add.sender_id, avatar_url: add.avatar_url, ..player };
                rooms.add_player(self.master()?, player).await?;
            }
            ClientMessage::DeletePlayer(of) => rooms.delete_player(self.master()?, &of.player_id).await?,
            ClientMessage::TogglePlayer(toggle) => {
                rooms.toggle_player(self.master()?, &toggle.player_id, toggle.active).await?;
            }
            ClientMessage::ResetClaims => drop(rooms.reset_claims(self.master()?).await?),
            ClientMessage::StartGame => rooms.start_game(self.master()?).await?,
            ClientMessage::OpenItem(open) => {
                rooms.open_item(self.master()?, &open.round_id, &open.item_id).await?
            }
            ClientMessage::SubmitVote(vote) => {
                rooms.submit_vote(code, device, &vote.round_id, &vote.item_id, vote.selections).await?;
                let payload = json!({ "round_id": vote.round_id, "item_id": vote.item_id });
                return Ok(Some(server_message::frame("VOTE_ACK", payload)));
            }
            ClientMessage::ForceCloseVote => drop(rooms.force_close_vote(self.master()?).await?),
            ClientMessage::RevealItem => rooms.reveal(self.master()?).await?,
            ClientMessage::StartNextRound => rooms.start_next_round(self.master()?).await?,
            ClientMessage::LockLobby(lock) => rooms.lock_lobby(self.master()?, lock.locked).await?,
            ClientMessage::BanPlayer(of) => {
                let ban_id = rooms.ban_player(self.master()?, &of.player_id).await?;
                return Ok(Some(server_message::frame("BAN_PLAYER_OK", json!({ "ban_id": ban_id }))));
            }
            ClientMessage::Unban(unban) => rooms.unban(self.master()?, &unban.ban_id).await?,
            ClientMessage::PlayAgain(again) => rooms.play_again(self.master()?, again.keep_rounds).await?,
            ClientMessage::RoomClosed => rooms.close(self.master()?).await?,
        }
        Ok(None)
    }

    fn master(&self) -> Result<&Master, Error> {
        self.master.as_ref().ok_or(Error::MasterOnly(self.room.code))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hubs.unsubscribe(self.room, self.id);
    }
}

/// The text of an error for clients, without the address of the store.
pub(super) fn public_error_text(error: &Error) -> String {
    match error {
        Error::Store(error) => public_text(error),
        error => error.to_string(),
    }
}
