//! Who takes part, and what is played.

use super::claims::{evict, player_of};
use super::room_tx::TxMode;
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::event::Invalidation;
use crate::party::model::{DeviceId, PlayerId, RoomCode};
use crate::party::request::{Setup, SetupPlayer};
use crate::party::rules;

impl Rooms {
    /// Says what is played and by whom, once per game.
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

    /// Gives a player another name.
    pub async fn rename_player(&self, master: &Master, player: &PlayerId, name: &str) -> Result<()> {
        let (player, name) = (player.clone(), name.to_owned());
        self.lead(master, TxMode::KeepAlive, move |_, room| {
            let event = rules::rename_player(&mut room.state, &player, &name)?;
            room.record(event);
            Ok(())
        })
        .await
    }

    /// Gives a device's own player another name. `named` is the player that the caller means, where it says so: another
    /// one's name is the master's business.
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
                return Err(Error::conflict("another player has that name; take another one"));
            }
            let event = rules::rename_player(&mut room.state, &player, &name)?;
            room.record(event);
            Ok(player)
        })
        .await
    }

    /// Removes a player, with its points and its vote. The device that has it is told.
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

    /// Lets a player take part, or not. The device that has a player which does not is told, and has none. The vote of
    /// a player that is deactivated after it still counts.
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
