//! The setup and the players of a room.

use super::claims::{evict, player_of};
use super::room_tx::TxMode;
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::event::Invalidation;
use crate::party::model::{DeviceId, PlayerId, RoomCode};
use crate::party::request::{Setup, SetupPlayer};
use crate::party::rules;

impl Rooms {
    /// Sets up rounds, senders and players, once per game.
    pub async fn setup(&self, master: &Master, setup: Setup) -> Result<()> {
        self.lead(master, TxMode::KeepAlive, move |_, room| {
            let event = rules::set_up(&mut room.state, &setup)?;
            room.record([event]);
            Ok(())
        })
        .await
    }

    /// Adds a player to the lobby.
    pub async fn add_player(&self, master: &Master, player: SetupPlayer) -> Result<()> {
        self.lead(master, TxMode::KeepAlive, move |_, room| {
            let event = rules::add_player(&mut room.state, &player)?;
            room.record([event]);
            Ok(())
        })
        .await
    }

    /// Renames a player.
    pub async fn rename_player(&self, master: &Master, player: &PlayerId, name: &str) -> Result<()> {
        let (player, name) = (player.clone(), name.to_owned());
        self.lead(master, TxMode::KeepAlive, move |_, room| {
            let event = rules::rename_player(&mut room.state, &player, &name)?;
            room.record(event);
            Ok(())
        })
        .await
    }

    /// Renames the device's own player and returns its id. If `named` is given, it must be that player: only
    /// the master renames others.
    pub async fn rename_own_player(
        &self,
        code: RoomCode,
        device: &DeviceId,
        named: Option<&PlayerId>,
        name: &str,
    ) -> Result<PlayerId> {
        let (device, named, name) = (device.clone(), named.cloned(), name.to_owned());
        self.enter(code, TxMode::KeepAlive, move |tx, room| {
            let player = player_of(tx, room, &device)?;
            if named.as_ref().is_some_and(|named| *named != player) {
                return Err(named.clone().map_or(Error::MasterOnly(code), Error::NotYourPlayer));
            }
            if rules::has_name(&room.state, &player, &name) {
                return Err(Error::conflict("another player has that name; choose another name"));
            }
            let event = rules::rename_player(&mut room.state, &player, &name)?;
            room.record(event);
            Ok(player)
        })
        .await
    }

    /// Removes a player with its points and its vote. Its device is notified.
    pub async fn delete_player(&self, master: &Master, player: &PlayerId) -> Result<()> {
        let player = player.clone();
        self.lead(master, TxMode::KeepAlive, move |tx, room| {
            let event = rules::delete_player(&mut room.state, &player)?;
            evict(tx, room, &player, Invalidation::PlayerDeleted)?;
            if let Some(ballot) = room.ballot() {
                ballot.strike(tx, &player)?;
            }
            room.record([event]);
            Ok(())
        })
        .await
    }

    /// Activates or deactivates a player. A deactivated player loses its device, which is notified. A vote
    /// that it has cast still counts.
    pub async fn toggle_player(&self, master: &Master, player: &PlayerId, active: bool) -> Result<()> {
        let player = player.clone();
        self.lead(master, TxMode::KeepAlive, move |tx, room| {
            let event = rules::toggle_player(&mut room.state, &player, active)?;
            if event.is_some() && !active {
                evict(tx, room, &player, Invalidation::PlayerDeactivated)?;
            }
            room.record(event);
            Ok(())
        })
        .await
    }
}
