//! Devices take and release players.

use super::devices;
use super::room_tx::{RoomTx, TxMode};
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::event::{Event, Invalidation};
use crate::party::model::*;
use crate::party::schema::{DEVICE_TO_PLAYER, claims};
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::claim::Take;

impl Rooms {
    /// Takes a free player for a device that has none. One of several devices gets it.
    pub fn take_player<'a>(
        &'a self,
        code: RoomCode,
        device: &'a DeviceId,
        player: &'a PlayerId,
    ) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let (device, player) = (device.clone(), player.clone());
            self.enter("party.take_player", code, TxMode::KeepAlive, move |tx, room| {
                take(tx, room, &device, &player)
            })
            .await
        })
    }

    /// Releases and returns the device's player. Its vote stays, because it belongs to the player.
    pub fn release_player<'a>(
        &'a self,
        code: RoomCode,
        device: &'a DeviceId,
    ) -> Pending<'a, Result<PlayerId>> {
        Box::pin(async move {
            let device = device.clone();
            self.enter("party.release_player", code, TxMode::KeepAlive, move |tx, room| {
                let Some(player_id) = claims(room.until).release_left(tx, &device)? else {
                    return Err(no_player());
                };
                devices::clear_loss(tx, room, &device)?;
                room.record([Event::PlayerReleased { player_id: player_id.clone() }]);
                Ok(player_id)
            })
            .await
        })
    }

    /// Releases all claims and returns their number. Each device is notified.
    pub fn reset_claims<'a>(&'a self, master: &'a Master) -> Pending<'a, Result<usize>> {
        Box::pin(async move {
            self.lead("party.reset_claims", master, |tx, room| {
                let taken = room.claims(tx)?;
                claims(room.until).clear(tx)?;
                let count = taken.len();
                for (device_id, player_id) in taken {
                    record_loss(tx, room, device_id, player_id, Invalidation::ClaimsReset)?;
                }
                room.record([Event::ClaimsReset]);
                Ok(count)
            })
            .await
        })
    }
}

/// Checks in the order of the storage document: the device, the player, then whether the player is active.
fn take(tx: &mut Tx<'_, Room>, room: &mut RoomTx, device: &DeviceId, player: &PlayerId) -> Result<()> {
    if room.state.phase == Phase::GameOver {
        return Err(Error::not_now("the game is over"));
    }
    device.check_new()?;
    devices::check_admission(tx, room, device)?;
    release_deleted_player(tx, room, device)?;
    let half = tx.hget(&DEVICE_TO_PLAYER.key(), device)?;
    if let Some(has) = claims(room.until).right_of(tx, device)? {
        return Err(Error::DeviceAlreadyHasPlayer(has));
    }
    let active = room.state.player(player).map(|player| player.active);
    let active = active.ok_or_else(|| Error::PlayerNotFound(player.clone()))?;
    match claims(room.until).take(tx, device, player)? {
        Take::LeftHas(has) => return Err(Error::DeviceAlreadyHasPlayer(has)),
        Take::RightHeldBy(_) => return Err(Error::TakenNow(player.clone())),
        Take::Taken if !active => return Err(Error::Inactive(player.clone())),
        Take::Taken => {}
    }
    if let Some(lost) = half.filter(|lost| lost != player) {
        let reason = Invalidation::Replaced;
        room.record([Event::SlotInvalidated { device_id: device.clone(), player_id: lost, reason }]);
    }
    devices::clear_loss(tx, room, device)?;
    room.record([Event::PlayerTaken { player_id: player.clone() }]);
    Ok(())
}

/// Releases the player of a device if an external service has deleted that player.
fn release_deleted_player(tx: &mut Tx<'_, Room>, room: &mut RoomTx, device: &DeviceId) -> Result<()> {
    let has = tx.hget(&DEVICE_TO_PLAYER.key(), device)?;
    let Some(player_id) = has.filter(|player| room.state.player(player).is_none()) else { return Ok(()) };
    claims(room.until).release_left(tx, device)?;
    record_loss(tx, room, device.clone(), player_id, Invalidation::PlayerDeleted)
}

/// Records that a device lost its player without its own request. The device is notified now, or when it
/// joins again.
fn record_loss(
    tx: &mut Tx<'_, Room>,
    room: &mut RoomTx,
    device_id: DeviceId,
    player_id: PlayerId,
    reason: Invalidation,
) -> Result<()> {
    devices::note_loss(tx, room, &device_id, &player_id, reason)?;
    room.record([Event::SlotInvalidated { device_id, player_id, reason }]);
    Ok(())
}

/// Releases a player and notifies its device, which is returned.
pub(super) fn evict(
    tx: &mut Tx<'_, Room>,
    room: &mut RoomTx,
    player: &PlayerId,
    reason: Invalidation,
) -> Result<Option<DeviceId>> {
    let device = claims(room.until).release_right(tx, player)?;
    if let Some(device_id) = device.clone() {
        record_loss(tx, room, device_id, player.clone(), reason)?;
    }
    Ok(device)
}

/// The player of a device; fails if there is none or if it is inactive.
pub(super) fn player_of(tx: &mut Tx<'_, Room>, room: &RoomTx, device: &DeviceId) -> Result<PlayerId> {
    let player = claims(room.until).right_of(tx, device)?.ok_or_else(no_player)?;
    match room.state.player(&player) {
        Some(known) if known.active => Ok(player),
        Some(_) => Err(Error::Inactive(player)),
        None => Err(no_player()),
    }
}

fn no_player() -> Error {
    Error::NotClaimed { problem: "the device has no player; take one first".into() }
}
