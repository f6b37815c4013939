//! The setup and the players of a room.

use super::claims::{evict, player_of};
use super::room_tx::TxMode;
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::event::Invalidation;
use crate::party::model::{DeviceId, PlayerId, RoomCode, State};
use crate::party::request::{Setup, SetupPlayer};
use crate::party::rules;
use emberkeep_hot::engine::Pending;

impl Rooms {
    /// Sets up rounds, senders and players, once per game.
    pub fn setup<'a>(&'a self, master: &'a Master, setup: Setup) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            self.rule("party.setup", master, move |state| rules::set_up(state, &setup).map(Some)).await
        })
    }

    /// Adds a player to the lobby.
    pub fn add_player<'a>(&'a self, master: &'a Master, player: SetupPlayer) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            self.rule("party.add_player", master, move |state| rules::add_player(state, &player).map(Some))
                .await
        })
    }

    /// Gives a player another name. The name may be in use by another player.
    pub fn rename_player<'a>(
        &'a self,
        master: &'a Master,
        player: &'a PlayerId,
        name: &'a str,
    ) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let (player, name) = (player.clone(), name.to_owned());
            let rule = move |state: &mut State| rules::rename_player(state, &player, &name);
            self.rule("party.rename_player", master, rule).await
        })
    }

    /// Renames the device's own player and returns its id. If `named` is given, it must be that player: only
    /// the master renames others.
    pub fn rename_own_player<'a>(
        &'a self,
        code: RoomCode,
        device: &'a DeviceId,
        named: Option<&'a PlayerId>,
        name: &'a str,
    ) -> Pending<'a, Result<PlayerId>> {
        Box::pin(async move {
            let (device, named, name) = (device.clone(), named.cloned(), name.to_owned());
            self.enter("party.rename_own_player", code, TxMode::KeepAlive, move |tx, room| {
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
        })
    }

    /// Removes a player with its points and its vote. Its device is notified.
    pub fn delete_player<'a>(&'a self, master: &'a Master, player: &'a PlayerId) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let player = player.clone();
            self.lead("party.delete_player", master, move |tx, room| {
                let event = rules::delete_player(&mut room.state, &player)?;
                evict(tx, room, &player, Invalidation::PlayerDeleted)?;
                if let Some(ballot) = room.ballot() {
                    ballot.strike(tx, &player)?;
                }
                room.record([event]);
                Ok(())
            })
            .await
        })
    }

    /// Activates or deactivates a player. A deactivated player loses its device, which is notified. A vote
    /// that it has cast still counts.
    pub fn toggle_player<'a>(
        &'a self,
        master: &'a Master,
        player: &'a PlayerId,
        active: bool,
    ) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let player = player.clone();
            self.lead("party.toggle_player", master, move |tx, room| {
                let event = rules::toggle_player(&mut room.state, &player, active)?;
                if event.is_some() && !active {
                    evict(tx, room, &player, Invalidation::PlayerDeactivated)?;
                }
                room.record(event);
                Ok(())
            })
            .await
        })
    }
}
