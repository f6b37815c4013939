//! Joining: authentication and admission of a device.
//!
//! 1. A device is identified by its id, a random secret of the device. The first join issues a reconnect
//!    token.
//! 2. The token proves the device; the master key admits its bearer. Without either, a device that has a
//!    token or a player is refused in a strict room. With [`JoinRequest::proves_itself`], one that has a
//!    token is refused in every room. Otherwise the id is enough in an open room, for clients that know no
//!    tokens; a new token replaces the previous one.
//! 3. A refusal writes nothing: it neither extends the room's expiry nor records the device.

use super::devices;
use super::room_tx::{RoomTx, TxMode};
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::model::*;
use crate::party::schema::claims;
use crate::party::view::RoomSnapshot;
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;
use serde::Serialize;

/// A request to join.
#[derive(Clone)]
pub struct JoinRequest {
    /// The device that joins: its random, secret id.
    pub device_id: DeviceId,
    /// The protocol version of the client.
    pub protocol_version: u32,
    /// The token from an earlier join, if the device has one.
    pub reconnect_token: Option<String>,
    /// Proof that the caller is the master, who is always admitted.
    pub master: Option<Master>,
    /// Whether a device with a token must send it, even in an open room.
    pub proves_itself: bool,
}

/// The result of a join.
pub struct Admission {
    /// The room after the join.
    pub snapshot: RoomSnapshot,
    /// The device proves its identity with this token when it joins again.
    pub reconnect_token: String,
    /// How the device lost its player, if it has none and has not taken or released one since.
    pub lost: Option<Loss>,
}

/// The reply to a join over HTTP.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Joined))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JoinReply {
    /// The code of the room.
    pub room_code: RoomCode,
    /// The protocol version of the room.
    pub protocol_version: u32,
    /// The phase of the room.
    pub phase: Phase,
    /// The player that the device has from an earlier visit.
    pub my_player_id: Option<PlayerId>,
    /// The sequence of the newest event in the room's log.
    pub sequence: u64,
    /// The device proves its identity with this token when it joins again and in HTTP calls.
    pub reconnect_token: String,
}

impl JoinRequest {
    /// A request with the device id alone.
    pub fn new(device_id: DeviceId, protocol_version: u32) -> JoinRequest {
        JoinRequest { device_id, protocol_version, reconnect_token: None, master: None, proves_itself: false }
    }
}

impl Rooms {
    /// Joins or rejoins with the device id alone. Extends the room's expiry.
    pub fn join<'a>(
        &'a self,
        code: RoomCode,
        device: &'a DeviceId,
        protocol_version: u32,
    ) -> Pending<'a, Result<JoinReply>> {
        Box::pin(async move {
            let admitted = self.admit(code, JoinRequest::new(device.clone(), protocol_version)).await?;
            Ok(admitted.joined(device))
        })
    }

    /// Joins or rejoins. Extends the room's expiry.
    pub fn admit(&self, code: RoomCode, request: JoinRequest) -> Pending<'_, Result<Admission>> {
        Box::pin(async move {
            let token = MasterKey::of_random(self.random.bytes()?).as_str().to_owned();
            self.enter("party.admit", code, TxMode::KeepAlive, move |tx, room| {
                let (known, is_proved) = check(tx, room, &request)?;
                let lost = known.lost.clone();
                let reconnect_token = match &request.reconnect_token {
                    Some(shown) if is_proved => shown.clone(),
                    _ => {
                        devices::give_token(tx, room, &request.device_id, known, &token)?;
                        token.clone()
                    }
                };
                let snapshot = room.snapshot(tx)?;
                let lost = lost.filter(|_| snapshot.player_of(&request.device_id).is_none());
                Ok(Admission { snapshot, reconnect_token, lost })
            })
            .await
        })
    }

    /// Checks whether a device would be admitted, and returns the room. Writes nothing.
    pub fn may_join(&self, code: RoomCode, request: JoinRequest) -> Pending<'_, Result<RoomSnapshot>> {
        Box::pin(async move {
            self.enter("party.may_join", code, TxMode::ReadOnly, move |tx, room| {
                check(tx, room, &request)?;
                room.snapshot(tx)
            })
            .await
        })
    }

    /// Checks a reconnect token, and that the device is not banned. Writes nothing.
    pub fn verify_device<'a>(
        &'a self,
        code: RoomCode,
        device: &'a DeviceId,
        token: &'a str,
    ) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let (device, token) = (device.clone(), token.to_owned());
            self.enter("party.verify_device", code, TxMode::ReadOnly, move |tx, room| {
                if !devices::record(tx, &device)?.has_token(&token) {
                    return Err(Error::NotThisDevice);
                }
                if room.state.is_banned(&device) { Err(Error::Banned(code)) } else { Ok(()) }
            })
            .await
        })
    }
}

impl Admission {
    /// The reply over HTTP.
    pub fn joined(&self, device: &DeviceId) -> JoinReply {
        let sync = self.snapshot.player(Some(device));
        JoinReply {
            room_code: sync.room_code,
            protocol_version: sync.protocol_version,
            phase: sync.phase,
            my_player_id: sync.my_player_id,
            sequence: sync.sequence,
            reconnect_token: self.reconnect_token.clone(),
        }
    }
}

/// The record of the device, and whether its token is right. Fails if the device is not admitted.
fn check(tx: &mut Tx<'_, Room>, room: &RoomTx, request: &JoinRequest) -> Result<(Device, bool)> {
    let expected = room.meta.protocol_version;
    if request.protocol_version != expected {
        return Err(Error::ProtocolVersion { found: request.protocol_version, expected });
    }
    request.device_id.check_new()?;
    if let Some(master) = &request.master {
        room.authorize(&master.hash)?;
    } else {
        devices::check_admission(tx, room, &request.device_id).or_else(|refusal| {
            // A device with a player is known, even if another service assigned the player.
            let has_player = claims(room.until).right_of(tx, &request.device_id)?.is_some();
            if has_player && matches!(refusal, Error::RoomLocked(_)) { Ok(()) } else { Err(refusal) }
        })?;
    }
    let known = devices::record(tx, &request.device_id)?;
    let is_proved = request.reconnect_token.as_deref().is_some_and(|token| known.has_token(token));
    if !is_proved && request.master.is_none() && (room.meta.is_strict() || request.proves_itself) {
        // In an open room the id is enough to get the first token: the device took its player without one.
        let has_player =
            room.meta.is_strict() && claims(room.until).right_of(tx, &request.device_id)?.is_some();
        if known.token_hash.is_some() || has_player {
            return Err(Error::NotThisDevice);
        }
    }
    Ok((known, is_proved))
}
