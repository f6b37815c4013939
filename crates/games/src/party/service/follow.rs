//! Following a room: its log, and wake-ups for its readers.
//!
//! The log is authoritative for what happened, the state for what is. If the log cannot be followed, because
//! it was trimmed, was rolled back by a failover, or contains entries of an external client, the state is
//! still correct. Readers learn that events are missing, and continue from the state.

use super::Rooms;
use super::room_tx::{self, check_version, is_unreadable};
use crate::party::error::{Error, Result};
use crate::party::event::{Entry, Event, EventPage, RoomUpdate, SequencedEvent};
use crate::party::limits::{EVENTS_MAX, EVENTS_PER_PAGE_MAX};
use crate::party::model::{Room, RoomCode};
use crate::party::schema::{ROOM_CHANNEL, ROOM_LOG, ROOM_META};
use crate::party::service::room_tx::TxMode;
use crate::party::wakeup::{AllRoomsSubscription, RoomSubscription};
use emberkeep_hot::ReadTx;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::{LogEntry, LogPage};

impl Rooms {
    /// A page of the events after a sequence. A plain read: it settles nothing and does not extend the room's
    /// expiry.
    ///
    /// To follow a room: subscribe, call [`sync`](Rooms::sync), then call this from the state's `sequence`
    /// on, at every wake-up.
    pub fn events_after(&self, code: RoomCode, sequence: u64) -> Pending<'_, Result<EventPage>> {
        Box::pin(async move {
            let scope = self.store.scope(Room(code)).named("party.events_after");
            scope
                .prefetch_log(&ROOM_LOG.key())
                .prefetch_get(&ROOM_META.key())
                .read(move |tx| {
                    let meta = tx.get(&ROOM_META.key())?.ok_or(Error::RoomNotFound(code))?;
                    if tx.now() > meta.expires_at {
                        return Err(Error::RoomExpired(code));
                    }
                    check_version(&meta)?;
                    let Events { events, last, missed } = log_after(tx, sequence, EVENTS_PER_PAGE_MAX)?;
                    Ok(EventPage { events, last, missed, created_at: meta.created_at })
                })
                .await
        })
    }

    /// All events after a sequence, and the room after them, read at one moment. Settles what is due, but
    /// does not extend the room's expiry. For a server that sends views to clients.
    pub fn follow(&self, code: RoomCode, sequence: u64) -> Pending<'_, Result<RoomUpdate>> {
        Box::pin(async move {
            self.enter("party.follow", code, TxMode::KeepAliveIfChanged, move |tx, room| {
                let snapshot = room.snapshot(tx)?;
                let Events { mut events, last, missed } = log_after(tx, sequence, EVENTS_MAX)?;
                let is_whole = missed == 0 && events.len() as u64 == last.saturating_sub(sequence);
                let next = (last + 1..).zip(room.unrecorded());
                events.extend(next.map(|(sequence, entry)| SequencedEvent { sequence, entry }));
                Ok(RoomUpdate { events, is_whole, snapshot })
            })
            .await
        })
    }

    /// Subscribes to the wake-ups of a room. A message may be lost; the subscription then reports `Missed`.
    pub fn subscribe(&self, code: RoomCode) -> Pending<'_, Result<RoomSubscription>> {
        Box::pin(async move {
            let messages = self.store.scope(Room(code)).subscribe(&ROOM_CHANNEL.key()).await?;
            Ok(RoomSubscription { messages })
        })
    }

    /// Subscribes to the wake-ups of all rooms of the store, for a server with clients in many rooms.
    pub fn subscribe_all(&self) -> Pending<'_, Result<AllRoomsSubscription>> {
        Box::pin(async move {
            let messages = self.store.subscribe_all::<ROOM_CHANNEL, _>().await?;
            Ok(AllRoomsSubscription { messages, layout: self.store.key_layout().clone() })
        })
    }
}

/// The consecutive events after a position, the newest sequence, and how many events are missing before them.
struct Events {
    events: Vec<SequencedEvent>,
    last: u64,
    /// 0 only if the events directly follow the position.
    missed: u64,
}

fn log_after(tx: &mut ReadTx<'_, Room>, sequence: u64, limit: usize) -> Result<Events> {
    let page = match tx.log_after(&ROOM_LOG.key(), sequence, limit) {
        // The list is unreadable. Perhaps only its head: then its end still has a number.
        Err(error) if is_unreadable(&error) => LogPage { last: room_tx::log_last(tx)?, ..Default::default() },
        page => page?,
    };
    if sequence > page.last {
        return Ok(Events { events: vec![], last: page.last, missed: sequence - page.last });
    }
    // An entry without a mark is not of this log, and what follows it may not be in its place.
    let of_log = page.entries.into_iter().take_while(|entry| entry.mark.is_some());
    let events: Vec<SequencedEvent> = of_log.map(recorded).collect();
    let missed = if events.is_empty() { page.last - sequence } else { page.missed };
    Ok(Events { events, last: page.last, missed })
}

/// An unreadable entry keeps its position.
fn recorded(stored: LogEntry<Entry>) -> SequencedEvent {
    let entry = stored.event.unwrap_or(Entry { at: 0, event: Event::Unknown });
    SequencedEvent { sequence: stored.sequence, entry }
}
