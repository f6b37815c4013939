//! What a room knows of its devices: reconnect tokens, lost players, and admission.
//!
//! A record of a device never affects the game. A corrupt record counts as an empty one.

use super::room_tx::RoomTx;
use crate::party::error::{Error, Result};
use crate::party::event::Invalidation;
use crate::party::limits::DEVICES_MAX;
use crate::party::model::{Device, DeviceId, Loss, PlayerId, Room, digest};
use crate::party::schema::{ROOM_DEVICES, group};
use emberkeep_hot::{self as hot, Tx};

/// Reads the record of a device.
pub(super) fn record(tx: &mut Tx<'_, Room>, device: &DeviceId) -> Result<Device> {
    match tx.hget(&ROOM_DEVICES.key(), device) {
        Err(hot::Error::Corrupt { .. }) => Ok(Device::default()),
        found => Ok(found?.unwrap_or_default()),
    }
}

/// Issues a new token. The previous one becomes invalid.
pub(super) fn give_token(
    tx: &mut Tx<'_, Room>,
    room: &mut RoomTx,
    device: &DeviceId,
    known: Device,
    token: &str,
) -> Result<()> {
    make_space(tx, room, device)?;
    write(tx, room, device, &Device { token_hash: Some(digest(token)), ..known })
}

/// Records how a device lost its player.
pub(super) fn note_loss(
    tx: &mut Tx<'_, Room>,
    room: &mut RoomTx,
    device: &DeviceId,
    player: &PlayerId,
    reason: Invalidation,
) -> Result<()> {
    make_space(tx, room, device)?;
    let lost = Loss::new(player.clone(), reason, room.now);
    let known = Device { lost: Some(lost), ..record(tx, device)? };
    write(tx, room, device, &known)
}

/// Writes the record of a device. The roster of a room from an earlier version lacks the key.
fn write(tx: &mut Tx<'_, Room>, room: &RoomTx, device: &DeviceId, known: &Device) -> Result<()> {
    tx.hset_until(&ROOM_DEVICES.key(), device, known, room.until)?;
    Ok(group().join(tx, &ROOM_DEVICES.key(), room.until)?)
}

/// Clears the lost player of a device: it has taken or released a player since.
pub(super) fn clear_loss(tx: &mut Tx<'_, Room>, room: &RoomTx, device: &DeviceId) -> Result<()> {
    let known = record(tx, device)?;
    if known.lost.is_none() {
        return Ok(());
    }
    Ok(tx.hset_until(&ROOM_DEVICES.key(), device, &Device { lost: None, ..known }, room.until)?)
}

/// Refuses a banned device, and one that has not joined a locked room before.
pub(super) fn check_admission(tx: &mut Tx<'_, Room>, room: &RoomTx, device: &DeviceId) -> Result<()> {
    let code = room.meta.room_code;
    if room.state.is_banned(device) {
        return Err(Error::Banned(code));
    }
    if room.state.is_locked() && record(tx, device)?.token_hash.is_none() {
        return Err(Error::RoomLocked(code));
    }
    Ok(())
}

/// Makes space for one more record: devices without a player are removed, and get a new token when they join
/// again.
fn make_space(tx: &mut Tx<'_, Room>, room: &RoomTx, device: &DeviceId) -> Result<()> {
    if tx.hlen(&ROOM_DEVICES.key())? < DEVICES_MAX
        || tx.hget(&ROOM_DEVICES.key(), device).is_ok_and(|known| known.is_some())
    {
        return Ok(());
    }
    let claims = room.claims(tx)?;
    for (known, _) in tx.hgetall(&ROOM_DEVICES.key())? {
        if !claims.iter().any(|(with_player, _)| *with_player == known) {
            tx.hdel(&ROOM_DEVICES.key(), &known)?;
        }
    }
    Ok(())
}
