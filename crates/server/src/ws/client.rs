//! A connection that is part of a room: what it asks for, its pace, its signs of life.

use super::command::{self, Command};
use super::ending::Ending;
use super::manners::{Heed, Manners};
use super::message;
use super::outbox::{Outbox, Outgoing};
use super::registry::{Registry, Which};
use super::seat::SeatId;
use super::socket::{Connection, write};
use crate::problem::public_text;
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::party::{DeviceId, Error, Master, SetupPlayer, Wakeup};
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::time::{MissedTickBehavior, interval};

/// A connection that is part of a room. It leaves the room when it is dropped.
pub(super) struct Client {
    pub(super) sockets: Registry,
    pub(super) which: Which,
    pub(super) id: SeatId,
    pub(super) device: DeviceId,
    /// Proof that the connection showed the room's key.
    pub(super) master: Option<Master>,
    pub(super) outbox: Outbox,
}

impl Client {
    /// Until one side ends it. `None` = the client did.
    pub(super) async fn converse(self, socket: &mut impl Connection) -> Option<Ending> {
        self.talk(socket).await.err().flatten()
    }

    /// Never ends well: the error is why.
    async fn talk(&self, socket: &mut impl Connection) -> Result<(), Option<Ending>> {
        let mut manners = Manners::new(Instant::now());
        let rhythm = self.sockets.rhythm();
        let mut ping = interval(rhythm.ping_every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // In this order: a client's next message is read when it was sent what it has asked for.
                biased;
                () = self.sockets.ended() => return Err(Some(Ending::ServerEnds)),
                _ = ping.tick() => {
                    if manners.silent_for(Instant::now()) > rhythm.idle_max {
                        return Err(Some(Ending::Idle));
                    }
                    self.write(socket, Message::Ping(Default::default())).await?;
                }
                outgoing = self.outbox.next() => match outgoing {
                    Outgoing::Text(text) => {
                        self.write(socket, Message::Text(text)).await?;
                        // One for one: a client to whom there is always something to say is heard all the same.
                        if let Some(received) = socket.next().now_or_never() {
                            self.receive(received, &mut manners).await?;
                        }
                    }
                    Outgoing::Close(ending) => return Err(Some(ending)),
                },
                received = socket.next() => self.receive(received, &mut manners).await?,
            }
        }
    }

    /// Sends, unless the server ends in the meantime.
    async fn write(&self, socket: &mut impl Connection, message: Message) -> Result<(), Option<Ending>> {
        self.sockets.metrics().messages_sent.fetch_add(1, Relaxed);
        tokio::select! {
            sent = write(socket, message, self.sockets.rhythm().write_wait) => {
                if sent == Err(Some(Ending::TooSlow)) {
                    self.sockets.metrics().sockets_too_slow.fetch_add(1, Relaxed);
                }
                sent
            }
            () = self.sockets.ended() => Err(Some(Ending::ServerEnds)),
        }
    }

    /// `None` = the connection is gone.
    async fn receive(
        &self,
        received: Option<Result<Message, axum::Error>>,
        manners: &mut Manners,
    ) -> Result<(), Option<Ending>> {
        let message = received.ok_or(None)?.map_err(Ending::of_error)?;
        self.hear(message, manners).await
    }

    /// Does what a message asks for, and answers it.
    async fn hear(&self, message: Message, manners: &mut Manners) -> Result<(), Option<Ending>> {
        let heed = manners.hear(Instant::now());
        let answer = match (message, heed) {
            (Message::Close(_), _) => return Err(None),
            (Message::Binary(_), _) => return Err(Some(Ending::Binary)),
            (_, Heed::End) => return Err(Some(Ending::TooMuch)),
            (Message::Ping(_) | Message::Pong(_), _) => None,
            (Message::Text(_), Heed::No) => {
                Some(message::error(None, "rate_limited", "too many messages; this one was dropped"))
            }
            (Message::Text(text), Heed::Yes) => match command::read(&text) {
                Ok(command) => self.act(command).await,
                Err(unreadable) => Some(message::unreadable(&unreadable)),
            },
        };
        let owed = answer.map_or(Ok(()), |answer| self.outbox.owe(answer));
        owed.map_err(|_| Some(Ending::TooSlow))
    }

    /// `None` = what came of it is heard from the room.
    async fn act(&self, command: Command) -> Option<Utf8Bytes> {
        let (kind, started) = (command.kind(), Instant::now());
        let wanted = match &command {
            Command::TakePlayer(take) => Some(take.player_id.clone()),
            _ => None,
        };
        let asked = self.ask(command).await;
        self.sockets.metrics().count_message(kind, started.elapsed(), asked.as_ref().err().map(Error::code));
        if let Err(Error::RoomExpired(_) | Error::RoomNotFound(_)) = &asked {
            // The hub finds the same, and ends every connection of the room after this answer.
            self.sockets.wake(Some(self.which.code), Wakeup::Closed);
        }
        match (asked, wanted) {
            (Ok(answer), _) => answer,
            (Err(error), Some(player)) => Some(message::not_taken(&player, &error)),
            (Err(error), None) => Some(message::error(Some(kind), error.code(), &public(&error))),
        }
    }

    async fn ask(&self, command: Command) -> Result<Option<Utf8Bytes>, Error> {
        let (rooms, code, device) = (self.sockets.rooms(), self.which.code, &self.device);
        match command {
            Command::JoinRoom(_) => {
                let message = "the connection is part of a room already; open another one";
                return Ok(Some(message::error(Some("JOIN_ROOM"), "conflict", message)));
            }
            Command::RequestSync => {
                rooms.touch(code).await?;
                self.sockets.show(self.which, self.id);
            }
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
            Command::LockLobby(lock) => rooms.lock_lobby(self.master()?, lock.locked).await?,
            Command::BanPlayer(of) => {
                let ban_id = rooms.ban_player(self.master()?, &of.player_id).await?;
                return Ok(Some(message::answer("BAN_PLAYER_OK", json!({ "ban_id": ban_id }))));
            }
            Command::Unban(unban) => rooms.unban(self.master()?, &unban.ban_id).await?,
            Command::PlayAgain(again) => rooms.play_again(self.master()?, again.keep_rounds).await?,
            Command::RoomClosed => rooms.close(self.master()?).await?,
        }
        Ok(None)
    }

    fn master(&self) -> Result<&Master, Error> {
        self.master.as_ref().ok_or(Error::MasterOnly(self.which.code))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.sockets.leave(self.which, self.id);
    }
}

/// What a client hears of an error; where the store is, it does not learn.
pub(super) fn public(error: &Error) -> String {
    match error {
        Error::Store(error) => public_text(error),
        error => error.to_string(),
    }
}
