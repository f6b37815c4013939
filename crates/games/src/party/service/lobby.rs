//! Who takes part, and what is played.

use super::claims::{evict, player_of};
use super::visit::Touch;
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::event::Invalidation;
use crate::party::model::{DeviceId, PlayerId, RoomCode};
use crate::party::request::{Setup, SetupPlayer};
use crate::party::rules;

impl Rooms {
    /// Says what is played and by whom, once per game.
    pub async fn setup(&self, master: &Master, setup: Setup) -> Result<()> {
        self.lead(master, Touch::Always, move |_, visit| {
            let event = rules::set_up(&mut visit.state, &setup)?;
            visit.tell([event]);
            Ok(())
        })
        .await
    }

    /// Adds a player to the lobby.
    pub async fn add_player(&self, master: &Master, player: SetupPlayer) -> Result<()> {
        self.lead(master, Touch::Always, move |_, visit| {
            let event = rules::add_player(&mut visit.state, &player)?;
            visit.tell([event]);
            Ok(())
        })
        .await
    }

    /// Gives a player another name.
    pub async fn rename_player(&self, master: &Master, player: &PlayerId, name: &str) -> Result<()> {
        let (player, name) = (player.clone(), name.to_owned());
        self.lead(master, Touch::Always, move |_, visit| {
            let event = rules::rename_player(&mut visit.state, &player, &name)?;
            visit.tell(event);
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
        self.enter(code, Touch::Always, move |tx, visit| {
            let player = player_of(tx, visit, &device)?;
            if named.as_ref().is_some_and(|named| *named != player) {
                return Err(named.clone().map_or(Error::MasterOnly(code), Error::NotYourPlayer));
            }
            if rules::has_name(&visit.state, &player, &name) {
                return Err(Error::conflict("another player has that name; take another one"));
            }
            let event = rules::rename_player(&mut visit.state, &player, &name)?;
            visit.tell(event);
            Ok(player)
        })
        .await
    }

    /// Removes a player, with its points and its vote. The device that has it is told.
    pub async fn delete_player(&self, master: &Master, player: &PlayerId) -> Result<()> {
        let player = player.clone();
        self.lead(master, Touch::Always, move |tx, visit| {
            let event = rules::delete_player(&mut visit.state, &player)?;
            evict(tx, visit, &player, Invalidation::PlayerDeleted)?;
            if let Some(ballot) = visit.ballot() {
                ballot.strike(tx, &player)?;
            }
            visit.tell([event]);
            Ok(())
        })
        .await
    }

    /// Lets a player take part, or not. The device that has a player which does not is told, and has none. The vote of
    /// a player that is deactivated after it still counts.
    pub async fn toggle_player(&self, master: &Master, player: &PlayerId, active: bool) -> Result<()> {
        let player = player.clone();
        self.lead(master, Touch::Always, move |tx, visit| {
            let event = rules::toggle_player(&mut visit.state, &player, active)?;
            if event.is_some() && !active {
                evict(tx, visit, &player, Invalidation::PlayerDeactivated)?;
            }
            visit.tell(event);
            Ok(())
        })
        .await
    }
}
