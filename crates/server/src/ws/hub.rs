//! A room in this process: its seats, and how far they have heard.
//!
//! 1. A seat enters with the sequence of the state that its socket was sent; it hears everything after that, once.
//! 2. Signals are only reasons to look: how far the log is, the log says. Signals that come in a burst are one look.
//! 3. Every [`LOOK_EVERY`] the log is looked at without a reason, and every seat is told how far it is: a lost last message is
//!    found, by a server and by a client.
//! 4. A vote whose deadline passes is settled by whichever hub is first; the others hear of it through the log.
//!
//! Budget: one read of the log per look, and one of the state if it changed. Ends with its last seat, with its room, or with
//! the server.

use super::message::{self, News};
use super::registry::Registry;
use super::seat::{Ending, Outgoing, Seat, SeatId};
use crate::limits::{DEADLINE_LOOKED_AT_EVERY, LOOK_EVERY, ROOMS_RETRY};
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{Error, Event, EventPage, Look, Recorded, RoomCode, Rooms, Signal};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// What a hub is told.
pub(super) enum Told {
    Enter(Box<Seat>, Identity),
    Leave(SeatId),
}

/// Which room of a code it is, and what it waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) created_at: i64,
    /// Milliseconds until the room's next deadline, as of the state that the socket was sent.
    pub(super) due_in_ms: Option<i64>,
}

/// What was heard on the channel since the last look.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heard {
    /// Grows with every reason to look.
    pub(super) reasons: u64,
    pub(super) closed: bool,
}

impl Heard {
    pub(super) fn hear(&mut self, signal: &Signal) {
        self.reasons += 1;
        self.closed |= matches!(signal, Signal::Closed);
    }
}

pub(super) struct Hub {
    code: RoomCode,
    rooms: Rooms,
    registry: Registry,
    told: mpsc::UnboundedReceiver<Told>,
    heard: watch::Receiver<Heard>,
    seats: HashMap<SeatId, Seat>,
    created_at: i64,
    at: u64,
    due: Option<Instant>,
}

/// Why a hub ends.
enum Over {
    Empty,
    Room(Ending),
}

impl Hub {
    pub(super) fn new(
        code: RoomCode,
        rooms: Rooms,
        registry: Registry,
        told: mpsc::UnboundedReceiver<Told>,
        heard: watch::Receiver<Heard>,
    ) -> Hub {
        Hub { code, rooms, registry, told, heard, seats: HashMap::new(), created_at: 0, at: 0, due: None }
    }

