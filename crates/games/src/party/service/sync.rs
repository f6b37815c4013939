//! The views of a room, and its expiry.

use super::room_tx::{RoomTx, TxMode};
use super::{Master, Rooms};
use crate::party::error::Result;
use crate::party::model::*;
use crate::party::view::{MasterSync, PlayerSync, RoomSnapshot};
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;

impl Rooms {
    /// The view of a device. Extends the room's expiry if the device has a player.
    pub fn sync<'a>(
        &'a self,
        code: RoomCode,
        device: Option<&'a DeviceId>,
    ) -> Pending<'a, Result<PlayerSync>> {
        Box::pin(async move {
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
            self.enter("party.sync", code, TxMode::KeepAliveIfChanged, act).await
        })
    }

    /// The view of a spectator. Writes nothing, so it works while the store refuses writes.
    pub fn view(&self, code: RoomCode) -> Pending<'_, Result<PlayerSync>> {
        Box::pin(async move {
            self.enter("party.view", code, TxMode::ReadOnly, |tx, room| Ok(room.snapshot(tx)?.player(None)))
                .await
        })
    }

    /// The view of the master, with or without a device of its own. Extends the room's expiry.
    pub fn sync_master<'a>(
        &'a self,
        master: &'a Master,
        device: Option<&'a DeviceId>,
    ) -> Pending<'a, Result<MasterSync>> {
        Box::pin(async move {
            let device = device.cloned();
            self.lead("party.sync_master", master, move |tx, room| {
                Ok(room.snapshot(tx)?.master(device.as_ref()))
            })
            .await
        })
    }

    /// A snapshot of the room, for a server that sends views to its clients. Does not extend the room's
    /// expiry.
    pub fn snapshot(&self, code: RoomCode) -> Pending<'_, Result<RoomSnapshot>> {
        Box::pin(async move {
            self.enter("party.snapshot", code, TxMode::KeepAliveIfChanged, |tx, room| room.snapshot(tx)).await
        })
    }

    /// Extends the room's expiry, and does nothing else.
    pub fn touch(&self, code: RoomCode) -> Pending<'_, Result<()>> {
        Box::pin(async move { self.enter("party.touch", code, TxMode::KeepAlive, |_, _| Ok(())).await })
    }
}
