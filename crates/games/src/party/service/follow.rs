//! Following a room: its log, and what wakes whoever reads it.
//!
//! The log is the truth about what happened, the state about what is. Where the log cannot be followed, because it was
//! trimmed, was set back by a failover, or holds what an external client put there, the state is still right: readers are told
//! that something is missing, and the room goes on.

use super::Rooms;
use super::room_tx::check_version;
use crate::party::error::{Error, Result};
use crate::party::event::{Entry, Event, EventPage, RoomUpdate, SequencedEvent};
use crate::party::limits::{EVENTS_MAX, EVENTS_PER_PAGE_MAX};
use crate::party::model::{Meta, Room, RoomCode};
use crate::party::schema::{ROOM_CHANNEL, ROOM_META};
use crate::party::service::room_tx::TxMode;
use crate::party::wakeup::{AllRoomsSubscription, RoomSubscription};
use emberkeep_hot::store::{LogEntry, LogPage};
use emberkeep_hot::{self as hot, Tx};

impl Rooms {
    /// Events after a sequence, a page of them, as of one moment. Only looks: it neither settles nor keeps a room alive.
    ///
    /// Who follows: subscribe, then [`sync`](Rooms::sync), then this from the state's `sequence` on, at every signal.
    pub async fn events_after(&self, code: RoomCode, sequence: u64) -> Result<EventPage> {
        self.read_log(code, move |tx, meta| {
            let (events, page) = log_after(tx, sequence, EVENTS_PER_PAGE_MAX)?;
            Ok(EventPage { events, last: page.last, missed: page.missed, created_at: meta.created_at })
        })
        .await
    }

    /// All events after a sequence and the room that they led to, as of one moment. What is due happens first; the room's
    /// end does not move. For whoever serves the room's clients.
    pub async fn follow(&self, code: RoomCode, sequence: u64) -> Result<RoomUpdate> {
        self.enter(code, TxMode::KeepAliveIfChanged, move |tx, room| {
            let snapshot = room.snapshot(tx)?;
            let (mut events, page) = log_after(tx, sequence, EVENTS_MAX)?;
            let is_whole = page.missed == 0 && events.len() as u64 == page.last.saturating_sub(sequence);
            let next = (page.last + 1..).zip(room.unrecorded());
            events.extend(next.map(|(sequence, entry)| SequencedEvent { sequence, entry }));
            Ok(RoomUpdate { events, is_whole, snapshot })
        })
        .await
    }

    /// Signals of a room, from now on. Messages only wake: one may be lost, and then is counted or told.
    pub async fn subscribe(&self, code: RoomCode) -> Result<RoomSubscription> {
        let messages = self.store.scope(Room(code)).subscribe(&ROOM_CHANNEL.key()).await?;
        Ok(RoomSubscription { messages })
    }

    /// Follows all rooms of the store: one subscription for a server that has sockets in many.
    pub async fn subscribe_all(&self) -> Result<AllRoomsSubscription> {
        let messages = self.store.subscribe_all::<ROOM_CHANNEL, _>().await?;
        Ok(AllRoomsSubscription { messages, layout: self.store.key_layout().clone() })
    }

    /// A transaction that only looks at the log of a living room.
    async fn read_log<T, A>(&self, code: RoomCode, act: A) -> Result<T>
    where
        T: Send + 'static,
        A: Fn(&mut Tx<'_, Room>, &Meta) -> Result<T> + Clone + Send + 'static,
    {
        let scope = self.store.scope(Room(code)).prefetch_get(&ROOM_META.key()).prefetch_log();
        scope
            .transact(move |tx| {
                let meta = tx.get(&ROOM_META.key())?.ok_or(Error::RoomNotFound(code))?;
                if tx.now() > meta.expires_at {
                    return Err(Error::RoomExpired(code));
                }
                check_version(&meta)?;
                act(tx, &meta)
            })
            .await
    }
}

/// What the log has after a place: events without holes, and how far the log is. `missed` of the page is 0 only if they
/// follow right after the place.
fn log_after(tx: &mut Tx<'_, Room>, sequence: u64, limit: usize) -> Result<(Vec<SequencedEvent>, LogPage)> {
    use hot::Error::{Corrupt, TooLarge, WrongType};
    let mut page = match tx.log_after(sequence, limit) {
        // Without the list there is still its counter.
        Err(Corrupt { .. } | WrongType { .. } | TooLarge { .. }) => {
            LogPage { last: tx.log_last()?, ..Default::default() }
        }
        page => page?,
    };
    if sequence > page.last {
        page.missed = sequence - page.last;
        return Ok((vec![], page));
    }
    let first = sequence + page.missed + 1;
    let in_place =
        (first..=page.last).zip(&page.entries).take_while(|(place, entry)| *place == entry.sequence);
    let events: Vec<SequencedEvent> = in_place.map(|(_, entry)| recorded(entry)).collect();
    if events.is_empty() {
        page.missed = page.last - sequence;
    }
    Ok((events, page))
}

/// An entry that cannot be read is in its place all the same.
fn recorded(stored: &LogEntry) -> SequencedEvent {
    let entry = serde_json::from_slice(&stored.entry);
    let entry = entry.unwrap_or(Entry { at: 0, event: Event::Unknown });
    SequencedEvent { sequence: stored.sequence, entry }
}
