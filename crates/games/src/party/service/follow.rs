//! Following a room: its log, and what wakes whoever reads it.

use super::Rooms;
use crate::party::error::{Error, Result};
use crate::party::event::{Entry, EventPage, Recorded};
use crate::party::limits::EVENTS_PER_PAGE_MAX;
use crate::party::model::{Room, RoomCode};
use crate::party::schema::{ROOM_CHANNEL, ROOM_META};
use crate::party::signal::{Follower, FollowerOfAll};
use emberkeep_hot::store::LogEntry;
use emberkeep_hot::{self as hot, Tx};

impl Rooms {
    /// Events after a sequence, a page of them, as of one moment. Only looks: it neither settles nor keeps a room alive.
    ///
    /// Who follows: subscribe, then [`sync`](Rooms::sync), then this from the state's `sequence` on, at every signal.
    pub async fn events_after(&self, code: RoomCode, sequence: u64) -> Result<EventPage> {
        self.store
            .scope(Room(code))
            .announce_get(&ROOM_META.key())
            .announce_log()
            .transact(move |tx| events(tx, sequence))
            .await
    }

    /// Signals of a room, from now on. Messages only wake: one may be lost, and then is counted or told.
    pub async fn subscribe(&self, code: RoomCode) -> Result<Follower> {
        let messages = self.store.scope(Room(code)).subscribe(&ROOM_CHANNEL.key()).await?;
        Ok(Follower { messages })
    }

    /// Follows all rooms of the store: one subscription for a server that has sockets in many.
    pub async fn subscribe_all(&self) -> Result<FollowerOfAll> {
        let messages = self.store.subscribe_all::<ROOM_CHANNEL, _>().await?;
        Ok(FollowerOfAll { messages, naming: self.store.naming().clone() })
    }
}

fn events(tx: &mut Tx<'_, Room>, sequence: u64) -> Result<EventPage> {
    let code = tx.partition().0;
    let meta = tx.get(&ROOM_META.key())?.ok_or(Error::RoomNotFound(code))?;
    if tx.now() > meta.expires_at {
        return Err(Error::RoomExpired(code));
    }
    let page = tx.log_after(sequence, EVENTS_PER_PAGE_MAX)?;
    if sequence > page.last {
        // Sequences of a room only grow: whoever is further ahead followed another one.
        return Err(Error::RoomNotFound(code));
    }
    let events = page.entries.iter().map(|entry| recorded(code, entry)).collect::<Result<_>>()?;
    Ok(EventPage { events, last: page.last, missed: page.missed, created_at: meta.created_at })
}

fn recorded(code: RoomCode, stored: &LogEntry) -> Result<Recorded> {
    let entry: Entry = serde_json::from_slice(&stored.entry).map_err(|error| hot::Error::Corrupt {
        key: format!("the log of room {code}, entry {}", stored.sequence),
        reason: error.to_string(),
    })?;
    Ok(Recorded { sequence: stored.sequence, entry })
}
