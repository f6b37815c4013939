//! Creation of rooms.

use super::Rooms;
use super::room_tx::{end_of, enroll_common, wipe};
use crate::party::error::{Error, Result};
use crate::party::event::{Entry, Event};
use crate::party::limits::{CODE_ATTEMPTS_MAX, PROTOCOL_VERSION, TOMBSTONE_LIFE};
use crate::party::model::{MasterKey, Meta, Room, RoomCode, State};
use crate::party::schema::{ROOM_LOG, ROOM_META, ROOM_STATE};
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;

/// What the creator of a room gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoom {
    /// The code to join with.
    pub room_code: RoomCode,
    /// The key of the master. It is returned only here.
    pub master_key: MasterKey,
}

impl Rooms {
    /// Creates a room. The code of a room that exists or expired less than a day ago is not used. The id of a
    /// device is enough to join again; see [`create_strict`](Rooms::create_strict).
    pub fn create(&self) -> Pending<'_, Result<NewRoom>> {
        Box::pin(async move { self.create_with(None).await })
    }

    /// Creates a room in which a known device must send its reconnect token to join again.
    pub fn create_strict(&self) -> Pending<'_, Result<NewRoom>> {
        Box::pin(async move { self.create_with(Some(true)).await })
    }

    async fn create_with(&self, strict_devices: Option<bool>) -> Result<NewRoom> {
        for _ in 0..CODE_ATTEMPTS_MAX {
            let room_code = RoomCode::of_random(self.random.bytes::<{ RoomCode::RANDOM_BYTES }>()?);
            let master_key = MasterKey::of_random(self.random.bytes()?);
            let hash = master_key.hash();
            if self
                .scope("party.create", room_code)
                .transact(move |tx| create(tx, &hash, strict_devices))
                .await?
            {
                return Ok(NewRoom { room_code, master_key });
            }
        }
        Err(Error::conflict(format!(
            "{CODE_ATTEMPTS_MAX} random room codes are all in use; close some rooms"
        )))
    }
}

/// Writes an empty room; `false` if its code is in use.
fn create(tx: &mut Tx<'_, Room>, hash: &str, strict_devices: Option<bool>) -> Result<bool> {
    if tx.exists(&ROOM_META.key())? {
        return Ok(false);
    }
    // Keys under the code without a meta belong to no room.
    wipe(tx)?;
    let (room_code, now) = (tx.partition().0, tx.now());
    let until = end_of(now, 0);
    let meta = Meta::new(room_code, now, until, hash.to_owned(), PROTOCOL_VERSION);
    let meta = Meta { strict_devices, ..meta };
    tx.put_until(&ROOM_META.key(), &meta, until + TOMBSTONE_LIFE.as_millis() as i64)?;
    tx.put_until(&ROOM_STATE.key(), &State::in_lobby(room_code), until)?;
    enroll_common(tx, until)?;
    tx.append_numbered_until(&ROOM_LOG.key(), &Entry { at: now, event: Event::RoomCreated }, until)?;
    Ok(true)
}
