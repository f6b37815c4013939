//! What clients see of a room.

use super::visit::{Touch, Visit};
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::model::*;
use crate::party::view::{MasterSync, PlayerSync, Seen, master_sync, player_sync};
use emberkeep_hot::Tx;
use serde::Serialize;

/// A device that is in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Joined {
    /// The room.
    pub room_code: RoomCode,
    /// The version of the protocol that both speak.
    pub protocol_version: u32,
    /// Where the room is.
    pub phase: Phase,
    /// The player that the device has from before.
    pub my_player_id: Option<PlayerId>,
    /// The newest event of the room's log.
    pub sequence: u64,
}

impl Rooms {
    /// A device enters, or comes back. The room lives for another day.
    pub async fn join(&self, code: RoomCode, device: &DeviceId, protocol_version: u32) -> Result<Joined> {
        let device = device.clone();
        self.enter(code, Touch::Always, move |tx, visit| {
            let expected = visit.meta.protocol_version;
            if protocol_version != expected {
                return Err(Error::ProtocolVersion { found: protocol_version, expected });
            }
            let sync = seen(tx, visit, |seen| player_sync(seen, Some(&device)))?;
            Ok(Joined {
                room_code: sync.room_code,
                protocol_version: expected,
                phase: sync.phase,
                my_player_id: sync.my_player_id,
                sequence: sync.sequence,
            })
        })
        .await
    }

    /// The state as a device sees it, or somebody without one. The room lives for another day.
    pub async fn sync(&self, code: RoomCode, device: Option<&DeviceId>) -> Result<PlayerSync> {
        let device = device.cloned();
        let act = move |tx: &mut Tx<'_, Room>, visit: &mut Visit| {
            seen(tx, visit, |seen| player_sync(seen, device.as_ref()))
        };
        self.enter(code, Touch::Always, act).await
    }

    /// The state as the master sees it, on a device or without one. The room lives for another day.
    pub async fn sync_master(&self, master: &Master, device: Option<&DeviceId>) -> Result<MasterSync> {
        let device = device.cloned();
        let act = move |tx: &mut Tx<'_, Room>, visit: &mut Visit| {
            seen(tx, visit, |seen| master_sync(seen, device.as_ref()))
        };
        self.lead(master, Touch::Always, act).await
    }
}

/// Makes a view of the room as this step leaves it.
fn seen<V>(tx: &mut Tx<'_, Room>, visit: &Visit, view: impl FnOnce(&Seen<'_>) -> V) -> Result<V> {
    let claims = visit.claims(tx)?;
    let voters = visit.votes(tx)?.into_keys().collect();
    let sequence = visit.sequence(tx)?;
    let meta = Meta { expires_at: visit.until, ..visit.meta.clone() };
    Ok(view(&Seen {
        meta: &meta,
        state: &visit.state,
        now: visit.now,
        sequence,
        claims: &claims,
        voters: &voters,
    }))
}
