//! Closing a room.

use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::model::Room;
use crate::party::schema::{ROOM_CHANNEL, ROOM_META};
use crate::party::service::room_tx::wipe;
use crate::party::wakeup::Wakeup;
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;

impl Rooms {
    /// Closes a room: removes its keys, frees its code, and notifies its subscribers. Also works if the state
    /// is corrupt.
    pub fn close<'a>(&'a self, master: &'a Master) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let (code, hash) = (master.code, master.hash.clone());
            let expired = self.scope("party.close", code).transact(move |tx| close(tx, &hash)).await?;
            if expired { Err(Error::RoomExpired(code)) } else { Ok(()) }
        })
    }
}

/// Removes the room; `true` if it had already expired, and then keeps the tombstone.
fn close(tx: &mut Tx<'_, Room>, hash: &str) -> Result<bool> {
    let code = tx.partition().0;
    let meta = tx.get(&ROOM_META.key())?.ok_or(Error::RoomNotFound(code))?;
    if !meta.is_of(hash) {
        return Err(Error::NotMaster(code));
    }
    let expired = tx.now() > meta.expires_at;
    wipe(tx)?;
    if !expired {
        tx.del(&ROOM_META.key())?;
        tx.publish(&ROOM_CHANNEL.key(), &Wakeup::Closed)?;
    }
    Ok(expired)
}