    /// Lives until its last seat leaves, its room ends, or the server does.
    pub(super) async fn run(mut self) {
        let mut look = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let over = loop {
            let due = self.due;
            let turn = tokio::select! {
                told = self.told.recv() => match told {
                    Some(told) => self.seated(told).await,
                    None => Err(Over::Room(Ending::ServerEnds)),
                },
                changed = self.heard.changed() => match changed {
                    Ok(()) => self.listen().await,
                    Err(_) => Err(Over::Room(Ending::ServerEnds)),
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.settle().await,
                _ = look.tick() => self.look_around().await,
            };
            if let Err(over) = turn {
                break over;
            }
            if self.seats.is_empty() && self.registry.forget_if_idle(self.code, &self.told) {
                break Over::Empty;
            }
        };
        if let Over::Room(ending) = over {
            self.registry.forget(self.code);
            self.end(ending);
        }
    }

    async fn seated(&mut self, told: Told) -> Result<(), Over> {
        match told {
            Told::Leave(id) => {
                self.seats.remove(&id);
                Ok(())
            }
            Told::Enter(seat, identity) => self.enter(*seat, identity).await,
        }
    }

    async fn enter(&mut self, seat: Seat, identity: Identity) -> Result<(), Over> {
        if self.seats.is_empty() {
            (self.created_at, self.at) = (identity.created_at, seat.seen);
        }
        if let Some(ms) = identity.due_in_ms {
            self.due_in(ms);
        }
        let older = self.seats.values().find(|held| held.device == seat.device).map(|held| held.id);
        if let Some(older) = older.and_then(|id| self.seats.remove(&id)) {
            let _ = older.queue.try_send(Outgoing::Close(Ending::Replaced));
        }
        // Whoever has heard less than the others gets the rest; those pass over what they know.
        let catches_up = seat.seen != self.at;
        self.at = self.at.min(seat.seen);
        self.seats.insert(seat.id, seat);
        if catches_up { self.catch_up().await } else { Ok(()) }
    }

    /// Something was heard on the channel.
    async fn listen(&mut self) -> Result<(), Over> {
        let closed = self.heard.borrow_and_update().closed;
        if closed {
            // The code may have been used again since: then the log belongs to another room.
            return Err(Over::Room(Ending::RoomClosed));
        }
        self.catch_up().await
    }

    async fn look_around(&mut self) -> Result<(), Over> {
        self.catch_up().await?;
        let ping = message::ping(self.at);
        self.send_all(|_| ping.clone());
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), Over> {
        self.due = None;
        match self.rooms.settle(self.code).await {
            Ok(settled) => {
                // Not due by the store's clock yet, which is the one that counts.
                self.due = settled.next_deadline.map(|_| Instant::now() + DEADLINE_LOOKED_AT_EVERY);
                self.catch_up().await
            }
            Err(error) => self.trouble(error),
        }
    }

    /// Reads what is new in the log and hands it to the seats.
    async fn catch_up(&mut self) -> Result<(), Over> {
        loop {
            let Some(page) = self.page(self.at).await? else { return Ok(()) };
            if page.created_at != self.created_at {
                return Err(Over::Room(Ending::RoomClosed));
            }
            if page.missed > 0 {
                let Some(look) = self.look().await? else { return Ok(()) };
                self.at = look.sequence();
                self.send_all(|seat| seat.state(&look));
                self.seats.values_mut().for_each(|seat| seat.seen = look.sequence());
            } else if !self.hand_out(&page.events).await? {
                return Ok(());
            }
            if self.at >= page.last {
                return Ok(());
            }
        }
    }

    /// Hands events to the seats; `false` if the store does not answer now, and nothing was handed out.
    async fn hand_out(&mut self, events: &[Recorded]) -> Result<bool, Over> {
        let news: Vec<News<'_>> = events.iter().map(News::of).collect();
        let look = match news.iter().any(News::changes_state) {
            true => match self.look().await? {
                None => return Ok(false),
                look => look,
            },
            false => None,
        };
        self.note_deadlines(events, look.as_ref());
        self.at = events.last().map_or(self.at, |last| last.sequence);
        let mut lagging = Vec::new();
        for seat in self.seats.values_mut() {
            if seat.tell(&news, look.as_ref()).is_err() {
                lagging.push(seat.id);
            }
        }
        self.drop_lagging(&lagging);
        Ok(true)
    }

    fn note_deadlines(&mut self, events: &[Recorded], look: Option<&Look>) {
        let closing = events.iter().rev().find_map(|recorded| match &recorded.entry.event {
            Event::VoteClosing { closes_at, .. } => Some(Some(*closes_at)),
            Event::VoteClosed { .. } => Some(None),
            _ => None,
        });
        match (closing, look) {
            (Some(Some(closes_at)), Some(look)) => self.due_in(closes_at - look.now()),
            (Some(None), _) => self.due = None,
            _ => {}
        }
    }

    fn due_in(&mut self, ms: i64) {
        // One more, because both ends of the wait were cut to whole milliseconds.
        let wait = Duration::from_millis(ms.max(0) as u64 + 1);
        self.due = Some(Instant::now() + wait);
    }

    /// Events after a place; `None` if the store does not answer now.
    async fn page(&mut self, after: u64) -> Result<Option<EventPage>, Over> {
        match self.rooms.events_after(self.code, after).await {
            Ok(page) => Ok(Some(page)),
            Err(error) => self.trouble(error).map(|()| None),
        }
    }

    /// The room as it is; `None` if the store does not answer now.
    async fn look(&mut self) -> Result<Option<Look>, Over> {
        match self.rooms.look(self.code).await {
            Ok(look) => Ok(Some(look)),
            Err(error) => self.trouble(error).map(|()| None),
        }
    }

    /// The room is over, or the store does not answer: then it is asked again soon.
    fn trouble(&mut self, error: Error) -> Result<(), Over> {
        match error {
            Error::RoomNotFound(_) => Err(Over::Room(Ending::RoomClosed)),
            Error::RoomExpired(_) => Err(Over::Room(Ending::RoomExpired)),
            error => {
                tracing::warn!(room = %self.code, "cannot follow a room: {error}");
                let again = Instant::now() + ROOMS_RETRY;
                self.due = Some(self.due.map_or(again, |due| due.min(again)));
                Ok(())
            }
        }
    }

    fn send_all(&mut self, text: impl Fn(&Seat) -> Utf8Bytes) {
        let lagging: Vec<SeatId> =
            self.seats.values().filter(|seat| seat.send(text(seat)).is_err()).map(|seat| seat.id).collect();
        self.drop_lagging(&lagging);
    }

    fn drop_lagging(&mut self, lagging: &[SeatId]) {
        for id in lagging {
            if let Some(seat) = self.seats.remove(id) {
                self.registry.too_slow(&seat);
            }
        }
    }

    /// The last word to everybody.
    fn end(&mut self, ending: Ending) {
        while let Ok(told) = self.told.try_recv() {
            if let Told::Enter(seat, _) = told {
                self.seats.insert(seat.id, *seat);
            }
        }
        for seat in self.seats.values() {
            let last = match ending {
                Ending::RoomClosed => Some(message::room_closed()),
                Ending::RoomExpired => Some(message::error(None, "room_expired", "the room has expired")),
                _ => None,
            };
            let _ = last.map(|text| seat.queue.try_send(Outgoing::Text(text)));
            let _ = seat.queue.try_send(Outgoing::Close(ending));
        }
    }
}
