//! The views of a room, and its expiry.

use super::room_tx::{RoomTx, TxMode};
use super::{Master, Rooms};
use crate::party::error::Result;
use crate::party::model::*;
use crate::party::view::{MasterSync, PlayerSync, RoomSnapshot};
use emberkeep_hot::Tx;

impl Rooms {
    /// The view of a device. Extends the room's expiry if the device has a player.
    pub async fn sync(&self, code: RoomCode, device: Option<&DeviceId>) -> Result<PlayerSync> {
        let device = device.cloned();
        let act = move |tx: &mut Tx<'_, Room>, room: &mut RoomTx| {
            let (mut snapshot, device) = (room.snapshot(tx)?, device.as_ref());
            if device.is_some_and(|device| snapshot.player_of(device).is_some()) {
                room.keep_alive();
                // Once more: the view contains the new expiry.
                snapshot = room.snapshot(tx)?;
            }
            Ok(snapshot.player(device))
        };
        self.enter(code, TxMode::KeepAliveIfChanged, act).await
    }

    /// The view of a spectator. Writes nothing, so it works while the store refuses writes.
    pub async fn view(&self, code: RoomCode) -> Result<PlayerSync> {
        self.enter(code, TxMode::ReadOnly, |tx, room| Ok(room.snapshot(tx)?.player(None))).await
    }

    /// The view of the master, with or without a device of its own. Extends the room's expiry.
    pub async fn sync_master(&self, master: &Master, device: Option<&DeviceId>) -> Result<MasterSync> {
        let device = device.cloned();
        let act =
            move |tx: &mut Tx<'_, Room>, room: &mut RoomTx| Ok(room.snapshot(tx)?.master(device.as_ref()));
        self.lead(master, TxMode::KeepAlive, act).await
    }

    /// A snapshot of the room, for a server that sends views to its clients. Does not extend the room's
    /// expiry.
    pub async fn snapshot(&self, code: RoomCode) -> Result<RoomSnapshot> {
        self.enter(code, TxMode::KeepAliveIfChanged, |tx, room| room.snapshot(tx)).await
    }

    /// Extends the room's expiry, and does nothing else.
    pub async fn touch(&self, code: RoomCode) -> Result<()> {
        self.enter(code, TxMode::KeepAlive, |_, _| Ok(())).await
    }
}
