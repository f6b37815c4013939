//! A room in this process: its seats, and how far they have heard.
//!
//! 1. A seat enters with the sequence of the state that its socket was sent; it hears everything after that, once.
//! 2. Signals are only reasons to look, also that of a room's end: the log and the state say what happened. Reasons that come
//!    in a burst are one look.
//! 3. A look is one step of the store: what is due happens, and what is new comes with the state that it led to. Where the
//!    news are not whole, or signals were lost, every seat is sent the state.
//! 4. Every [`LOOK_EVERY`](crate::limits::LOOK_EVERY) the room is looked at without a reason, and every seat is told what it
//!    was sent last: a lost message is found, by a server and by a client.
//! 5. A vote whose deadline passes is settled by whichever hub is first; the others hear of it through the log.
//!
//! Budget: one step per look. Ends with its last seat, with its room, or with the server.

use super::ending::Ending;
use super::message::News;
use super::registry::{Registry, Which};
use super::seat::{Seat, SeatId};
use crate::limits::{ROOM_SOCKETS_MAX, ROOMS_RETRY, SEATS_TOLD_AT_ONCE};
use emberkeep_games::party::{Error, Followed, Look};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// What a hub is told.
pub(super) enum Told {
    Enter(Box<Seat>),
    Leave(SeatId),
    /// A seat asks for the state.
    Show(SeatId),
}

pub(super) struct Hub {
    which: Which,
    registry: Registry,
    told: mpsc::UnboundedReceiver<Told>,
    heard: watch::Receiver<()>,
    seats: HashMap<SeatId, Seat>,
    /// The event after which the next look begins.
    at: u64,
    /// When something is due, or the store is asked again.
    look_at: Option<Instant>,
}

impl Hub {
    pub(super) fn new(
        which: Which,
        registry: Registry,
        told: mpsc::UnboundedReceiver<Told>,
        heard: watch::Receiver<()>,
    ) -> Hub {
        Hub { which, registry, told, heard, seats: HashMap::new(), at: 0, look_at: None }
    }

    /// Lives until its last seat leaves, its room ends, or the server does.
    pub(super) async fn run(mut self) {
        let every = self.registry.rhythm().look_every;
        let mut tick = interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let look_at = self.look_at;
            let turn = tokio::select! {
                told = self.told.recv() => match told {
                    Some(told) => self.seat(told).await,
                    None => return,
                },
                changed = self.heard.changed() => match changed {
                    Ok(()) => self.catch_up().await,
                    Err(_) => return,
                },
                () = sleep_until(look_at.unwrap_or_else(Instant::now)), if look_at.is_some() => self.catch_up().await,
                _ = tick.tick() => self.look_around().await,
            };
            if let Err(ending) = turn {
                self.registry.forget(self.which);
                return self.end(ending);
            }
            if self.seats.is_empty() && self.registry.forget_if_idle(self.which, &self.told) {
                return;
            }
        }
    }

    /// Who came, went or asked since the last turn. Then everybody is told what is new: a seat may have entered after the
    /// signal of what happened since its state.
    async fn seat(&mut self, told: Told) -> Result<(), Ending> {
        let mut next = Some(told);
        while let Some(told) = next {
            match told {
                Told::Enter(seat) => self.enter(*seat),
                Told::Leave(id) => drop(self.seats.remove(&id)),
                Told::Show(id) => {
                    if let Some(seat) = self.seats.get_mut(&id) {
                        seat.wants_state = true;
                    }
                }
            }
            next = self.told.try_recv().ok();
        }
        self.catch_up().await
    }

    fn enter(&mut self, seat: Seat) {
        let older = self.seats.values().find(|held| held.device == seat.device).map(|held| held.id);
        if let Some(older) = older.and_then(|id| self.seats.remove(&id)) {
            older.outbox.end(Ending::Replaced);
        }
        if self.seats.len() >= ROOM_SOCKETS_MAX {
            return seat.outbox.end(Ending::Full);
        }
        // Whoever has heard less than the others gets the rest; those pass over what they know.
        self.at = if self.seats.is_empty() { seat.seen } else { self.at.min(seat.seen) };
        self.seats.insert(seat.id, seat);
    }

    async fn look_around(&mut self) -> Result<(), Ending> {
        self.catch_up().await?;
        self.seats.values().for_each(Seat::ping);
        Ok(())
    }

    /// Looks at the room, and hands what is new to the seats.
    async fn catch_up(&mut self) -> Result<(), Ending> {
        if self.seats.is_empty() {
            return Ok(());
        }
        let gaps = self.registry.gaps();
        match self.registry.rooms().follow(self.which.code, self.at).await {
            // The code was used again.
            Ok(followed) if followed.look.created_at() != self.which.created_at => Err(Ending::RoomClosed),
            Ok(followed) => {
                self.look_at = due(&followed.look);
                self.hand_out(&followed, gaps).await;
                Ok(())
            }
            Err(Error::RoomNotFound(_)) => Err(Ending::RoomClosed),
            Err(Error::RoomExpired(_)) => Err(Ending::RoomExpired),
            Err(Error::ProtocolVersion { .. }) => Err(Ending::OtherVersion),
            Err(error) => {
                tracing::warn!(room = %self.which.code, "cannot follow a room: {error}");
                self.look_at = Some(Instant::now() + ROOMS_RETRY);
                Ok(())
            }
        }
    }

    /// Tells every seat. Each has a state of its own to be written, so others get their turn now and then.
    async fn hand_out(&mut self, followed: &Followed, gaps: u64) {
        let news: Vec<News<'_>> = followed.events.iter().map(News::of).collect();
        self.at = followed.look.sequence();
        let mut lagging = Vec::new();
        for (number, seat) in (1..).zip(self.seats.values_mut()) {
            seat.wants_state |= !followed.is_whole || seat.gaps != gaps;
            seat.gaps = gaps;
            if seat.tell(&news, &followed.look).is_err() {
                seat.outbox.end(Ending::TooSlow);
                lagging.push(seat.id);
            }
            if number % SEATS_TOLD_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.registry.metrics().sockets_too_slow.fetch_add(lagging.len() as u64, Relaxed);
        self.seats.retain(|id, _| !lagging.contains(id));
    }

    /// The last word to everybody, also to those on their way in.
    fn end(mut self, ending: Ending) {
        while let Ok(told) = self.told.try_recv() {
            if let Told::Enter(seat) = told {
                seat.outbox.end(ending);
            }
        }
        self.seats.values().for_each(|seat| seat.outbox.end(ending));
    }
}

/// When the next thing happens in a room by itself. What was due at the moment of the look has happened; a deadline that
/// still stands then is none that passes.
fn due(look: &Look) -> Option<Instant> {
    let wait = look.next_deadline()?.checked_sub(look.now()).filter(|ms| *ms > 0)?;
    // One more, because both ends of the wait were cut to whole milliseconds.
    Instant::now().checked_add(Duration::from_millis(wait as u64 + 1))
}
