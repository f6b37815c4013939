//! What clients see of a room.

use super::visit::{Touch, Visit};
use super::{Master, Rooms};
use crate::party::error::Result;
use crate::party::model::*;
use crate::party::schema::claims;
use crate::party::view::{Look, MasterSync, PlayerSync};
use emberkeep_hot::Tx;
use serde::Serialize;

/// A device that is in a room.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Joined))]
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
    /// With it the device proves itself when it comes back, and in calls over HTTP.
    pub reconnect_token: String,
}

impl Rooms {
    /// The state as a device sees it. The room lives for another day if the device has a player.
    pub async fn sync(&self, code: RoomCode, device: Option<&DeviceId>) -> Result<PlayerSync> {
        let device = device.cloned();
        let act = move |tx: &mut Tx<'_, Room>, visit: &mut Visit| {
            let (look, device) = (look(tx, visit)?, device.as_ref());
            if device.is_some_and(|device| look.player_of(device).is_some()) {
                visit.keep_alive();
                return Ok(look.player(device));
            }
            Ok(glance(tx, visit)?.player(device))
        };
        self.enter(code, Touch::IfChanged, act).await
    }

    /// The state as everybody sees it. Writes nothing, so it works where the store cannot be written to.
    pub async fn view(&self, code: RoomCode) -> Result<PlayerSync> {
        self.enter(code, Touch::Never, |tx, visit| Ok(glance(tx, visit)?.player(None))).await
    }

    /// The state as the master sees it, on a device or without one. The room lives for another day.
    pub async fn sync_master(&self, master: &Master, device: Option<&DeviceId>) -> Result<MasterSync> {
        let device = device.cloned();
        let act =
            move |tx: &mut Tx<'_, Room>, visit: &mut Visit| Ok(look(tx, visit)?.master(device.as_ref()));
        self.lead(master, Touch::Always, act).await
    }

    /// The room as of one moment, for whoever serves its clients. Does not move its end.
    pub async fn look(&self, code: RoomCode) -> Result<Look> {
        self.enter(code, Touch::IfChanged, |tx, visit| glance(tx, visit)).await
    }

    /// Somebody is there: the room lives for another day.
    pub async fn touch(&self, code: RoomCode) -> Result<()> {
        self.enter(code, Touch::Always, |_, _| Ok(())).await
    }
}

/// The room as a transaction finds it that does not move its end.
pub(super) fn glance(tx: &mut Tx<'_, Room>, visit: &Visit) -> Result<Look> {
    let seen = look(tx, visit)?;
    Ok(Look { meta: Meta { expires_at: visit.meta.expires_at, ..seen.meta }, ..seen })
}

/// The room as this transaction finds it.
pub(super) fn look(tx: &mut Tx<'_, Room>, visit: &Visit) -> Result<Look> {
    Ok(Look {
        // The transaction moves the end of the room, and what it shows says so.
        meta: Meta { expires_at: visit.until, ..visit.meta.clone() },
        state: visit.state.clone(),
        now: visit.now,
        sequence: visit.sequence(tx)?,
        claims: visit.claims(tx)?,
        held: claims(visit.until).held(tx)?.into_iter().collect(),
        voters: visit.votes(tx)?.into_keys().collect(),
    })
}
